(** * Level 2: stale generations, and who pays for a retry

    [exchanges] are the transitions by which a thread changes the word of a waiter that was published;
    [changes] are those by which anybody changes what a retry may be about: the state word, or the word
    of a waiter in the queue. *)

From Coq Require Import List Arith Lia Bool.
Import ListNotations.
Require Import Level1 Level2.

(** The waiter whose word a thread is about to exchange. *)
Definition subject (p : phase2) : option handle :=
  match p with Cert h | Chosen h | Known h | Walk (AtW h) _ _ => Some h | _ => None end.
Definition exchanges (l : label2) : option nat :=
  match l with GrantAll t | GrantPart t _ | CutW t _ | CancelIt t | ShutIt t => Some t | _ => None end.

(** ** Kinds of transitions, each 0 or 1, so that they can be counted *)

Definition joins l := match l with Publish _ => 1 | _ => 0 end.
Definition settles l := match l with GrantAll _ | CancelIt _ | ShutIt _ => 1 | _ => 0 end.
Definition cuts_out l := match l with GrantPart _ 0 | CutW _ _ | CutS _ _ _ | CutAll _ _ => 1 | _ => 0 end.
Definition places l := match l with GrantPart _ (S _) | Put _ => 1 | _ => 0 end.
(** A call begins that takes at once, closes, or brings permits. *)
Definition takes l := match l with FastTake _ => 1 | _ => 0 end.
Definition closes l := match l with CloseIt => 1 | _ => 0 end.
Definition brings l := match l with GiveBack _ _ | DropUntaken _ _ | Grow2 _ _ => 1 | _ => 0 end.

Definition changes l := takes l + closes l + joins l + settles l + cuts_out l + places l.

(** Runs with their labels, the last one first. *)
Inductive run2 : list label2 -> state2 -> state2 -> Prop :=
| run2_none s : run2 [] s s
| run2_more tr s l s' s'' : run2 tr s s' -> step2 true l s' s'' -> run2 (l :: tr) s s''.

Definition count (f : label2 -> nat) (tr : list label2) := sum f tr.

(** What is left to be paid: a listed request can be settled if it waits, and cut; a hand can be
    emptied. *)
Definition weight (n : node) : nat :=
  match home n with Listed => match sta n with Waiting => 2 | _ => 1 end | _ => 0 end.
Definition busy (t : thread) : nat := Nat.min 1 (carry t).

(** * Scripts *)

Ltac open_step St :=
  repeat match goal with
  | H : exists _, _ |- _ => destruct H as [? H]
  | H : _ /\ _ |- _ => destruct H
  end.

Lemma subject_known s t c p h : inv2 s -> thr s t c p -> subject p = Some h -> known (nodes s) h.
Proof.
  intros I T E. pose proof (j_mind _ I t _ T) as M.
  destruct p as [| | | | | | | a n d | | ]; cbn in E; try discriminate; cbn in M.
  - injection E as <-; apply M.
  - injection E as <-; apply M.
  - destruct a; [discriminate|]. injection E as <-; apply M.
  - injection E as <-; apply M.
Qed.

(** An exchange that succeeds is on the waiter that the thread has the handle of, in that very use of
    the slot, in the queue, and waiting. *)
Theorem exchange_hits_its_waiter l s s' t c p h : reachable2 true s -> step2 true l s s' ->
  exchanges l = Some t -> thr s t c p -> subject p = Some h ->
  exists n, listed (nodes s) (fst h) n /\ gen n = snd h /\ sta n = Waiting.
Proof.
  intros R St X T E. apply reachable2_inv in R.
  pose proof (subject_known _ _ _ _ _ R T E) as K.
  assert (F : forall x n, x = h -> slot s (fst x) n -> gen n = snd x -> sta n = Waiting ->
              exists n, listed (nodes s) (fst h) n /\ gen n = snd h /\ sta n = Waiting).
  { intros x n -> En G W. exists n; repeat split; auto.
    eapply known_listed; eauto. eapply (j_node _ R); eauto. }
  destruct l; cbn in X; try discriminate; injection X as ->; cbn -[cut] in St; open_step St;
    try match goal with H : _ /\ _ \/ _ /\ _ |- _ => destruct H as [[H _]|[H _]] end;
    match goal with H : thr s t _ _ |- _ =>
      match type of H with thr s t _ p => fail 1 | _ => unfold thr in T, H; rewrite T in H; injection H as <- -> end
    end; cbn in E; injection E as <-; eapply F; eauto.
Qed.

(** A generation that is over is over for good. *)
Lemma generations_grow s s' i n n' : reachable2 true s -> steps2 true s s' ->
  slot s i n -> slot s' i n' -> gen n <= gen n'.
Proof.
  intros R Ss E. revert n'. induction Ss as [s|s l s1 s2 H1 IH H2]; intros n' E'.
  - unfold slot in *; assert (n = n') by congruence; subst; auto.
  - assert (R1 : reachable2 true s1).
    { destruct R as [k R]. exists k. clear -R H1. induction H1; eauto using steps2_more. }
    destruct (nth_error (nodes s1) i) as [m|] eqn:Em.
    + specialize (IH R E m Em).
      destruct (settled_once2 _ _ _ _ _ R1 H2 Em) as (m' & Em' & Le & _).
      unfold slot in *; assert (m' = n') by congruence; subst; lia.
    + exfalso. clear -H1 E Em R. destruct R as [k R].
      assert (Q : exists m, slot s1 i m); [|destruct Q as [m Q]; unfold slot in Q; congruence].
      clear Em. induction H1 as [s|s l s1 s2 H1 IH H2]; [exists n; auto|].
      destruct (IH R E) as [m Em].
      assert (R1 : reachable2 true s1).
      { exists k. clear -R H1. induction H1; eauto using steps2_more. }
      destruct (settled_once2 _ _ _ _ _ R1 H2 Em) as (m' & Em' & _); eauto.
Qed.

Theorem a_stale_generation_never_succeeds l s s' s'' i g n t c p : reachable2 true s ->
  slot s i n -> g < gen n -> steps2 true s s' ->
  exchanges l = Some t -> thr s' t c p -> subject p = Some (i, g) -> ~ step2 true l s' s''.
Proof.
  intros R E Lt Ss X T P St.
  assert (R' : reachable2 true s').
  { destruct R as [k R]. exists k. clear -R Ss. induction Ss; eauto using steps2_more. }
  destruct (exchange_hits_its_waiter _ _ _ _ _ _ _ R' St X T P) as (m & [Em _] & Gm & _).
  pose proof (generations_grow _ _ _ _ _ R Ss E Em). cbn in Gm. lia.
Qed.

(** ** Close *)

(** Once the bit is set, a thread that has not chosen its waiter before grants nothing any more. *)
Lemma not_chosen_stays l s s' t : step2 true l s s' -> shut s = true ->
  (forall c h, ~ thr s t c (Chosen h)) -> shut s' = true /\ forall c h, ~ thr s' t c (Chosen h).
Proof.
  intros St Sh N.
  assert (Upd : forall c0 p0 u c1 q, nth_error (threads s) u = Some (Th c0 p0) ->
            (forall h, q = Chosen h -> p0 = q) ->
            forall c h, nth_error (upd (threads s) u (Th c1 q)) t <> Some (Th c (Chosen h))).
  { intros c0 p0 u c1 q E Q c h F. rewrite (nth_upd _ _ _ _ _ E) in F.
    destruct (Nat.eqb_spec u t) as [->|].
    - injection F as -> ->. apply (N c0 h). unfold thr. rewrite E. f_equal; f_equal; eauto.
    - exact (N c h F). }
  destruct l; cbn -[cut] in St; open_step St;
    repeat (match goal with H : _ \/ _ |- _ => destruct H end; open_step St);
    try (subst s'; cbn -[cut]; split; [auto | exact N]);
    try (subst s'; cbn -[cut]; split; [auto|]; unfold thr; cbn -[cut]; eapply Upd; eauto;
         try discriminate; match goal with |- forall h, (match ?x with _ => _ end) = _ -> _ => destruct x; discriminate end);
    try congruence.
  - subst s'; cbn; split; auto. intros c h F. unfold thr in F; cbn in F.
    apply nth_snoc in F as [F|[_ F]]; [exact (N c h F) | discriminate].
  - match goal with H : match ?x with _ => _ end |- _ => destruct x end; open_step St;
      (subst s'; cbn -[cut]; split; [auto|]; unfold thr; cbn -[cut]; eapply Upd; eauto; discriminate).
Qed.

Theorem no_new_grant_after_close2 s s' s'' t a : steps2 true s s' -> shut s = true ->
  (forall c h, ~ thr s t c (Chosen h)) ->
  ~ step2 true (GrantAll t) s' s'' /\ (0 < a -> ~ step2 true (GrantPart t a) s' s'').
Proof.
  intros Ss Sh N.
  assert (X : shut s' = true /\ forall c h, ~ thr s' t c (Chosen h)).
  { induction Ss; auto. destruct IHSs; auto. eapply not_chosen_stays; eauto. }
  destruct X as [_ X]. split.
  - intros (c & h & n & T & _). exact (X c h T).
  - intros La (c & h & n & [[_ A]|[T _]] & _); [lia | exact (X c h T)].
Qed.

(** ** What is charged to whom *)

Lemma weight_cut lo hi l : sum weight (cut lo hi l) <= sum weight l.
Proof.
  unfold cut; induction l as [|n r IH]; cbn; auto.
  assert (weight (cut1 lo hi n) <= weight n); [|lia].
  unfold cut1, weight. destruct (home n) eqn:H; rewrite ?H; auto.
  destruct (between lo hi (arr n)); cbn; rewrite ?H; lia.
Qed.

(** Something leaves. *)
Lemma weight_cut_some lo hi l i n : listed l i n -> between lo hi (arr n) = true ->
  sum weight (cut lo hi l) + 1 <= sum weight l.
Proof.
  revert i; induction l as [|m r IH]; intros i [E H] B; [destruct i; discriminate|].
  cbn. pose proof (weight_cut lo hi r) as Le. unfold cut in *. destruct i as [|i]; cbn in E.
  - injection E as ->. assert (weight (cut1 lo hi n) = 0) by (unfold weight, cut1; rewrite H, B; auto).
    assert (1 <= weight n) by (unfold weight; rewrite H; destruct (sta n); lia). lia.
  - assert (weight (cut1 lo hi m) <= weight m).
    { unfold cut1, weight. destruct (home m) eqn:Hm; rewrite ?Hm; auto.
      destruct (between lo hi (arr m)); cbn; rewrite ?Hm; lia. }
    specialize (IH i (conj E H) B). lia.
Qed.

Lemma weight_upd l i n n' : nth_error l i = Some n ->
  sum weight (upd l i n') + weight n = sum weight l + weight n'.
Proof. apply (sum_upd weight). Qed.

Lemma weight_listed n : home n = Listed -> weight n = match sta n with Waiting => 2 | _ => 1 end.
Proof. intros H; unfold weight; rewrite H; auto. Qed.

Lemma weight_unlisted n : home n <> Listed -> weight n = 0.
Proof. intros H; unfold weight; destruct (home n); tauto. Qed.

Lemma step2_weight l s s' : inv2 s -> step2 true l s s' ->
  sum weight (nodes s') + (settles l + cuts_out l) <= sum weight (nodes s) + 2 * joins l.
Proof.
  intros I St.
  assert (Same : nodes s' = nodes s -> settles l + cuts_out l = 0 ->
    sum weight (nodes s') + (settles l + cuts_out l) <= sum weight (nodes s) + 2 * joins l).
  { intros -> ->; lia. }
  assert (Un : forall i n n', slot s i n -> home n <> Listed -> home n' <> Listed ->
    nodes s' = upd (nodes s) i n' -> sum weight (nodes s') = sum weight (nodes s)).
  { intros i n n' E H H' ->. pose proof (weight_upd _ _ _ n' E) as Q.
    rewrite !weight_unlisted in Q by auto. lia. }
  destruct l; cbn -[cut] in St; open_step St;
    try (apply Same; [subst s'; reflexivity | reflexivity]).
  - (* Fresh *) subst s'; cbn. rewrite sum_snoc; cbn; lia.
  - (* Pop *) subst s'. erewrite Un; [cbn; lia | eassumption | congruence | | reflexivity]. cbn; congruence.
  - (* Write *)
    assert (E : slot s x0 x2 /\ home x2 <> Listed) by (intuition congruence).
    destruct E as [E Hx]. subst s'. erewrite Un; [cbn; lia | exact E | exact Hx | | reflexivity].
    cbn; congruence.
  - (* Publish *)
    match goal with T : thr s t _ _ |- _ => destruct (j_mind _ I t _ T) as (_ & n0 & E0 & H0' & W0 & _) end.
    match goal with K : slot s ?i ?n |- _ => assert (n0 = n) by (unfold slot in K; congruence); subst n0;
      pose proof (weight_upd _ _ _ (Nd (gen n) (sta n) (pay n) (want n) Listed (clock s)) E0) as Q;
      rewrite (weight_unlisted n) in Q by congruence end.
    rewrite (weight_listed (Nd _ _ _ _ Listed _)) in Q by auto. cbn in Q. rewrite W0 in Q.
    subst s'; cbn in *. rewrite W0. lia.
  - (* Withdraw *) subst s'. erewrite Un; [cbn; lia | eassumption | | | reflexivity]; [intuition congruence | cbn; discriminate].
  - (* GrantAll *)
    match goal with T : thr s t _ (Chosen ?h), E : slot s (fst ?h) ?n |- _ =>
      assert (L : listed (nodes s) (fst h) n) by (split; [exact E | eapply known_listed; eauto;
        [apply (j_mind _ I t _ T) | eapply (j_node _ I); eauto]]);
      pose proof (weight_upd _ _ _ (Nd (gen n) Granted (pay n) (want n) (home n) (arr n)) E) as Q
    end.
    rewrite !weight_listed in Q by apply L. cbn in Q.
    match goal with W : sta _ = Waiting |- _ => rewrite W in Q end. subst s'; cbn in *. lia.
  - (* GrantPart *)
    assert (K : cert (nodes s) x0) by (match goal with H : _ \/ _ |- _ =>
      destruct H as [[T _]|[T _]]; apply (j_mind _ I t _ T) end).
    match goal with E : slot s (fst ?h) ?n |- _ =>
      assert (L : listed (nodes s) (fst h) n) by (split; [exact E | eapply known_listed; eauto;
        [apply K | eapply (j_node _ I); eauto]]);
      set (n' := Nd (gen n) Waiting (Head (got_in (pay n) + a)) (want n) (home n) (arr n)) in *;
      pose proof (weight_upd _ _ _ n' E) as Q
    end.
    rewrite !weight_listed in Q by apply L. cbn in Q.
    match goal with W : sta _ = Waiting |- _ => rewrite W in Q end.
    subst s'; cbn -[cut].
    destruct a as [|a]; [|cbn; pose proof (weight_cut None (Some (arr x1)) (upd (nodes s) (fst x0) n')); lia].
    destruct (pay x1) as [j|g] eqn:P; [|exfalso; match goal with H : 0 = 0 -> _ |- _ => apply H; auto end].
    destruct (l_link _ (j_list _ I) _ _ _ L P) as (m & Lm & Lt & _).
    assert (Lm' : listed (upd (nodes s) (fst x0) n') j m).
    { apply (listed_upd _ _ _ _ (proj1 L)); right; split; auto. intros ->.
      assert (m = x1) by eauto using listed_fun; subst; lia. }
    pose proof (weight_cut_some None (Some (arr x1)) _ _ _ Lm') as Z. cbn in Z.
    rewrite (proj2 (Nat.ltb_lt _ _) Lt) in Z. specialize (Z eq_refl). cbn. lia.
  - (* CutW *)
    match goal with T : thr s t _ (Walk (AtW ?h) ?n ?cur), E : slot s (fst ?h) ?m, P : pay ?m = Link ?n |- _ =>
      pose proof (j_mind _ I t _ T) as [K S0]; cbn in K, S0;
      assert (L : listed (nodes s) (fst h) m) by (split; [exact E | eapply known_listed; eauto;
        eapply (j_node _ I); eauto]);
      destruct (l_link _ (j_list _ I) _ _ _ L P) as (q & Lq & Lt & _);
      assert (Tr : on_track (nodes s) (AtW h) n q) by (split; [exact Lq | exists m; auto]);
      destruct (S0 q Tr) as [_ S2];
      set (m' := Nd (gen m) Waiting (link_to cur) (want m) (home m) (arr m)) in *;
      pose proof (weight_upd _ _ _ m' E) as Q;
      assert (Lq' : listed (upd (nodes s) (fst h) m') n q) by
        (apply (listed_upd _ _ _ _ E); right; split; auto; intros ->;
         assert (q = m) by eauto using listed_fun; subst; lia);
      assert (B : between lo (Some (arr m)) (arr q) = true);
      [|pose proof (weight_cut_some lo (Some (arr m)) _ _ _ Lq' B) as Z]
    end.
    { unfold between. rewrite (proj2 (Nat.ltb_lt _ _) Lt), andb_true_r.
      match goal with A : arr_of s ?c lo |- _ => destruct c as [j|]; destruct lo as [b|]; cbn in A; try tauto end.
      match goal with A : exists _, _ |- _ => destruct A as (w & Ew & <-) end.
      destruct (S2 j eq_refl) as (z & Lz & Le).
      assert (z = w) by (destruct Lz; unfold slot in Ew; congruence); subst z.
      apply Nat.ltb_lt. destruct (Nat.eq_dec (arr w) (arr q)) as [Eq|Ne]; [|lia].
      exfalso. assert (j = x1) by (eapply (l_inj _ (j_list _ I)); eauto). congruence. }
    rewrite !weight_listed in Q by apply L. cbn in Q.
    match goal with W : sta _ = Waiting |- _ => rewrite W in Q end.
    subst s'; cbn -[cut] in *. lia.
  - (* CutS *)
    match goal with T : thr s t _ (Walk (AtS ?g) ?n ?cur), W : sword s = Queue (?n, ?g) |- _ =>
      pose proof (j_mind _ I t _ T) as [K S0]; cbn in K, S0;
      pose proof (j_sword _ I) as Sw; rewrite W in Sw; destruct Sw as (q & Lq & Gq & _); cbn in Lq, Gq;
      destruct (S0 q (conj Lq Gq)) as [_ S2] end.
    assert (B : between lo None (arr q) = true).
    { unfold between. rewrite andb_true_r.
      match goal with A : arr_of s ?c lo |- _ => destruct c as [j|]; destruct lo as [b|]; cbn in A; try tauto end.
      match goal with A : exists _, _ /\ arr _ = b |- _ => destruct A as (w & Ew & <-) end.
      destruct (S2 j eq_refl) as (z & Lz & Le).
      assert (z = w) by (destruct Lz; unfold slot in Ew; congruence); subst z.
      apply Nat.ltb_lt. destruct (Nat.eq_dec (arr w) (arr q)) as [Eq|Ne]; [|lia].
      exfalso. assert (j = x1) by (eapply (l_inj _ (j_list _ I)); eauto). congruence. }
    pose proof (weight_cut_some lo None _ _ _ Lq B) as Z.
    match goal with H : match ?x with _ => _ end |- _ => destruct x end; open_step St;
      subst s'; cbn -[cut]; lia.
  - (* CutAll *)
    match goal with W : sword s = Queue ?h |- _ =>
      pose proof (j_sword _ I) as Sw; rewrite W in Sw; destruct Sw as (q & Lq & _) end.
    pose proof (weight_cut_some None None _ _ _ Lq eq_refl) as Z. subst s'; cbn -[cut]; lia.
  - (* CancelIt *)
    match goal with T : thr s t _ (Known ?h), E : slot s (fst ?h) ?n |- _ =>
      assert (L : listed (nodes s) (fst h) n) by (split; [exact E | eapply known_listed; eauto;
        [apply (j_mind _ I t _ T) | eapply (j_node _ I); eauto]]);
      pose proof (weight_upd _ _ _ (Nd (gen n) Gone (pay n) (want n) (home n) (arr n)) E) as Q
    end.
    rewrite !weight_listed in Q by apply L. cbn in Q.
    match goal with W : sta _ = Waiting |- _ => rewrite W in Q end. subst s'; cbn in *. lia.
  - (* ShutIt *)
    match goal with T : thr s t _ (Known ?h), E : slot s (fst ?h) ?n |- _ =>
      assert (L : listed (nodes s) (fst h) n) by (split; [exact E | eapply known_listed; eauto;
        [apply (j_mind _ I t _ T) | eapply (j_node _ I); eauto]]);
      pose proof (weight_upd _ _ _ (Nd (gen n) Ended (pay n) (want n) (home n) (arr n)) E) as Q
    end.
    rewrite !weight_listed in Q by apply L. cbn in Q.
    match goal with W : sta _ = Waiting |- _ => rewrite W in Q end. subst s'; cbn in *. lia.
  - (* Recycle *) subst s'. erewrite Un; [cbn; lia | eassumption | congruence | | reflexivity].
    cbn; destruct b; discriminate.
Qed.

(** Hands: whoever places a permit empties his hand, and it has to be filled again. *)
Lemma step2_busy l s s' : step2 true l s s' ->
  sum busy (threads s') + places l <= sum busy (threads s) + (brings l + settles l).
Proof.
  intros St.
  assert (Same : threads s' = threads s -> places l = 0 ->
    sum busy (threads s') + places l <= sum busy (threads s) + (brings l + settles l)) by (intros -> ->; lia).
  assert (Upd : forall t c p c' q, thr s t c p ->
    sum busy (upd (threads s) t (Th c' q)) + Nat.min 1 c = sum busy (threads s) + Nat.min 1 c').
  { intros t c p c' q T. apply (sum_upd busy _ _ (Th c' q) _ T). }
  destruct l; cbn -[cut Nat.min Nat.sub] in St; open_step St;
    repeat (match goal with H : _ \/ _ |- _ => destruct H end; open_step St);
    try (apply Same; [subst s'; reflexivity | reflexivity]);
    try (match goal with H : match ?x with _ => _ end |- _ => destruct x end; open_step St);
    try (subst s'; cbn -[cut Nat.min Nat.sub];
         match goal with T : thr s ?t ?c ?p |- context [upd (threads _) ?t (Th ?c' ?q)] =>
           pose proof (Upd t c p c' q T); cbn -[cut Nat.min Nat.sub] in *; lia
         end).
  - (* Spawn2 *) subst s'; cbn; rewrite sum_snoc; cbn; lia.
  - (* GrantPart, a cut *) subst a s'; cbn -[cut Nat.min Nat.sub].
    match goal with T : thr s t ?c (Cert ?h) |- _ => pose proof (Upd t c (Cert h) (c - 0) (Cert h) T) end. lia.
  - (* GrantPart *) subst a s'; cbn -[cut Nat.min Nat.sub].
    match goal with T : thr s t ?c (Chosen ?h) |- _ => pose proof (Upd t c (Chosen h) (c - c) (Cert h) T) end.
    destruct x; cbn -[cut Nat.min Nat.sub]; lia.
Qed.

Lemma run2_steps2 tr s s' : run2 tr s s' -> steps2 true s s'.
Proof. intros R; induction R; eauto using steps2_none, steps2_more. Qed.

Lemma run2_bounds n tr s : run2 tr (init2 n) s ->
  sum weight (nodes s) + (count settles tr + count cuts_out tr) <= 2 * count joins tr /\
  sum busy (threads s) + count places tr <= count brings tr + count settles tr.
Proof.
  intros R. remember (init2 n) as s0 eqn:E0. induction R as [s|tr s l s1 s2 R IH Hs].
  - subst; cbn; lia.
  - destruct (IH E0) as [A B].
    assert (I : inv2 s1) by (apply reachable2_inv; exists n; subst s; eapply run2_steps2; eauto).
    pose proof (step2_weight _ _ _ I Hs). pose proof (step2_busy _ _ _ Hs).
    unfold count in *. change (sum ?f (l :: tr)) with (f l + sum f tr).
    repeat match goal with |- context [sum ?f (l :: tr)] => change (sum f (l :: tr)) with (f l + sum f tr) end.
    lia.
Qed.

(** All the exchanges that ever changed a word are paid for by calls that began: one each for a fast
    acquire, a close and a call that brings permits, and five for a request that joined. *)
Theorem work_is_bounded n tr s : run2 tr (init2 n) s ->
  count changes tr <= count takes tr + count closes tr + count brings tr + 5 * count joins tr.
Proof.
  intros R. destruct (run2_bounds _ _ _ R) as [A B].
  assert (E : count changes tr = count takes tr + count closes tr + count joins tr + count settles tr +
              count cuts_out tr + count places tr).
  { clear. unfold count, changes. induction tr as [|l tr IH]; cbn; auto. lia. }
  lia.
Qed.

(** Nothing changes by itself: if none of the transitions between two moments is one of [changes], the
    state word is what it was, and so are all words in the queue.  So a retry, because an exchange
    failed or an anchor changed, is charged to one of them. *)
Lemma step2_quiet l s s' : inv2 s -> step2 true l s s' -> changes l = 0 ->
  sword s' = sword s /\ shut s' = shut s /\ forall i n, listed (nodes s) i n -> listed (nodes s') i n.
Proof.
  intros I St Q.
  assert (Upd : forall i n n', slot s i n -> home n <> Listed -> forall j m,
    listed (nodes s) j m -> listed (upd (nodes s) i n') j m).
  { intros i n n' E H j m L. apply (listed_upd _ _ _ _ E). right; split; auto.
    intros ->. apply H. destruct L as [E' H']. unfold slot in E; congruence. }
  destruct l; cbn in Q; try discriminate; try (destruct a; discriminate); cbn -[cut] in St; open_step St;
    try (subst s'; cbn; split; [auto | split; auto]; fail).
  - (* Fresh *) subst s'; cbn; split; auto; split; auto. intros j m [E H']; split; auto.
    rewrite nth_error_app1; eauto using nth_lt.
  - (* Pop *) subst s'; cbn; split; auto; split; auto; intros; eapply Upd; eauto; congruence.
  - (* Write *)
    assert (E : slot s x0 x2 /\ home x2 <> Listed) by (intuition congruence).
    subst s'; cbn; split; auto; split; auto; intros; eapply Upd; intuition eauto.
  - (* Withdraw *) subst s'; cbn; split; auto; split; auto; intros; eapply Upd; eauto; intuition congruence.
  - (* Recycle *) subst s'; cbn; split; auto; split; auto; intros; eapply Upd; eauto; congruence.
Qed.

Theorem a_retry_has_a_cause tr s s' : reachable2 true s -> run2 tr s s' -> count changes tr = 0 ->
  sword s' = sword s /\ shut s' = shut s /\ forall i n, listed (nodes s) i n -> listed (nodes s') i n.
Proof.
  intros Rs R. induction R as [s|tr s l s1 s2 R IH Hs]; [auto|].
  unfold count; change (sum changes (l :: tr)) with (changes l + sum changes tr). intros Q.
  destruct (IH Rs) as (A & B & F); [unfold count; lia|].
  assert (R1 : reachable2 true s1).
  { destruct Rs as [k Rk]. exists k. apply run2_steps2 in R. clear -R Rk. induction R; eauto using steps2_more. }
  destruct (step2_quiet _ _ _ (reachable2_inv _ R1) Hs) as (A' & B' & F'); [lia|].
  split; [congruence | split; [congruence | auto]].
Qed.
