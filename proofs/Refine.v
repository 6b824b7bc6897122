(** * Level 2 refines level 1

    A forward simulation.  [refines s s1] says that the words [s] look like the abstract queue [s1];
    whatever transition the words make, the abstract queue can follow by none, one or a few of its own,
    and look like them again.

    The abstract queue remembers every request that ever joined; the words forget a slot that was cut.
    So [refines] is a relation: a request that is listed is what its word says, and one that is not is
    settled.  A grant is its owner's from the exchange that grants, which is where the operation takes
    effect: level 1 grants and takes at once, and the poll that learns of it is no step there. *)

From Coq Require Import List Arith Lia Bool.
Import ListNotations.
Require Import Level1 Level2.

Definition status_of (x : wstatus) : status :=
  match x with Waiting => Pending | Granted => Fulfilled | Gone => Cancelled | Ended => Shut end.

(** What a word says of its request. *)
Definition waiter_of (n : node) : waiter :=
  W (want n) (match sta n with Waiting => got_in (pay n) | _ => 0 end) (status_of (sta n)).

(** The requests: by arrival number. *)
Definition same_waiters (l : list node) (ws : list waiter) :=
  (forall i n, listed l i n -> nth_error ws (arr n) = Some (waiter_of n)) /\
  (forall j w, nth_error ws j = Some w -> (forall i n, listed l i n -> arr n <> j) -> stat w <> Pending).

(** A thread that chose a waiter, which still waits in that use of the slot, is a call that chose it. *)
Definition serves (l : list node) (p : phase2) (d : phase) :=
  forall h n, p = Chosen h -> nth_error l (fst h) = Some n -> gen n = snd h -> sta n = Waiting ->
  d = Chose (arr n).

(** Thread [t] is call [t + 1].  Call 0 is the first [close]. *)
Definition same_calls (l : list node) (closed : bool) (ths : list thread) (cs : list call) :=
  (exists d, nth_error cs 0 = Some (C 0 d) /\ (closed = false -> d = Free)) /\
  length cs = S (length ths) /\
  (forall t c p, nth_error ths t = Some (Th c p) -> exists d, nth_error cs (S t) = Some (C c d) /\
     (forall i, d <> Closing i) /\ serves l p d).

Record refines (s : state2) (s1 : state) : Prop := {
  f_cap : cap s1 = total s;
  f_debt : debt s1 = 0;
  f_avail : avail s1 = free s;
  f_closed : closed s1 = shut s;
  f_arrivals : length (waiters s1) = clock s;
  f_waiters : same_waiters (nodes s) (waiters s1);
  f_leases : sum (fun n => n) (leases s1) = leased s + untaken s;
  f_calls : same_calls (nodes s) (shut s) (threads s) (calls s1)
}.

(** * Scripts *)

Lemma steps_app ceil a b c : steps ceil a b -> steps ceil b c -> steps ceil a c.
Proof. intros A B; induction B; eauto using steps_more. Qed.

Lemma steps_one ceil l a b : step ceil l a b -> steps ceil a b.
Proof. intros H; eapply steps_more; [apply steps_none | exact H]. Qed.

Lemma step_more ceil ceil' l a b : ceil <= ceil' -> step ceil l a b -> step ceil' l a b.
Proof. intros Le; destruct l; cbn; auto. intros (c & A & B & C); exists c; repeat split; auto; lia. Qed.

Lemma steps_ceil ceil ceil' a b : ceil <= ceil' -> steps ceil a b -> steps ceil' a b.
Proof. intros Le S; induction S; eauto using steps, step_more. Qed.

Lemma upd_upd {A} (l : list A) i x y : upd (upd l i x) i y = upd l i y.
Proof. revert i; induction l as [|z r IH]; intros [|i]; cbn; congruence. Qed.

Lemma upd_id {A} (l : list A) i x : nth_error l i = Some x -> upd l i x = l.
Proof.
  revert i; induction l as [|z r IH]; intros [|i] H; cbn in *; try discriminate; try congruence.
  rewrite IH; auto.
Qed.

Lemma sum_pos l : 0 < sum (fun n => n) l -> exists i x, nth_error l i = Some (S x).
Proof.
  induction l as [|[|y] r IH]; cbn; intros H; [lia | | exists 0, y; auto].
  destruct (IH H) as (i & x & E); exists (S i), x; auto.
Qed.

(** Permits come together from however many leases. *)
Lemma gather ceil t d : forall m s c,
  nth_error (calls s) t = Some (C c d) -> m <= sum (fun n => n) (leases s) ->
  exists ls, sum (fun n => n) ls + m = sum (fun n => n) (leases s) /\
    steps ceil s (St (cap s) (debt s) (avail s) (closed s) (waiters s) (upd (calls s) t (C (c + m) d))
                     ls (returned s)).
Proof.
  induction m as [|m IH]; intros s c E Le.
  - exists (leases s); split; [lia|]. rewrite Nat.add_0_r, upd_id by auto.
    destruct s; apply steps_none.
  - destruct (sum_pos (leases s)) as (l & x & El); [lia|].
    set (s1 := set_call (set_lease s l (S x - 1)) t (C (c + 1) d)).
    assert (St1 : step ceil (Release t l 1) s s1).
    { cbn; exists (S x), (C c d); repeat split; auto; lia. }
    pose proof (sum_upd (fun n => n) _ _ (S x - 1) _ El) as Su; cbn -[Nat.sub] in Su.
    destruct (IH s1 (c + 1)) as (ls & S2 & St2).
    + cbn. rewrite (nth_upd _ _ _ _ _ E), Nat.eqb_refl; auto.
    + cbn -[Nat.sub]; lia.
    + exists ls; split; [cbn -[Nat.sub] in S2; lia|].
      eapply steps_app; [eapply steps_one; exact St1|].
      cbn in St2. rewrite upd_upd in St2. replace (c + 1 + m) with (c + S m) in St2 by lia. exact St2.
Qed.

Lemma forget_all ceil : forall m s, m <= sum (fun n => n) (leases s) -> m <= cap s ->
  exists ls, sum (fun n => n) ls + m = sum (fun n => n) (leases s) /\
    steps ceil s (St (cap s - m) (debt s) (avail s) (closed s) (waiters s) (calls s) ls (returned s)).
Proof.
  induction m as [|m IH]; intros s Le Lc.
  - exists (leases s); split; [lia|]. rewrite Nat.sub_0_r. destruct s; apply steps_none.
  - destruct (sum_pos (leases s)) as (l & x & El); [lia|].
    set (s1 := set_counts (set_lease s l (S x - (1 + 0))) (cap s - 1) (debt s - 0) (avail s)).
    assert (St1 : step ceil (Forget l 1 0) s s1).
    { exists (S x); repeat split; auto; lia. }
    pose proof (sum_upd (fun n => n) _ _ (S x - 1) _ El) as Su; cbn -[Nat.sub] in Su.
    destruct (IH s1) as (ls & S2 & St2).
    + cbn -[Nat.sub]; lia.
    + cbn -[Nat.sub]; lia.
    + exists ls; split; [cbn -[Nat.sub] in S2; lia|].
      eapply steps_app; [eapply steps_one; exact St1|].
      cbn -[Nat.sub] in St2. replace (cap s - 1 - m) with (cap s - S m) in St2 by lia.
      rewrite Nat.sub_0_r in St2. exact St2.
Qed.

(** ** Requests *)

Lemma arr_dec l j : (exists i n, listed l i n /\ arr n = j) \/ (forall i n, listed l i n -> arr n <> j).
Proof.
  assert (D : forall n, {home n = Listed /\ arr n = j} + {~ (home n = Listed /\ arr n = j)}).
  { intros n. destruct (home n); try (right; intros [A _]; discriminate).
    destruct (Nat.eq_dec (arr n) j); [left; auto | right; tauto]. }
  destruct (Exists_dec _ l D) as [E|E].
  - left. apply Exists_exists in E as (n & I & H & A). apply In_nth_error in I as [i I].
    exists i, n; unfold listed; auto.
  - right. intros i n [I H] A. apply E, Exists_exists. exists n; split; [eapply nth_error_In; eauto | auto].
Qed.

Lemma settled_of l ws j : same_waiters l ws ->
  (forall i n, listed l i n -> arr n = j -> sta n <> Waiting) -> settled ws j.
Proof.
  intros [A B] H w E P. destruct (arr_dec l j) as [(i & n & L & Q)|N]; [|exact (B j w E N P)].
  subst j. rewrite (A i n L) in E; injection E as <-. apply (H i n L eq_refl).
  cbn in P; destruct (sta n); discriminate || auto.
Qed.

Lemma pending_of s1 l i n : same_waiters l (waiters s1) -> listed l i n -> sta n = Waiting ->
  pending s1 (arr n).
Proof. intros [A _] L W; exists (waiter_of n); split; [eauto|]. cbn; rewrite W; auto. Qed.

Lemma oldest_of s1 l i n : same_waiters l (waiters s1) -> listed l i n -> sta n = Waiting ->
  (forall j z, listed l j z -> arr z < arr n -> sta z <> Waiting) -> oldest s1 (arr n).
Proof.
  intros A L W F; split; [eapply pending_of; eauto|].
  intros j Lt. apply settled_not. apply (settled_of l); auto.
  intros b z Lz <-; eauto.
Qed.

(** A different pool in which the same requests are listed, but for settled ones. *)
Lemma same_fewer l l' ws : same_waiters l ws ->
  (forall i n', listed l' i n' -> exists n, listed l i n /\ arr n = arr n' /\ waiter_of n = waiter_of n') ->
  (forall i n, listed l i n -> sta n = Waiting -> exists n', listed l' i n' /\ arr n' = arr n) ->
  same_waiters l' ws.
Proof.
  intros [A B] F G; split.
  - intros i n' L. destruct (F i n' L) as (n & Ln & Qa & Qw). rewrite <- Qa, <- Qw; eauto.
  - intros j w E N P. destruct (arr_dec l j) as [(i & n & L & Q)|Z]; [|exact (B j w E Z P)].
    subst j. rewrite (A i n L) in E; injection E as <-.
    assert (Wn : sta n = Waiting) by (cbn in P; destruct (sta n); discriminate || auto).
    destruct (G i n L Wn) as (n' & L' & Q). exact (N i n' L' Q).
Qed.

(** One that is listed changes. *)
Lemma same_upd l ws i n n' : inj l -> same_waiters l ws -> listed l i n ->
  home n' = Listed -> arr n' = arr n -> same_waiters (upd l i n') (upd ws (arr n) (waiter_of n')).
Proof.
  intros I [A B] L H Q. pose proof L as [E _]. pose proof (A i n L) as En. split.
  - intros j m Lm. apply (listed_upd _ _ _ _ E) in Lm. rewrite (nth_upd _ _ _ _ _ En).
    destruct Lm as [(-> & -> & _)|[Ne Lm]].
    + rewrite Q, Nat.eqb_refl. auto.
    + destruct (Nat.eqb_spec (arr n) (arr m)) as [X|X]; [|eauto].
      exfalso; apply Ne; symmetry; apply (I i j n m); auto.
  - intros j w Ew N. rewrite (nth_upd _ _ _ _ _ En) in Ew.
    destruct (Nat.eqb_spec (arr n) j) as [<-|X].
    + exfalso. apply (N i n'); auto. apply (listed_upd _ _ _ _ E); auto.
    + apply (B j w Ew). intros b z Lz Qz.
      destruct (Nat.eq_dec b i) as [->|Nb].
      * assert (z = n) by eauto using listed_fun; subst z. tauto.
      * apply (N b z); auto. apply (listed_upd _ _ _ _ E); auto.
Qed.

(** Cut, when nobody that was cut waits. *)
Lemma same_cut lo hi l k ws : same_waiters l ws ->
  (forall i n, nth_error (cut lo hi l) i = Some n -> node_ok k n) -> same_waiters (cut lo hi l) ws.
Proof.
  intros A N. apply (same_fewer l); auto.
  - intros i n' L. apply listed_cut in L as [L _]; eauto.
  - intros i n [E H] W. destruct (between lo hi (arr n)) eqn:B.
    + exfalso. assert (E' : nth_error (cut lo hi l) i = Some (cut1 lo hi n)) by (rewrite nth_cut, E; auto).
      apply N in E'. unfold cut1 in E'; rewrite H, B in E'. cbn in E'. tauto.
    + exists n; split; auto. apply listed_cut; split; auto. split; auto.
Qed.

(** ** Calls *)

(** What is listed keeps its arrival number for as long as it is in that use. *)
Lemma step2_arr l s s' i n n' : inv2 s -> step2 true l s s' -> listed (nodes s) i n -> slot s' i n' ->
  arr n' = arr n.
Proof.
  intros I St [E H] E'.
  assert (Mi : forall t c p, thr s t c p -> mind_ok (nodes s) t p)
    by (intros t c p T; exact (j_mind _ I t _ T)).
  assert (Same : nodes s' = nodes s -> arr n' = arr n).
  { intros X; unfold slot in E'; rewrite X in E'; congruence. }
  assert (Upd : forall r j m m', nth_error r i = Some n -> nth_error r j = Some m ->
    (home m = Listed -> arr m' = arr m) -> nth_error (upd r j m') i = Some n' -> arr n' = arr n).
  { intros r j m m' Er Ej K X. rewrite (nth_upd _ _ _ _ _ Ej) in X.
    destruct (Nat.eqb_spec j i) as [->|]; [|congruence].
    assert (m = n) by congruence; subst m. injection X as <-; auto. }
  assert (Cut : forall lo hi r, nth_error (cut lo hi r) i = Some n' ->
    exists m, nth_error r i = Some m /\ arr n' = arr m).
  { intros lo hi r X. rewrite nth_cut in X. destruct (nth_error r i) as [m|]; [|discriminate].
    exists m; split; auto. injection X as <-. unfold cut1. destruct (home m), (between lo hi (arr m)); auto. }
  unfold slot in E'.
  destruct l; cbn -[cut] in St;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end;
    try (apply Same; subst s'; reflexivity).
  - (* Fresh *) subst s'; cbn in E'. rewrite nth_error_app1 in E' by eauto using nth_lt. congruence.
  - (* Pop *) subst s'; cbn in E'. match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end.
    intros; congruence.
  - (* Write *) subst s'; cbn in E'.
    match goal with F : (_ /\ _) \/ _ |- _ => destruct F as [(T & Ej & Hj)|[[s0 T] [Ej Hj]]] end;
      (eapply Upd; [exact E | exact Ej | | exact E']); intros; congruence.
  - (* Publish *) subst s'; cbn in E'.
    match goal with T : thr s t _ _ |- _ => destruct (Mi _ _ _ T) as (_ & mm & Em & Hm & _) end.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end.
    unfold slot in *; intros; congruence.
  - (* Withdraw *) subst s'; cbn in E'.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end. auto.
  - (* GrantAll *) subst s'; cbn in E'.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end. auto.
  - (* GrantPart *) subst s'; cbn -[cut] in E'. apply Cut in E' as (m & Em & ->).
    match goal with K : slot _ _ _ |- _ => rewrite (nth_upd _ _ _ _ _ K) in Em end.
    destruct (Nat.eqb_spec (fst x0) i) as [Q|Q]; [|congruence].
    injection Em as <-; cbn. unfold slot in *; congruence.
  - (* CutW *) subst s'; cbn -[cut] in E'. apply Cut in E' as (mm & Em & ->).
    match goal with K : slot s (fst ?h) _ |- _ => rewrite (nth_upd _ _ _ _ _ K) in Em;
      destruct (Nat.eqb_spec (fst h) i) as [Q|Q]; [|congruence] end.
    injection Em as <-; cbn. unfold slot in *; congruence.
  - (* CutS *)
    match goal with C : match ?c with _ => _ end |- _ => destruct c end;
      repeat match goal with
      | H : exists _, _ |- _ => destruct H as [? H]
      | H : _ /\ _ |- _ => destruct H
      end; subst s'; cbn -[cut] in E'; apply Cut in E' as (mm & Em & ->); congruence.
  - (* CutAll *) subst s'; cbn -[cut] in E'; apply Cut in E' as (mm & Em & ->); congruence.
  - (* CancelIt *) subst s'; cbn in E'.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end. auto.
  - (* ShutIt *) subst s'; cbn in E'.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end. auto.
  - (* Recycle *) subst s'; cbn in E'.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact E | exact K | | exact E'] end. auto.
Qed.

Lemma step2_length l s s' : step2 true l s s' -> length (nodes s) <= length (nodes s').
Proof.
  intros St; destruct l; cbn -[cut] in St;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end;
    try (subst s'; cbn -[cut]; unfold cut; rewrite ?map_length, ?app_length, ?upd_length; lia).
  match goal with C : match ?c with _ => _ end |- _ => destruct c end;
      repeat match goal with
      | H : exists _, _ |- _ => destruct H as [? H]
      | H : _ /\ _ |- _ => destruct H
      end; subst s'; cbn -[cut]; unfold cut; rewrite map_length; lia.
Qed.

(** What a thread that chose knows of its waiter. *)
Lemma chosen_listed s t c h n : inv2 s -> thr s t c (Chosen h) -> slot s (fst h) n -> gen n = snd h ->
  sta n = Waiting -> listed (nodes s) (fst h) n /\
  forall j z, listed (nodes s) j z -> arr z < arr n -> sta z <> Waiting.
Proof.
  intros I T E G W. pose proof (j_mind _ I t _ T) as [K C]; cbn in K, C.
  assert (L : listed (nodes s) (fst h) n).
  { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
  split; eauto.
Qed.

Lemma serves_step l s s' t c p d : inv2 s -> step2 true l s s' -> thr s t c p ->
  serves (nodes s) p d -> serves (nodes s') p d.
Proof.
  intros I St T Sv h n' -> E' G W.
  pose proof (j_mind _ I t _ T) as [(n & E & Le & P) C]; cbn in *.
  destruct (step2_slots _ _ _ I St (fst h) n E) as (m & Em & G1 & G2 & G3 & _).
  assert (m = n') by (unfold slot in Em; congruence); subst m.
  assert (Gn : gen n = snd h) by lia.
  assert (Sn : sta n = Waiting).
  { destruct (sta n); auto; exfalso; rewrite G3 in W; discriminate || congruence. }
  destruct (chosen_listed s t c h n I T E Gn Sn) as [L _].
  rewrite (step2_arr _ _ _ _ _ _ I St L E'). exact (Sv h n eq_refl E Gn Sn).
Qed.

Lemma serves_not l p d : (forall h, p <> Chosen h) -> serves l p d.
Proof. intros N h n E; exfalso; exact (N h E). Qed.

(** One thread, and its call, are changed. *)
Lemma calls_one l s s' cs cs' t c p c' q d' : inv2 s -> step2 true l s s' ->
  same_calls (nodes s) (shut s) (threads s) cs -> shut s' = shut s ->
  thr s t c p -> threads s' = upd (threads s) t (Th c' q) ->
  cs' = upd cs (S t) (C c' d') -> (forall i, d' <> Closing i) -> serves (nodes s') q d' ->
  same_calls (nodes s') (shut s') (threads s') cs'.
Proof.
  intros I St ((d0 & E0 & F0) & Le & Th) Sh T Et -> N Sv.
  destruct (Th t c p T) as (d & Ed & _).
  repeat split.
  - exists d0; rewrite (nth_upd _ _ _ _ _ Ed), Sh; cbn; auto.
  - rewrite Et, !upd_length; auto.
  - intros u cu pu. rewrite Et, (nth_upd _ _ _ _ _ T), (nth_upd _ _ _ _ _ Ed). cbn.
    destruct (Nat.eqb_spec t u) as [->|Ne].
    + intros [= <- <-]; eauto.
    + intros Eu. destruct (Th u cu pu Eu) as (du & Edu & Nu & Su).
      exists du; repeat split; auto. eapply serves_step; eauto.
Qed.

(** No thread is. *)
Lemma calls_none l s s' cs : inv2 s -> step2 true l s s' ->
  same_calls (nodes s) (shut s) (threads s) cs -> shut s' = shut s -> threads s' = threads s ->
  same_calls (nodes s') (shut s') (threads s') cs.
Proof.
  intros I St ((d0 & E0 & F0) & Le & Th) Sh Et. repeat split.
  - exists d0; rewrite Sh; auto.
  - rewrite Et; auto.
  - rewrite Et; intros u cu pu Eu. destruct (Th u cu pu Eu) as (du & Edu & Nu & Su).
    exists du; repeat split; auto. eapply serves_step; eauto.
Qed.
(** ** The simulation *)

Lemma avail_empty s i n a : inv2 s -> sword s = Avail a -> ~ listed (nodes s) i n.
Proof. intros I W; pose proof (j_sword _ I) as J; rewrite W in J; apply J. Qed.

Lemma nobody_waits1 s s1 a : inv2 s -> refines s s1 -> sword s = Avail a -> nobody_waits s1.
Proof.
  intros I R W j. apply (settled_of (nodes s)); [apply R|].
  intros i n L; exfalso; eapply avail_empty; eauto.
Qed.

(** Nobody waits before a cut that empties the queue. *)
Lemma nobody_waits_cut s s' s1 lo a : inv2 s' -> refines s s1 ->
  nodes s' = cut lo None (nodes s) -> sword s' = Avail a -> nobody_waits s1.
Proof.
  intros I R En W j. apply (settled_of (nodes s)); [apply R|].
  intros i n [E H] _ Wn.
  assert (E' : slot s' i (cut1 lo None n)) by (unfold slot; rewrite En, nth_cut, E; auto).
  pose proof (j_node _ I _ _ E') as N. unfold cut1 in *. rewrite H in *.
  destruct (between lo None (arr n)).
  - unfold node_ok in N; cbn in N; tauto.
  - eapply (avail_empty _ i n a I W). split; auto.
Qed.

Lemma park ceil s1 t c d : nth_error (calls s1) t = Some (C c d) -> debt s1 = 0 -> nobody_waits s1 ->
  step ceil (Park t) s1 (St (cap s1) (debt s1) (avail s1 + c) (closed s1) (waiters s1)
    (upd (calls s1) t (C 0 d)) (leases s1) (returned s1)).
Proof. intros E D N; exists (C c d); repeat split; auto. Qed.

Definition simulates ceil s' s1 := exists s1', steps ceil s1 s1' /\ refines s' s1'.

Lemma stay ceil s' s1 : refines s' s1 -> simulates ceil s' s1.
Proof. intros R; exists s1; split; [apply steps_none | exact R]. Qed.

(** What the other lemmas about lists say, for a step that changes the words alone. *)
Lemma refines_words s s1 s' l t c p q : inv2 s -> step2 true l s s' -> refines s s1 ->
  total s' = total s -> free s' = free s -> shut s' = shut s -> clock s' = clock s ->
  leased s' + untaken s' = leased s + untaken s ->
  same_waiters (nodes s') (waiters s1) ->
  thr s t c p -> threads s' = upd (threads s) t (Th c q) -> (forall h, q <> Chosen h) -> refines s' s1.
Proof.
  intros I St [R1 R2 R3 R4 R5 R6 R7 R8] E1 E2 E3 E4 E5 A T Et Nq.
  pose proof R8 as (_ & _ & Th). destruct (Th t c p T) as (d & Ed & Nc & _).
  constructor; try congruence; auto.
  eapply (calls_one l s s' (calls s1)); eauto using serves_not. symmetry; apply upd_id; auto.
Qed.

Lemma refines_none s s1 s' l : inv2 s -> step2 true l s s' -> refines s s1 ->
  total s' = total s -> free s' = free s -> shut s' = shut s -> clock s' = clock s ->
  leased s' + untaken s' = leased s + untaken s ->
  same_waiters (nodes s') (waiters s1) -> threads s' = threads s -> refines s' s1.
Proof.
  intros I St [R1 R2 R3 R4 R5 R6 R7 R8] E1 E2 E3 E4 E5 A Et.
  constructor; try congruence; auto. eapply calls_none; eauto.
Qed.

Lemma same_unlisted l i n n' ws : nth_error l i = Some n -> home n <> Listed -> home n' <> Listed ->
  same_waiters l ws -> same_waiters (upd l i n') ws.
Proof.
  intros E H H' A. destruct (unlisted_upd _ _ _ _ E H H') as [X _].
  apply (same_fewer l); auto.
  - intros j m L; apply X in L; eauto.
  - intros j m L _; exists m; split; auto. apply X; auto.
Qed.

(** Its place changes: nothing to a request. *)
Lemma same_place l i n n' ws : inj l -> listed l i n -> home n' = Listed -> arr n' = arr n ->
  waiter_of n' = waiter_of n -> same_waiters l ws -> same_waiters (upd l i n') ws.
Proof.
  intros I L H Q E A. pose proof (same_upd l ws i n n' I A L H Q) as S.
  rewrite E, (upd_id ws) in S; auto. apply (proj1 A _ _ L).
Qed.

Lemma inv_inj s : inv2 s -> inj (nodes s).
Proof. intros I; apply list_ok_inj, I. Qed.

Lemma nth_upd_same {A} (l : list A) i x y : nth_error l i = Some y -> nth_error (upd l i x) i = Some x.
Proof. intros E; rewrite (nth_upd _ _ _ _ _ E), Nat.eqb_refl; auto. Qed.

Theorem forward ceil l s s' s1 : inv2 s -> inv ceil s1 -> refines s s1 -> step2 true l s s' -> total s' <= ceil ->
  exists s1', steps ceil s1 s1' /\ refines s' s1'.
Proof.
  intros I I1 R Hs Cl. assert (I' : inv2 s') by (eapply step2_inv; eauto). fold (simulates ceil s' s1).
  pose proof R as [R1 R2 R3 R4 R5 R6 R7 R8]. pose proof R8 as (Z0 & Zl & Zt).
  pose proof Hs as St0.
  assert (Wa : waiters s1 = waiters s1) by auto.
  destruct l; cbn -[cut] in St0.
  - (* Spawn2 *)
    exists (St (cap s1) (debt s1) (avail s1) (closed s1) (waiters s1) (calls s1 ++ [C 0 Free]) (leases s1) (returned s1)).
    split; [eapply (steps_one _ Spawn); cbn; auto|].
    subst s'; constructor; cbn; auto. destruct Z0 as (d0 & E0 & F0). repeat split.
    + exists d0; split; auto. rewrite nth_error_app1; auto. eapply nth_lt; eauto.
    + rewrite !app_length; cbn; lia.
    + intros u cu pu Eu. apply nth_snoc in Eu as [Eu|[-> [= -> ->]]].
      * destruct (Zt u cu pu Eu) as (du & Edu & Nu & Su). exists du; repeat split; auto.
        rewrite nth_error_app1; auto. eapply nth_lt; eauto.
      * exists Free; repeat split; try discriminate.
        rewrite nth_error_app2, Zl, Nat.sub_diag by lia; auto.
  - (* FastTake *) destruct St0 as (a & W & Sh & Le & ->).
    assert (Fa : free s = a) by (unfold free; rewrite W; auto).
    eexists; split; [eapply (steps_one _ (Fast k)); cbn; repeat split; eauto using nobody_waits1; try congruence; lia|].
    constructor; cbn; auto; try congruence.
    rewrite sum_snoc; lia.
  - (* Collect *) destruct St0 as (Le & ->). apply stay.
    eapply (refines_none s s1 _ _ I Hs R); eauto; cbn; auto; lia.
  - (* GiveBack *) destruct St0 as (c & p & T & Le & ->).
    destruct (Zt t c p T) as (d & Ed & Nc & Sv).
    destruct (gather ceil (S t) d m s1 c Ed) as (ls & Su & Ss); [lia|].
    eexists; split; [exact Ss|]. constructor; cbn; auto; try lia.
    eapply (calls_one _ _ _ _ _ t c p (c + m) p d I Hs R8); cbn; auto.
  - (* DropUntaken *) destruct St0 as (c & p & T & Le & ->).
    destruct (Zt t c p T) as (d & Ed & Nc & Sv).
    destruct (gather ceil (S t) d m s1 c Ed) as (ls & Su & Ss); [lia|].
    eexists; split; [exact Ss|]. constructor; cbn; auto; try lia.
    eapply (calls_one _ _ _ _ _ t c p (c + m) p d I Hs R8); cbn; auto.
  - (* Grow2 *) destruct St0 as (c & p & T & ->).
    destruct (Zt t c p T) as (d & Ed & Nc & Sv).
    eexists; split; [eapply (steps_one _ (Grow (S t) k)); cbn; exists (C c d); repeat split; eauto; cbn in Cl; lia|].
    constructor; cbn; auto; try lia.
    eapply (calls_one _ _ _ _ _ t c p (c + k) p d I Hs R8); cbn; auto.
  - (* Forget2 *) destruct St0 as (Le & Le' & ->).
    destruct (forget_all ceil m s1) as (ls & Su & Ss); [lia | lia|].
    eexists; split; [exact Ss|]. constructor; cbn; auto; lia.
  - (* Put *) destruct St0 as (c & p & a & T & _ & W & ->).
    destruct (Zt t c p T) as (d & Ed & Nc & Sv).
    assert (Fa : free s = a) by (unfold free; rewrite W; auto).
    eexists; split; [eapply (steps_one _ (Park (S t))), park; eauto using nobody_waits1|].
    constructor; cbn; auto; try lia.
    eapply (calls_one _ _ _ _ _ t c p 0 p d I Hs R8); cbn; auto.
  - (* Fresh *) destruct St0 as (c & T & Lt & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; try discriminate.
    apply (same_fewer (nodes s)); auto.
    + intros i n [E H]; apply nth_snoc in E as [E|[_ ->]]; [|discriminate]. exists n; repeat split; auto.
    + intros i n [E H] _; exists n; split; auto. split; auto. rewrite nth_error_app1; eauto using nth_lt.
  - (* Pop *) destruct St0 as (c & n & T & Lt & E & H & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; try discriminate.
    eapply same_unlisted; eauto; cbn; congruence.
  - (* Write *) destruct St0 as (c & i & k & n & Cases & Sh & Fr & ->). apply stay.
    assert (T : exists p, thr s t c p) by (destruct Cases as [(T & _)|[[s0 T] _]]; eauto).
    destruct T as [p T].
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; try discriminate.
    destruct Cases as [(_ & E & H)|(_ & E & H)]; eapply same_unlisted; eauto; cbn; congruence.
  - (* Publish *) destruct St0 as (c & i & k & s0 & n & T & Es & Sh & E & ->); subst s0.
    destruct (j_mind _ I t _ T) as (Kp & n0 & E0 & H & W & Wt & F).
    assert (n0 = n) by (unfold slot in E; congruence); subst n0.
    set (n' := Nd (gen n) (sta n) (pay n) (want n) Listed (clock s)) in *.
    assert (Fg : got_in (pay n) = free s /\ free s < k).
    { unfold free; destruct (sword s) as [a|h]; cbn in F; [destruct F as [-> Q]; cbn; split; auto; lia|].
      rewrite F; cbn; lia. }
    destruct Fg as [Fg Fk].
    eexists; split; [eapply (steps_one _ (Enqueue k)); cbn; repeat split; try congruence; lia|].
    constructor; cbn; auto.
    + rewrite app_length; cbn; lia.
    + assert (X : forall j m, listed (upd (nodes s) i n') j m <-> (j = i /\ m = n') \/ listed (nodes s) j m).
      { intros j m; rewrite (listed_upd _ _ _ _ E); split.
        - intros [(-> & -> & _)|[Ne L]]; auto.
        - intros [[-> ->]|L]; [left; auto|]. right; split; auto.
          intros ->; destruct L as [E' H']. unfold slot in E. congruence. }
      destruct R6 as [A B]. split.
      * intros j m L. apply X in L as [[-> ->]|L].
        -- cbn. rewrite nth_error_app2, R5, Nat.sub_diag by lia. cbn.
           unfold waiter_of; cbn. rewrite W, Wt, R3, Fg; auto.
        -- rewrite nth_error_app1; [exact (A _ _ L) | eapply nth_lt; eauto].
      * intros j w Ej N. apply nth_snoc in Ej as [Ej|[-> _]].
        -- apply (B j w Ej). intros b z Lz; apply (N b z), X; auto.
        -- exfalso; apply (N i n'); [apply X; auto | cbn; auto].
    + destruct (Zt t c _ T) as (d & Ed & Nc & Sv).
      eapply (calls_one _ _ _ _ _ t c _ c _ d I Hs R8 eq_refl T); cbn; auto.
      * rewrite upd_id; auto.
      * apply serves_not; destruct (sword s); discriminate.
  - (* Withdraw *) destruct St0 as (c & i & k & n & Tc & E & H & ->). apply stay.
    assert (T : exists p, thr s t c p) by (destruct Tc as [T|[s0 T]]; eauto).
    destruct T as [p T].
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; try discriminate.
    eapply same_unlisted; eauto; cbn; destruct H; congruence.
  - (* SetNewer *) destruct St0 as (Ha & ->). apply stay. eapply (refines_none s s1 _ _ I Hs R); eauto.
  - (* SetHint *) destruct St0 as (c & h & T & ->). apply stay. eapply (refines_none s s1 _ _ I Hs R); eauto.
  - (* LoadHint *) destruct St0 as (c & h & T & Hh & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* LoadNewer *) destruct St0 as (c & h & T & Hh & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* Learn *) destruct St0 as (c & T & Hh & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* Follow1 *) destruct St0 as (c & g & x & n & T & _ & _ & _ & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* Follow2 *) destruct St0 as (c & g & x & n & T & _ & _ & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* Follow3 *) destruct St0 as (c & g & x & n & T & _ & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* Choose2 *) destruct St0 as (c & h & T & Lt & Sh & ->).
    destruct (Zt t c _ T) as (d & Ed & Nc & _).
    pose proof (j_mind _ I t _ T) as [K Ce]; cbn in K, Ce.
    (* The waiter waits: it is the oldest, and is chosen unless it was already.  Or it does not. *)
    assert (D : (exists n, slot s (fst h) n /\ gen n = snd h /\ sta n = Waiting) \/
                forall n, slot s (fst h) n -> gen n = snd h -> sta n <> Waiting).
    { destruct K as (n & E & _). destruct (Nat.eq_dec (gen n) (snd h)) as [G|G].
      - destruct (sta n) eqn:Sn; [left; exists n; auto | right | right | right];
          intros m Em _; unfold slot in Em; congruence.
      - right; intros m Em Gm; unfold slot in Em; congruence. }
    destruct D as [(n & E & G & W)|N].
    + assert (L : listed (nodes s) (fst h) n).
      { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
      assert (O : oldest s1 (arr n)).
      { eapply oldest_of; eauto. }
      assert (Done : forall sx dx, nth_error (calls sx) (S t) = Some (C c dx) ->
        (dx = Chose (arr n)) -> calls sx = upd (calls s1) (S t) (C c dx) ->
        cap sx = cap s1 -> debt sx = debt s1 -> avail sx = avail s1 -> closed sx = closed s1 ->
        waiters sx = waiters s1 -> leases sx = leases s1 ->
        refines (with_thread s t (Th c (Chosen h))) sx).
      { intros sx dx Ex -> Ec X1 X2 X3 X4 X5 X6. constructor; cbn; try congruence;
          try (rewrite X3; exact R3); try (rewrite X5; exact R6).
        eapply (calls_one _ _ _ _ _ t c _ c (Chosen h) _ I Hs R8 eq_refl T); cbn; eauto; try discriminate.
        intros h' n' [= <-] E' G' W'. f_equal. unfold slot in E; congruence. }
      destruct d as [|i|i]; [| |exfalso; eapply Nc; eauto].
      * eexists; split; [eapply (steps_one _ (Choose (S t) (arr n))); cbn; exists c;
          repeat split; eauto; try congruence; apply O|].
        eapply (Done _ (Chose (arr n))); [eapply nth_upd_same; exact Ed | reflexivity ..].
      * destruct (Nat.eq_dec i (arr n)) as [->|Ne].
        -- apply stay. eapply (Done _ (Chose (arr n))); auto. rewrite upd_id; auto.
        -- (* the one that it chose before is settled *)
           pose proof (i_call _ _ I1 _ _ Ed) as [_ Oi].
           assert (Se : settled (waiters s1) i).
           { destruct (lt_eq_lt_dec i (arr n)) as [[Lti|Eqi]|Lti]; [|congruence|].
             - apply settled_not, O; auto.
             - exfalso. apply (proj1 (settled_not _ _) (Oi _ Lti)), O. }
           eexists; split; [eapply steps_more; [eapply (steps_one _ (Miss (S t))); cbn; exists c, i; eauto|
             instantiate (2 := Choose (S t) (arr n))]|].
           { exists c. split; [eapply nth_upd_same; exact Ed|].
             cbn -[upd]; repeat split; auto; try congruence; apply O. }
           eapply (Done _ (Chose (arr n))); [| reflexivity | apply upd_upd | reflexivity ..].
           change (nth_error (upd (upd (calls s1) (S t) (C c Free)) (S t) (C c (Chose (arr n)))) (S t) =
                   Some (C c (Chose (arr n)))).
           rewrite upd_upd. eapply nth_upd_same; exact Ed.
    + apply stay. constructor; cbn; auto.
      eapply (calls_one _ _ _ _ _ t c _ c (Chosen h) d I Hs R8 eq_refl T); cbn; auto.
      * rewrite upd_id; auto.
      * intros h' n' [= <-] E' G' W'. exfalso. eapply N; eauto.
  - (* GrantAll *) destruct St0 as (c & h & n & T & E & G & W & Le & ->).
    destruct (chosen_listed s t c h n I T E G W) as [L _].
    destruct (Zt t c _ T) as (d & Ed & Nc & Sv). specialize (Sv h n eq_refl E G W). subst d.
    pose proof (proj1 R6 _ _ L) as Ew. unfold waiter_of in Ew; rewrite W in Ew; cbn in Ew.
    assert (Lt : got_in (pay n) < want n).
    { pose proof (j_node _ I _ _ E) as N; unfold node_ok in N. destruct L as [_ H]; rewrite H in N.
      apply N; auto. }
    set (n' := Nd (gen n) Granted (pay n) (want n) (home n) (arr n)) in *.
    pose proof (same_upd _ (waiters s1) _ _ n' (inv_inj _ I) R6 L (proj2 L) eq_refl) as A.
    unfold waiter_of in A; cbn in A.
    set (s2 := set_call (set_waiter s1 (arr n) (Level1.W (want n) (want n) Fulfilled)) (S t)
                        (C (c - (want n - got_in (pay n))) Free)).
    assert (S1 : step ceil (Grant (S t)) s1 s2).
    { cbn -[Nat.ltb]. exists c, (arr n); eexists. repeat split; eauto. cbn -[Nat.ltb].
      destruct (Nat.ltb_spec c (want n - got_in (pay n))); [lia | reflexivity]. }
    set (s3 := add_lease (set_waiter s2 (arr n) (Level1.W (want n) 0 Fulfilled)) (want n)).
    assert (S2 : step ceil (Take (arr n)) s2 s3).
    { cbn. exists (Level1.W (want n) (want n) Fulfilled); repeat split.
      rewrite (nth_upd _ _ _ _ _ Ew), Nat.eqb_refl; auto. }
    exists s3; split; [eapply steps_more; [eapply steps_one; exact S1 | exact S2]|].
    constructor; cbn; auto.
    + rewrite !upd_length; auto.
    + rewrite upd_upd; exact A.
    + rewrite sum_snoc; lia.
    + eapply (calls_one _ _ _ _ _ t c _ _ _ Free I Hs R8 eq_refl T); cbn; auto; try discriminate.
      all: apply serves_not; discriminate.
  - (* GrantPart *) destruct St0 as (c & h & n & Tc & E & G & W & _ & Lt & ->).
    assert (T : exists p, thr s t c p /\ cert (nodes s) h).
    { destruct Tc as [[T ->]|[T ->]]; pose proof (j_mind _ I t _ T) as Q; eexists; split; eauto. }
    destruct T as (p & T & K & _).
    assert (L : listed (nodes s) (fst h) n).
    { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
    pose proof (proj1 R6 _ _ L) as Ew. unfold waiter_of in Ew; rewrite W in Ew; cbn in Ew.
    set (n' := Nd (gen n) Waiting (Head (got_in (pay n) + a)) (want n) (home n) (arr n)) in *.
    destruct (Nat.eq_dec a 0) as [->|Na].
    + (* a cut alone *) apply stay. rewrite Nat.sub_0_r in *.
      eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn -[cut]; auto; try discriminate.
      eapply (same_cut _ _ _ (clock s)); [|intros i m Em; eapply (j_node _ I' i m); exact Em].
      eapply same_place; eauto using inv_inj; cbn; auto.
      * apply L.
      * unfold waiter_of; cbn. rewrite W, Nat.add_0_r; auto.
    + destruct Tc as [[_ ?]|[Tc ->]]; [congruence|].
      destruct (Zt t c _ Tc) as (d & Ed & Nc & Sv). specialize (Sv h n eq_refl E G W). subst d.
      pose proof (same_upd _ (waiters s1) _ _ n' (inv_inj _ I) R6 L (proj2 L) eq_refl) as A.
      unfold waiter_of in A; cbn in A.
      eexists; split; [eapply (steps_one _ (Grant (S t)))|].
      { cbn -[Nat.ltb]. exists c, (arr n); eexists. repeat split; eauto. }
      cbn -[Nat.ltb cut]. destruct (Nat.ltb_spec c (want n - got_in (pay n))); [|lia].
      constructor; cbn -[cut]; auto.
      * rewrite upd_length; auto.
      * eapply (same_cut _ _ _ (clock s)); [exact A | intros i m Em; eapply (j_node _ I' i m); exact Em].
      * rewrite Nat.sub_diag in *.
        eapply (calls_one _ _ _ _ _ t c _ 0 _ Free I Hs R8 eq_refl Tc); cbn -[cut]; eauto; try discriminate.
        all: apply serves_not; discriminate.
  - (* StartS *) destruct St0 as (c & n & g & T & W & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* StartW *) destruct St0 as (c & x & T & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* WalkOn *) destruct St0 as (c & a & n & j & m & T & _ & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* WalkSees *) destruct St0 as (c & a & n & j & m & T & _ & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* Check *) destruct St0 as (c & a & n & h & b & T & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; destruct b; discriminate.
  - (* WalkEnd *) destruct St0 as (c & x & n & T & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
  - (* CutW *) destruct St0 as (c & x & n & cur & m & T & _ & E & G & W & P & Ar & ->). apply stay.
    pose proof (j_mind _ I t _ T) as [K _]; cbn in K.
    assert (L : listed (nodes s) (fst x) m).
    { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn -[cut]; auto; try (destruct cur; discriminate).
    eapply (same_cut _ _ _ (clock s)); [|intros i z Em; eapply (j_node _ I' i z); exact Em].
    eapply same_place; eauto using inv_inj; cbn; auto.
    + apply L.
    + unfold waiter_of; cbn. rewrite W, P; destruct cur; auto.
  - (* CutS *) destruct St0 as (c & g & n & cur & T & _ & W & Ar & St0).
    assert (F0 : free s = 0) by (unfold free; rewrite W; auto).
    destruct cur as [j|].
    + destruct St0 as (mj & Ej & ->). apply stay.
      eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn -[cut]; auto; try discriminate.
      eapply (same_cut _ _ _ (clock s)); auto. intros i z Em; eapply (j_node _ I' i z); exact Em.
    + destruct St0 as (Cm & ->).
      assert (A : same_waiters (cut lo None (nodes s)) (waiters s1)).
      { eapply (same_cut _ _ _ (clock s)); auto. intros i z Em; eapply (j_node _ I' i z); exact Em. }
      destruct (Nat.eq_dec m 0) as [->|Nm].
      * apply stay. rewrite Nat.sub_0_r in *. eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn -[cut]; auto; discriminate.
      * assert (m = c) by lia; subst m. rewrite Nat.sub_diag in *.
        destruct (Zt t c _ T) as (d & Ed & Nc & _).
        eexists; split; [eapply (steps_one _ (Park (S t))), park; eauto|].
        { eapply nobody_waits_cut; eauto; cbn -[cut]; auto. }
        constructor; cbn -[cut]; auto; try (rewrite R3, F0; reflexivity).
        eapply (calls_one _ _ _ _ _ t c _ 0 _ d I Hs R8 eq_refl T); cbn -[cut]; eauto.
        all: apply serves_not; discriminate.
  - (* CutAll *) destruct St0 as (c & h & n & T & W & E & Wn & Cm & ->).
    assert (F0 : free s = 0) by (unfold free; rewrite W; auto).
    assert (A : same_waiters (cut None None (nodes s)) (waiters s1)).
    { eapply (same_cut _ _ _ (clock s)); auto. intros i z Em; eapply (j_node _ I' i z); exact Em. }
    destruct (Nat.eq_dec m 0) as [->|Nm].
    + apply stay. rewrite Nat.sub_0_r in *. eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn -[cut]; auto; discriminate.
    + assert (m = c) by lia; subst m. rewrite Nat.sub_diag in *.
      destruct (Zt t c _ T) as (d & Ed & Nc & _).
      eexists; split; [eapply (steps_one _ (Park (S t))), park; eauto|].
      { eapply nobody_waits_cut; eauto; cbn -[cut]; auto. }
      constructor; cbn -[cut]; auto; try (rewrite R3, F0; reflexivity).
      eapply (calls_one _ _ _ _ _ t c _ 0 _ d I Hs R8 eq_refl T); cbn -[cut]; eauto.
      all: apply serves_not; discriminate.
  - (* CancelIt *) destruct St0 as (c & h & n & T & E & G & W & ->).
    pose proof (j_mind _ I t _ T) as K; cbn in K.
    assert (L : listed (nodes s) (fst h) n).
    { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
    pose proof (proj1 R6 _ _ L) as Ew. unfold waiter_of in Ew; rewrite W in Ew; cbn in Ew.
    destruct (Zt t c _ T) as (d & Ed & Nc & _).
    set (n' := Nd (gen n) Gone (pay n) (want n) (home n) (arr n)) in *.
    pose proof (same_upd _ (waiters s1) _ _ n' (inv_inj _ I) R6 L (proj2 L) eq_refl) as A.
    unfold waiter_of in A; cbn in A.
    eexists; split; [eapply (steps_one _ (Cancel (S t) (arr n))); cbn; do 2 eexists; repeat split; eauto|].
    constructor; cbn; auto.
    + rewrite upd_length; auto.
    + eapply (calls_one _ _ _ _ _ t c _ _ _ d I Hs R8 eq_refl T); cbn; eauto.
      all: apply serves_not; discriminate.
  - (* ShutIt *) destruct St0 as (c & h & n & Sh & T & E & G & W & ->).
    pose proof (j_mind _ I t _ T) as K; cbn in K.
    assert (L : listed (nodes s) (fst h) n).
    { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
    pose proof (proj1 R6 _ _ L) as Ew. unfold waiter_of in Ew; rewrite W in Ew; cbn in Ew.
    destruct (Zt t c _ T) as (d & Ed & Nc & _).
    set (n' := Nd (gen n) Ended (pay n) (want n) (home n) (arr n)) in *.
    pose proof (same_upd _ (waiters s1) _ _ n' (inv_inj _ I) R6 L (proj2 L) eq_refl) as A.
    unfold waiter_of in A; cbn in A.
    eexists; split; [eapply (steps_one _ (ShutOne (S t) (arr n))); cbn; do 2 eexists; repeat split; eauto; congruence|].
    constructor; cbn; auto.
    + rewrite upd_length; auto.
    + eapply (calls_one _ _ _ _ _ t c _ _ _ d I Hs R8 eq_refl T); cbn; eauto.
      all: apply serves_not; discriminate.
  - (* CloseIt *) subst s'. destruct Z0 as (d0 & E0 & F0).
    destruct (shut s) eqn:Sh.
    + (* closed already *) apply stay. constructor; cbn; auto.
    + rewrite (F0 eq_refl) in E0.
      eexists; split; [eapply (steps_one _ (CloseBit 0)); cbn; eexists; split; [exact E0 | reflexivity]|].
      constructor; cbn; auto. repeat split.
      * eexists; rewrite (nth_upd _ _ _ _ _ E0); cbn; split; [reflexivity | discriminate].
      * rewrite upd_length; auto.
      * intros u cu pu Eu. rewrite (nth_upd _ _ _ _ _ E0); cbn. apply (Zt u cu pu Eu).
  - (* Recycle *) destruct St0 as (n & E & H & ->). apply stay.
    eapply (refines_none s s1 _ _ I Hs R); eauto; cbn; auto.
    eapply same_unlisted; eauto; cbn; [congruence | destruct b; discriminate].
  - (* Abandon *) destruct St0 as (c & p & T & _ & ->). apply stay.
    eapply (refines_words s s1 _ _ _ _ _ _ I Hs R); eauto; cbn; auto; discriminate.
Qed.

(** ** The theorem *)

Lemma steps_inv ceil a b : inv ceil a -> steps ceil a b -> inv ceil b.
Proof. intros I S; induction S; eauto using step_inv. Qed.

Lemma inv_more ceil ceil' s : ceil <= ceil' -> inv ceil s -> inv ceil' s.
Proof. intros Le []; constructor; auto; lia. Qed.

(** Every run of the words is a run of the abstract queue, and they end up alike.  The ceiling of level
    1 is whatever the run needs: level 2 has none. *)
Theorem refinement n s : steps2 true (init2 n) s ->
  exists ceil s1, n <= ceil /\ steps ceil (init n) s1 /\ refines s s1.
Proof.
  intros R. remember (init2 n) as s0 eqn:E0. induction R as [s|s l s' s'' R IH Hs].
  - subst s. exists n, (St n 0 n false [] [C 0 Free] [] false); split; auto. split.
    { eapply (steps_one _ Spawn); cbn; auto. }
    constructor; cbn; auto.
    + split; [intros [|] ? [? _]; discriminate | intros [|]; discriminate].
    + split; [eexists; split; [reflexivity | auto]|]. split; [auto|]. intros [|] ? ?; discriminate.
  - destruct (IH E0) as (ceil & s1 & Le & St1 & Rf).
    set (ceil' := Nat.max ceil (total s'')).
    assert (L1 : ceil <= ceil') by apply Nat.le_max_l.
    assert (I1 : inv ceil' s1).
    { eapply inv_more; [exact L1|]. eapply steps_inv; [apply inv_init; exact Le | exact St1]. }
    assert (I2 : inv2 s') by (apply reachable2_inv; exists n; subst; exact R).
    destruct (forward ceil' l s' s'' s1 I2 I1 Rf Hs (Nat.le_max_r _ _)) as (s1' & St2 & Rf').
    exists ceil', s1'; split; [lia|]. split; [|exact Rf'].
    eapply steps_app; [eapply steps_ceil; [exact L1 | exact St1] | exact St2].
Qed.

(** What of level 1 comes with it, said of the words. *)
Corollary waits_is_pending s s1 i n : refines s s1 -> listed (nodes s) i n ->
  (sta n = Waiting <-> pending s1 (arr n)).
Proof.
  intros R L; pose proof (proj1 (f_waiters _ _ R) _ _ L) as E; split.
  - intros; eapply pending_of; eauto; apply R.
  - intros (w & Ew & P). rewrite E in Ew; injection Ew as <-.
    cbn in P; destruct (sta n); discriminate || auto.
Qed.
