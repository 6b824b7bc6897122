(** * Level 1: the abstract queue

    The semaphore as a transition system: one shared state, and one [label] for each atomic
    transition that any thread may make.  Any number of calls and of requests: both are lists that
    only grow, and a position in the list is a name for good.  The position of a request is its
    arrival number, so strict FIFO can be said with [<].

    A step says *what* may happen, never who has to do it: whoever likes may cancel, drop, shut, or
    take.  The real program has fewer behaviours, so what holds here for every run holds there.

    The first page has the definitions, [Statements.v] the theorems in one list. *)

From Coq Require Import List Arith Lia Bool.
Import ListNotations.

(** ** Lists that are changed in one place *)

Fixpoint upd {A} (l : list A) (i : nat) (x : A) : list A :=
  match l, i with
  | [], _ => []
  | _ :: r, 0 => x :: r
  | y :: r, S j => y :: upd r j x
  end.

Fixpoint sum {A} (f : A -> nat) (l : list A) : nat :=
  match l with [] => 0 | x :: r => f x + sum f r end.

(** ** The state *)

(** [Pending] is the only status that can still change. *)
Inductive status := Pending | Fulfilled | Cancelled | Shut.

(** A request that joined the queue.  [got] is what is reserved for it: a partial grant while it is
    pending; all it needs when it is fulfilled, until it is polled or dropped; nothing after that. *)
Record waiter := W { need : nat; got : nat; stat : status }.

(** What a running call is about: nothing in particular; it has [Chose]n the waiter that it will
    serve next; or it is a [close] which set its bit and has the [i] oldest waiters still to look
    at. *)
Inductive phase := Free | Chose (i : nat) | Closing (i : nat).

(** A call, and the permits that it carries in its hand. *)
Record call := C { hand : nat; doing : phase }.

Record state := St {
  cap : nat;                (** N: how many permits there are *)
  debt : nat;               (** what a shrink has still to collect *)
  avail : nat;              (** permits that can be taken at once *)
  closed : bool;            (** the CLOSED bit *)
  waiters : list waiter;    (** every request that ever joined, in the order of arrival *)
  calls : list call;        (** every call that ever ran *)
  leases : list nat;        (** every lease that ever was, with the permits it still owns *)
  returned : bool           (** ghost: some [close] has returned *)
}.

Definition held s := sum (fun n => n) (leases s) + sum hand (calls s).
Definition reserved s := sum got (waiters s).

(** The arrival number [i] is not that of a pending waiter. *)
Definition settled (l : list waiter) i := forall w, nth_error l i = Some w -> stat w <> Pending.
Definition pending s i := exists w, nth_error (waiters s) i = Some w /\ stat w = Pending.
Definition nobody_waits s := forall i, settled (waiters s) i.
Definition oldest s i := pending s i /\ forall j, j < i -> ~ pending s j.

(** ** The transitions *)

Inductive label :=
| Spawn                       (* a call begins *)
| Fast (k : nat)              (* [try_acquire], and the first poll of [acquire]: k permits at once *)
| Enqueue (k : nat)           (* a request for k joins the queue, with whatever is available *)
| Take (i : nat)              (* a fulfilled waiter is polled: its grant becomes a lease *)
| Cancel (t i : nat)          (* the pending i leaves; t carries its partial grant *)
| Drop (t i : nat)            (* the fulfilled i is dropped unpolled; t carries its grant *)
| Release (t l n : nat)       (* n permits of the lease l go into the hand of t *)
| Split (l n : nat)           (* n permits of the lease l become a lease of their own *)
| Merge (l m : nat)           (* all of the lease m goes to the lease l *)
| Forget (l x y : nat)        (* the lease l gives up x + y for good: N falls by x, debt by y *)
| Choose (t i : nat)          (* t, open and without debt, decides to serve the oldest waiter i *)
| Miss (t : nat)              (* the chosen one was settled by others in between *)
| Grant (t : nat)             (* the chosen one gets what it lacks, or all that t carries *)
| Park (t : nat)              (* nobody waits: what t carries becomes available *)
| Pay (t m : nat)             (* m permits that t carries pay debt *)
| PayAvail (m : nat)          (* m available permits pay debt *)
| Grow (t k : nat)            (* N grows by k; t carries the new permits *)
| Shrink (k a : nat)          (* N falls by k, paid by a that are available; the rest is debt *)
| CloseBit (t : nat)          (* t sets CLOSED *)
| ShutOne (t i : nat)         (* CLOSED: anybody ends the pending i; t carries its partial grant *)
| Look (t : nat)              (* the closing t sees that the next waiter is settled *)
| CloseReturn (t : nat).      (* the closing t has seen them all *)

Definition set_call s t c :=
  St (cap s) (debt s) (avail s) (closed s) (waiters s) (upd (calls s) t c) (leases s) (returned s).
Definition set_waiter s i w :=
  St (cap s) (debt s) (avail s) (closed s) (upd (waiters s) i w) (calls s) (leases s) (returned s).
Definition set_lease s l n :=
  St (cap s) (debt s) (avail s) (closed s) (waiters s) (calls s) (upd (leases s) l n) (returned s).
Definition add_lease s n :=
  St (cap s) (debt s) (avail s) (closed s) (waiters s) (calls s) (leases s ++ [n]) (returned s).
Definition set_counts s N d a :=
  St N d a (closed s) (waiters s) (calls s) (leases s) (returned s).

(** [step ceil l s s']: the transition [l] is possible in [s] and leads to [s'].  [ceil] is the
    ceiling of N. *)
Definition step (ceil : nat) (l : label) (s s' : state) : Prop :=
  match l with
  | Spawn =>
      s' = St (cap s) (debt s) (avail s) (closed s) (waiters s) (calls s ++ [C 0 Free]) (leases s) (returned s)
  | Fast k =>
      closed s = false /\ debt s = 0 /\ nobody_waits s /\ k <= avail s /\
      s' = add_lease (set_counts s (cap s) (debt s) (avail s - k)) k
  | Enqueue k =>
      closed s = false /\ avail s < k /\ (debt s = 0 \/ avail s = 0) /\
      s' = St (cap s) (debt s) 0 (closed s) (waiters s ++ [W k (avail s) Pending])
              (calls s) (leases s) (returned s)
  | Take i => exists w,
      nth_error (waiters s) i = Some w /\ stat w = Fulfilled /\ got w = need w /\
      s' = add_lease (set_waiter s i (W (need w) 0 Fulfilled)) (need w)
  | Cancel t i => exists w c,
      nth_error (waiters s) i = Some w /\ stat w = Pending /\ nth_error (calls s) t = Some c /\
      s' = set_call (set_waiter s i (W (need w) 0 Cancelled)) t (C (hand c + got w) (doing c))
  | Drop t i => exists w c,
      nth_error (waiters s) i = Some w /\ stat w = Fulfilled /\ nth_error (calls s) t = Some c /\
      s' = set_call (set_waiter s i (W (need w) 0 Fulfilled)) t (C (hand c + got w) (doing c))
  | Release t l n => exists m c,
      nth_error (leases s) l = Some m /\ n <= m /\ nth_error (calls s) t = Some c /\
      s' = set_call (set_lease s l (m - n)) t (C (hand c + n) (doing c))
  | Split l n => exists m,
      nth_error (leases s) l = Some m /\ n <= m /\ s' = add_lease (set_lease s l (m - n)) n
  | Merge l m => exists a b,
      l <> m /\ nth_error (leases s) l = Some a /\ nth_error (leases s) m = Some b /\
      s' = set_lease (set_lease s l (a + b)) m 0
  | Forget l x y => exists m,
      nth_error (leases s) l = Some m /\ x + y <= m /\ x <= cap s /\ y <= debt s /\
      s' = set_counts (set_lease s l (m - (x + y))) (cap s - x) (debt s - y) (avail s)
  | Choose t i => exists h,
      nth_error (calls s) t = Some (C h Free) /\ 0 < h /\
      closed s = false /\ debt s = 0 /\ oldest s i /\
      s' = set_call s t (C h (Chose i))
  | Miss t => exists h i,
      nth_error (calls s) t = Some (C h (Chose i)) /\ settled (waiters s) i /\
      s' = set_call s t (C h Free)
  | Grant t => exists h i w,
      nth_error (calls s) t = Some (C h (Chose i)) /\
      nth_error (waiters s) i = Some w /\ stat w = Pending /\
      let lacks := need w - got w in
      s' = if h <? lacks
           then set_call (set_waiter s i (W (need w) (got w + h) Pending)) t (C 0 Free)
           else set_call (set_waiter s i (W (need w) (need w) Fulfilled)) t (C (h - lacks) Free)
  | Park t => exists c,
      nth_error (calls s) t = Some c /\ debt s = 0 /\ nobody_waits s /\
      s' = set_call (set_counts s (cap s) (debt s) (avail s + hand c)) t (C 0 (doing c))
  | Pay t m => exists c,
      nth_error (calls s) t = Some c /\ m <= hand c /\ m <= debt s /\
      s' = set_call (set_counts s (cap s) (debt s - m) (avail s)) t (C (hand c - m) (doing c))
  | PayAvail m =>
      m <= avail s /\ m <= debt s /\
      s' = set_counts s (cap s) (debt s - m) (avail s - m)
  | Grow t k => exists c,
      nth_error (calls s) t = Some c /\ cap s + k <= ceil /\
      s' = set_call (set_counts s (cap s + k) (debt s) (avail s)) t (C (hand c + k) (doing c))
  | Shrink k a =>
      k <= cap s /\ a <= k /\ a <= avail s /\
      s' = set_counts s (cap s - k) (debt s + (k - a)) (avail s - a)
  | CloseBit t => exists h,
      nth_error (calls s) t = Some (C h Free) /\
      s' = St (cap s) (debt s) (avail s) true (waiters s)
              (upd (calls s) t (C h (Closing (length (waiters s))))) (leases s) (returned s)
  | ShutOne t i => exists w c,
      closed s = true /\
      nth_error (waiters s) i = Some w /\ stat w = Pending /\ nth_error (calls s) t = Some c /\
      s' = set_call (set_waiter s i (W (need w) 0 Shut)) t (C (hand c + got w) (doing c))
  | Look t => exists h i,
      nth_error (calls s) t = Some (C h (Closing (S i))) /\ settled (waiters s) i /\
      s' = set_call s t (C h (Closing i))
  | CloseReturn t => exists h,
      nth_error (calls s) t = Some (C h (Closing 0)) /\
      s' = St (cap s) (debt s) (avail s) (closed s) (waiters s)
              (upd (calls s) t (C h Free)) (leases s) true
  end.

(** A new semaphore of [n] permits; all that can become of it; all that can become of a state. *)
Definition init n := St n 0 n false [] [] [] false.

Inductive steps (ceil : nat) : state -> state -> Prop :=
| steps_none s : steps ceil s s
| steps_more s l s' s'' : steps ceil s s' -> step ceil l s' s'' -> steps ceil s s''.

Definition reachable ceil s := exists n, n <= ceil /\ steps ceil (init n) s.

(** ** The invariant *)

Definition waiter_ok (w : waiter) : Prop :=
  0 < need w /\
  match stat w with
  | Pending => got w < need w
  | Fulfilled => got w = 0 \/ got w = need w
  | Cancelled | Shut => got w = 0
  end.

(** It has a grant, partial or full, or had one. *)
Definition served (w : waiter) : Prop :=
  match stat w with Pending => 0 < got w | Fulfilled => True | _ => False end.

Definition call_ok s (c : call) : Prop :=
  match doing c with
  | Free => True
  | Chose i => i < length (waiters s) /\ forall j, j < i -> settled (waiters s) j
  | Closing i => closed s = true /\ forall j, i <= j -> settled (waiters s) j
  end.

Record inv (ceil : nat) (s : state) : Prop := {
  i_sum : avail s + held s + reserved s = cap s + debt s;
  i_cap : cap s <= ceil;
  i_waiter : forall i w, nth_error (waiters s) i = Some w -> waiter_ok w;
  i_order : forall i w, nth_error (waiters s) i = Some w -> served w ->
            forall j, j < i -> settled (waiters s) j;
  i_avail : 0 < avail s -> nobody_waits s;
  i_call : forall t c, nth_error (calls s) t = Some c -> call_ok s c;
  i_returned : returned s = true -> closed s = true /\ nobody_waits s
}.

(** * Scripts *)

(** ** Lists *)

Lemma upd_length {A} (l : list A) i x : length (upd l i x) = length l.
Proof. revert i; induction l as [|y r IH]; intros [|i]; cbn; auto. Qed.

Lemma nth_upd {A} (l : list A) i x y j :
  nth_error l i = Some y ->
  nth_error (upd l i x) j = if i =? j then Some x else nth_error l j.
Proof.
  revert i j; induction l as [|z r IH]; intros [|i] [|j] H; cbn in *; try discriminate; auto.
Qed.

Lemma sum_upd {A} (f : A -> nat) l i x y :
  nth_error l i = Some y -> sum f (upd l i x) + f y = sum f l + f x.
Proof.
  revert i; induction l as [|z r IH]; intros [|i] H; cbn in *; try discriminate.
  - inversion H; subst; lia.
  - specialize (IH i H); lia.
Qed.

Lemma sum_snoc {A} (f : A -> nat) l x : sum f (l ++ [x]) = sum f l + f x.
Proof. induction l as [|z r IH]; cbn; lia. Qed.

Lemma sum_nth {A} (f : A -> nat) l i x : nth_error l i = Some x -> f x <= sum f l.
Proof.
  revert i; induction l as [|z r IH]; intros [|i] H; cbn in *; try discriminate.
  - inversion H; lia.
  - specialize (IH i H); lia.
Qed.

Lemma nth_snoc {A} (l : list A) x i y :
  nth_error (l ++ [x]) i = Some y -> nth_error l i = Some y \/ (i = length l /\ y = x).
Proof.
  intros H. destruct (lt_dec i (length l)) as [L|L].
  - rewrite nth_error_app1 in H by auto; auto.
  - rewrite nth_error_app2 in H by lia.
    destruct (i - length l) as [|k] eqn:E; cbn in H.
    + inversion H; right; split; [lia | auto].
    + destruct k; discriminate.
Qed.

Lemma nth_lt {A} (l : list A) i x : nth_error l i = Some x -> i < length l.
Proof. intros H; apply nth_error_Some; congruence. Qed.

(** ** Settled stays settled *)

(** The new waiter at [i] is pending only if the old one was. *)
Lemma settled_upd l i w w' j :
  nth_error l i = Some w -> (stat w' = Pending -> stat w = Pending) ->
  settled l j -> settled (upd l i w') j.
Proof.
  intros H K S v; rewrite (nth_upd _ _ _ _ _ H).
  destruct (Nat.eqb_spec i j) as [->|]; [|apply S].
  intros [= <-] E; exact (S w H (K E)).
Qed.

Lemma settled_snoc l w j : j < length l -> settled l j -> settled (l ++ [w]) j.
Proof. intros L S v; rewrite nth_error_app1 by auto; apply S. Qed.

Lemma settled_not s i : settled (waiters s) i <-> ~ pending s i.
Proof.
  split.
  - intros S (w & H & P); exact (S w H P).
  - intros N w H P; apply N; exists w; auto.
Qed.

Lemma served_dec w : {served w} + {~ served w}.
Proof. unfold served; destruct (stat w); auto. destruct (got w); [right|left]; lia. Qed.

(** Both the waiter and the call are changed: the shape of most transitions.  [w'] may be pending
    only if [w] was, and served only if [w] was or all that are older are settled. *)
Section Change.
  Variables (l : list waiter) (i : nat) (w w' : waiter).
  Hypothesis at_i : nth_error l i = Some w.
  Hypothesis stays : stat w' = Pending -> stat w = Pending.

  Lemma order_upd :
    (forall k v, nth_error l k = Some v -> served v -> forall j, j < k -> settled l j) ->
    (served w' -> served w \/ forall j, j < i -> settled l j) ->
    forall k v, nth_error (upd l i w') k = Some v -> served v ->
    forall j, j < k -> settled (upd l i w') j.
  Proof.
    intros O N k v H Sv j L; rewrite (nth_upd _ _ _ _ _ at_i) in H.
    apply (settled_upd _ _ w); auto.
    destruct (Nat.eqb_spec i k) as [<-|].
    - injection H as <-. destruct (N Sv) as [S|S]; eauto.
    - eauto.
  Qed.

  Lemma waiter_upd :
    (forall k v, nth_error l k = Some v -> waiter_ok v) -> waiter_ok w' ->
    forall k v, nth_error (upd l i w') k = Some v -> waiter_ok v.
  Proof.
    intros O N k v H; rewrite (nth_upd _ _ _ _ _ at_i) in H.
    destruct (Nat.eqb_spec i k); [injection H as <-; auto | eauto].
  Qed.
End Change.

(** What a call knows survives if nothing settled becomes pending and the waiters do not get fewer. *)
Lemma call_ok_mono s s' c :
  call_ok s c ->
  length (waiters s') = length (waiters s) ->
  (closed s = true -> closed s' = true) ->
  (forall j, settled (waiters s) j -> settled (waiters s') j) ->
  call_ok s' c.
Proof. unfold call_ok; intros K L C M; destruct (doing c); auto; rewrite ?L; intuition. Qed.

Lemma calls_upd s s' t c c' :
  (forall u d, nth_error (calls s) u = Some d -> call_ok s d) ->
  nth_error (calls s) t = Some c ->
  (forall d, call_ok s d -> call_ok s' d) ->
  call_ok s' c' ->
  forall u d, nth_error (upd (calls s) t c') u = Some d -> call_ok s' d.
Proof.
  intros K H M N u d; rewrite (nth_upd _ _ _ _ _ H).
  destruct (t =? u); [intros [= <-]; auto | intros G; eauto].
Qed.

(** ** The invariant holds at first, and each step keeps it *)

Lemma inv_init ceil n : n <= ceil -> inv ceil (init n).
Proof.
  intros; constructor; unfold init, held, reserved, nobody_waits, settled; cbn; try lia;
    try (intros [|]; discriminate); try discriminate.
  - intros _ [|]; discriminate.
Qed.

(** Sums: one equation for each list that was changed. *)
Ltac sums :=
  unfold held, reserved in *; cbn in *;
  repeat match goal with
  | |- context [sum ?f (upd ?l ?i ?x)] =>
      match goal with
      | H : nth_error l i = Some ?y |- _ =>
          let E := fresh in pose proof (sum_upd f l i x y H) as E; cbn in E;
          let v := fresh "v" in set (v := sum f (upd l i x)) in *; clearbody v
      end
  | |- context [sum ?f (?l ++ [?x])] => rewrite (sum_snoc f l x)
  end; cbn in *; try lia.

(** The calls, when the one at [t] was changed: the others are as they were; what is left to show is
    that the new one is right. *)
Ltac others Ic F s :=
  eapply calls_upd; [exact Ic | exact F | intros; apply (call_ok_mono s); cbn; auto using upd_length | cbn].
(** Only its hand was changed. *)
Ltac same_doing Ic F s :=
  others Ic F s; apply (call_ok_mono s); cbn; auto using upd_length; apply Ic in F; exact F.

Arguments Nat.ltb : simpl never.

Lemma step_inv ceil l s s' : inv ceil s -> step ceil l s s' -> inv ceil s'.
Proof.
  intros I; destruct I as [Isum Icap Iw Io Ia Ic Ir].
  assert (Same : forall d s1, closed s1 = closed s -> waiters s1 = waiters s ->
                 call_ok s d -> call_ok s1 d).
  { intros d s1 E1 E2 K; apply (call_ok_mono s); auto; rewrite ?E1, ?E2; auto. }
  destruct l; cbn; intros H.
  - (* Spawn *) subst; constructor; cbn; auto; [sums|].
    intros u d E; apply nth_snoc in E as [E|[_ ->]]; [|exact Logic.I]. eapply Same; eauto.
  - (* Fast *) destruct H as (C0 & D0 & No & Le & ->).
    constructor; cbn; auto; sums.
  - (* Enqueue *) destruct H as (C0 & Lt & D0 & ->).
    constructor; cbn; auto.
    + sums.
    + intros i w E; apply nth_snoc in E as [E|[_ ->]]; [eauto|].
      unfold waiter_ok; cbn; lia.
    + intros i w E Sv j L.
      assert (j < length (waiters s)) by
        (apply nth_lt in E; rewrite app_length in E; cbn in E; lia).
      apply settled_snoc; auto.
      apply nth_snoc in E as [E|[-> ->]]; [eauto|].
      cbn in Sv; apply Ia; auto.
    + lia.
    + intros u d E; apply Ic in E; unfold call_ok in *; cbn.
      destruct (doing d) as [|i|i]; auto.
      * destruct E as [E1 E2]; split; [rewrite app_length; lia|].
        intros j L; apply settled_snoc; [lia | auto].
      * rewrite C0 in E; destruct E; discriminate.
    + intros R; apply Ir in R as [R _]; congruence.
  - (* Take *) destruct H as (w & E & Sw & G & ->).
    assert (M : forall j, settled (waiters s) j ->
                settled (upd (waiters s) i (W (need w) 0 Fulfilled)) j)
      by (intros; eapply settled_upd; eauto; cbn; discriminate).
    pose proof (Iw _ _ E) as Wk; unfold waiter_ok in Wk; rewrite Sw in Wk.
    constructor; cbn; auto.
    + sums.
    + eapply waiter_upd; eauto; unfold waiter_ok; cbn; lia.
    + eapply order_upd; eauto; cbn; try discriminate. left; unfold served; rewrite Sw; auto.
    + intros A j; apply M, Ia; auto.
    + intros u d F; apply (call_ok_mono s); cbn; eauto using upd_length.
    + intros R; split; [apply Ir; auto|]. intros j; apply M; apply Ir; auto.
  - (* Cancel *) destruct H as (w & c & E & Sw & F & ->).
    assert (M : forall j, settled (waiters s) j ->
                settled (upd (waiters s) i (W (need w) 0 Cancelled)) j)
      by (intros; eapply settled_upd; eauto; cbn; discriminate).
    pose proof (Iw _ _ E) as Wk; unfold waiter_ok in Wk; rewrite Sw in Wk.
    constructor; cbn; auto.
    + sums.
    + eapply waiter_upd; eauto; unfold waiter_ok; cbn; lia.
    + eapply order_upd; eauto; cbn; try discriminate; tauto.
    + intros A j; apply M, Ia; auto.
    + same_doing Ic F s.
    + intros R; split; [apply Ir; auto|]. intros j; apply M; apply Ir; auto.
  - (* Drop *) destruct H as (w & c & E & Sw & F & ->).
    assert (M : forall j, settled (waiters s) j ->
                settled (upd (waiters s) i (W (need w) 0 Fulfilled)) j)
      by (intros; eapply settled_upd; eauto; cbn; discriminate).
    pose proof (Iw _ _ E) as Wk; unfold waiter_ok in Wk; rewrite Sw in Wk.
    constructor; cbn; auto.
    + sums.
    + eapply waiter_upd; eauto; unfold waiter_ok; cbn; lia.
    + eapply order_upd; eauto; cbn; try discriminate. left; unfold served; rewrite Sw; auto.
    + intros A j; apply M, Ia; auto.
    + same_doing Ic F s.
    + intros R; split; [apply Ir; auto|]. intros j; apply M; apply Ir; auto.
  - (* Release *) destruct H as (m & c & E & Le & F & ->).
    constructor; cbn; auto; [sums|].
    same_doing Ic F s.
  - (* Split *) destruct H as (m & E & Le & ->).
    constructor; cbn; auto; sums.
  - (* Merge *) destruct H as (a & b & Ne & E & F & ->).
    constructor; cbn; auto.
    assert (F' : nth_error (upd (leases s) l (a + b)) m = Some b).
    { rewrite (nth_upd _ _ _ _ _ E). destruct (Nat.eqb_spec l m); congruence. }
    pose proof (sum_upd (fun n => n) _ _ (a + b) _ E).
    sums.
  - (* Forget *) destruct H as (m & E & Le & Lx & Ly & ->).
    constructor; cbn; auto; [sums|lia].
  - (* Choose *) destruct H as (h & E & Lt & C0 & D0 & (P & Old) & ->).
    constructor; cbn; auto; [sums|].
    others Ic E s.
    unfold call_ok; cbn; split.
    + destruct P as (w & Hw & _); eauto using nth_lt.
    + intros j L; apply settled_not; auto.
  - (* Miss *) destruct H as (h & i & E & Se & ->).
    constructor; cbn; auto; [sums|].
    others Ic E s; exact Logic.I.
  - (* Grant *) destruct H as (h & i & w & F & E & Sw & ->).
    pose proof (Iw _ _ E) as Wk; unfold waiter_ok in Wk; rewrite Sw in Wk.
    pose proof (Ic _ _ F) as K; unfold call_ok in K; cbn in K.
    destruct (Nat.ltb_spec h (need w - got w)) as [L|L].
    + assert (M : forall j, settled (waiters s) j ->
                  settled (upd (waiters s) i (W (need w) (got w + h) Pending)) j)
        by (intros; eapply settled_upd; eauto).
      constructor; cbn; auto.
      * sums.
      * eapply waiter_upd; eauto; unfold waiter_ok; cbn; lia.
      * eapply order_upd; eauto; cbn. intros _; right; apply K.
      * intros A j; apply M, Ia; auto.
      * others Ic F s; exact Logic.I.
      * intros R; split; [apply Ir; auto|]. intros j; apply M; apply Ir; auto.
    + assert (M : forall j, settled (waiters s) j ->
                  settled (upd (waiters s) i (W (need w) (need w) Fulfilled)) j)
        by (intros; eapply settled_upd; eauto; cbn; discriminate).
      constructor; cbn; auto.
      * sums.
      * eapply waiter_upd; eauto; unfold waiter_ok; cbn; lia.
      * eapply order_upd; eauto; cbn; try discriminate. intros _; right; apply K.
      * intros A j; apply M, Ia; auto.
      * others Ic F s; exact Logic.I.
      * intros R; split; [apply Ir; auto|]. intros j; apply M; apply Ir; auto.
  - (* Park *) destruct H as (c & F & D0 & No & ->).
    constructor; cbn; auto; [sums|].
    same_doing Ic F s.
  - (* Pay *) destruct H as (c & F & L1 & L2 & ->).
    constructor; cbn; auto; [sums|].
    same_doing Ic F s.
  - (* PayAvail *) destruct H as (L1 & L2 & ->).
    constructor; cbn; auto; [sums|intros; apply Ia; lia].
  - (* Grow *) destruct H as (c & F & Le & ->).
    constructor; cbn; auto; [sums|].
    same_doing Ic F s.
  - (* Shrink *) destruct H as (L1 & L2 & L3 & ->).
    constructor; cbn; auto; [sums|lia|intros; apply Ia; lia].
  - (* CloseBit *) destruct H as (h & F & ->).
    constructor; cbn; auto.
    + sums.
    + others Ic F s.
      unfold call_ok; cbn; split; auto. intros j L v Hv; apply nth_lt in Hv; lia.
    + intros R; split; [auto | apply Ir; auto].
  - (* ShutOne *) destruct H as (w & c & C1 & E & Sw & F & ->).
    assert (M : forall j, settled (waiters s) j ->
                settled (upd (waiters s) i (W (need w) 0 Shut)) j)
      by (intros; eapply settled_upd; eauto; cbn; discriminate).
    pose proof (Iw _ _ E) as Wk; unfold waiter_ok in Wk; rewrite Sw in Wk.
    constructor; cbn; auto.
    + sums.
    + eapply waiter_upd; eauto; unfold waiter_ok; cbn; lia.
    + eapply order_upd; eauto; cbn; try discriminate; tauto.
    + intros A j; apply M, Ia; auto.
    + same_doing Ic F s.
    + intros R; split; [apply Ir; auto|]. intros j; apply M; apply Ir; auto.
  - (* Look *) destruct H as (h & i & F & Se & ->).
    pose proof (Ic _ _ F) as K; unfold call_ok in K; cbn in K.
    constructor; cbn; auto; [sums|].
    others Ic F s.
    unfold call_ok; cbn; split; [tauto|].
    intros j L; destruct (Nat.eq_dec j i) as [->|]; [auto | apply K; lia].
  - (* CloseReturn *) destruct H as (h & F & ->).
    pose proof (Ic _ _ F) as K; unfold call_ok in K; cbn in K.
    constructor; cbn; auto.
    + sums.
    + others Ic F s; exact Logic.I.
    + intros _; split; [tauto|]. intros j; apply K; lia.
Qed.

Lemma steps_inv ceil s s' : inv ceil s -> steps ceil s s' -> inv ceil s'.
Proof. intros I H; induction H; eauto using step_inv. Qed.

Lemma reachable_inv ceil s : reachable ceil s -> inv ceil s.
Proof. intros (n & L & H); eapply steps_inv; eauto using inv_init. Qed.

(** * The theorems *)

Theorem conservation ceil s :
  reachable ceil s -> avail s + held s + reserved s = cap s + debt s.
Proof. intros R; apply (i_sum _ _ (reachable_inv _ _ R)). Qed.

Theorem never_more_out ceil s :
  reachable ceil s -> held s + reserved s <= cap s + debt s /\ cap s <= ceil.
Proof.
  intros R; apply reachable_inv in R; pose proof (i_sum _ _ R); pose proof (i_cap _ _ R); lia.
Qed.

(** A settled waiter keeps its status and its need for good, and what is reserved for it never
    grows: it is granted, taken or given back at most once. *)
Theorem settled_once ceil l s s' i w :
  step ceil l s s' -> nth_error (waiters s) i = Some w -> stat w <> Pending ->
  exists w', nth_error (waiters s') i = Some w' /\
             stat w' = stat w /\ need w' = need w /\ got w' <= got w.
Proof.
  intros H E N.
  assert (Same : waiters s' = waiters s -> exists w', nth_error (waiters s') i = Some w' /\
             stat w' = stat w /\ need w' = need w /\ got w' <= got w)
    by (intros ->; eauto).
  assert (Upd : forall j v v', nth_error (waiters s) j = Some v ->
             waiters s' = upd (waiters s) j v' ->
             (v = w -> stat v' = stat w /\ need v' = need w /\ got v' <= got w) ->
             exists w', nth_error (waiters s') i = Some w' /\
               stat w' = stat w /\ need w' = need w /\ got w' <= got w).
  { intros j v v' Hj -> K; rewrite (nth_upd _ _ _ _ _ Hj).
    destruct (Nat.eqb_spec j i) as [->|]; [|eauto].
    exists v'; split; [auto|]. apply K; congruence. }
  destruct l; cbn in H;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end; subst s'; try (apply Same; reflexivity);
    try (match goal with K : nth_error (waiters s) _ = Some _ |- _ =>
           eapply Upd; [exact K | reflexivity | intros ->; cbn; repeat split; congruence || lia] end).
  - (* Enqueue *) exists w; cbn; rewrite nth_error_app1 by eauto using nth_lt; auto.
  - (* Grant *)
    match goal with E' : nth_error (waiters s) _ = Some ?v, P : stat ?v = Pending |- _ =>
      destruct (_ <? _); (eapply Upd; [exact E' | reflexivity | intros ->; congruence]) end.
Qed.

(** *** Strict FIFO *)

(** Whatever the transition: who gets something, be it a part, is the oldest pending one. *)
Theorem grants_go_to_the_oldest ceil l s s' i w w' :
  reachable ceil s -> step ceil l s s' ->
  nth_error (waiters s) i = Some w -> nth_error (waiters s') i = Some w' ->
  got w < got w' \/ (stat w <> Fulfilled /\ stat w' = Fulfilled) ->
  oldest s i.
Proof.
  intros R H E E' G; apply reachable_inv in R.
  assert (Same : waiters s' = waiters s -> oldest s i).
  { intros X; rewrite X in E'; assert (w = w') by congruence; subst.
    destruct G as [G|[G1 G2]]; [lia | congruence]. }
  assert (Upd : forall j v v', nth_error (waiters s) j = Some v ->
             waiters s' = upd (waiters s) j v' -> got v' <= got v ->
             (stat v' = Fulfilled -> stat v = Fulfilled) -> oldest s i).
  { intros j v v' Hj X Le Fu; rewrite X, (nth_upd _ _ _ _ _ Hj) in E'.
    destruct (Nat.eqb_spec j i) as [->|].
    - assert (v = w) by congruence; assert (v' = w') by congruence; subst.
      destruct G as [G|[G1 G2]]; [lia | tauto].
    - assert (w = w') by congruence; subst. destruct G as [G|[G1 G2]]; [lia | tauto]. }
  destruct l; cbn in H;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end;
    try (apply Same; subst s'; reflexivity);
    try (match goal with K : nth_error (waiters s) _ = Some _ |- _ =>
           eapply Upd; [exact K | subst s'; reflexivity | cbn; lia | cbn; congruence || auto] end; fail).
  - (* Enqueue *) subst s'; cbn in E'; rewrite nth_error_app1 in E' by eauto using nth_lt.
    assert (w = w') by congruence; subst. destruct G as [G|[G1 G2]]; [lia | congruence].
  - (* Grant *)
    match goal with
    | F : nth_error (calls s) t = Some (C ?h (Chose ?k)), Hv : nth_error (waiters s) ?k = Some ?v,
      P : stat ?v = Pending |- _ =>
        rename k into k0; rename v into v0;
        pose proof (i_call _ _ R _ _ F) as K; unfold call_ok in K; cbn in K;
        assert (O : oldest s k0) by
          (split; [exists v0; auto | intros j L; apply settled_not, K; auto]);
        assert (X : exists v', waiters s' = upd (waiters s) k0 v') by
          (subst s'; destruct (_ <? _); cbn; eauto);
        destruct X as [v' X]; rewrite X, (nth_upd _ _ _ _ _ Hv) in E';
        destruct (Nat.eqb_spec k0 i) as [<-|]; [exact O|]
    end.
    assert (w = w') by congruence; subst w'. destruct G as [G|[G1 G2]]; [lia | congruence].
Qed.

(** Who has a grant, partial or full, or had one: nobody older is pending. *)
Theorem served_in_order ceil s i j w :
  reachable ceil s -> nth_error (waiters s) j = Some w -> served w -> i < j -> ~ pending s i.
Proof.
  intros R H Sv L; apply settled_not. eapply (i_order _ _ (reachable_inv _ _ R)); eauto.
Qed.

(** While anybody is pending there is nothing available, so that nobody can take it: neither a fast
    acquire (which does not even look) nor a new waiter. *)
Theorem nothing_available_while_pending ceil s i :
  reachable ceil s -> pending s i -> avail s = 0.
Proof.
  intros R P; apply reachable_inv in R.
  destruct (avail s) eqn:E; auto. exfalso.
  apply (proj1 (settled_not s i)) in P; auto. apply (i_avail _ _ R); lia.
Qed.

Theorem nobody_overtakes ceil l s s' i :
  reachable ceil s -> step ceil l s s' -> pending s i ->
  (forall k, l <> Fast k) /\
  (forall w, nth_error (waiters s') (length (waiters s)) = Some w -> got w = 0).
Proof.
  intros R H P; split.
  - intros k ->; cbn in H; destruct H as (_ & _ & N & _).
    apply (proj1 (settled_not s i)) in P; auto.
  - pose proof (nothing_available_while_pending _ _ _ R P) as A.
    intros w E.
    assert (L : length (waiters s') = length (waiters s) -> got w = 0)
      by (intros L; apply nth_lt in E; lia).
    destruct l; cbn in H;
      repeat match goal with
      | H : exists _, _ |- _ => destruct H as [? H]
      | H : _ /\ _ |- _ => destruct H
      end; subst s'; try (apply L; cbn; auto using upd_length; fail).
    + cbn in E. rewrite nth_error_app2, Nat.sub_diag in E by lia.
      injection E as <-; auto.
    + apply L; destruct (_ <? _); cbn; auto using upd_length.
Qed.

(** The least of those that are pending. *)
Lemma oldest_exists s i : pending s i -> exists h, oldest s h.
Proof.
  revert i; apply (well_founded_induction lt_wf (fun i => pending s i -> exists h, oldest s h)).
  intros i IH P.
  destruct (nth_error (waiters s) i) as [w|] eqn:E; [|destruct P as (? & ? & _); congruence].
  assert (D : (exists j, j < i /\ pending s j) \/ forall j, j < i -> ~ pending s j).
  { clear -i. induction i as [|i [(j & L & P)|N]].
    - right; lia.
    - left; exists j; auto with arith.
    - destruct (nth_error (waiters s) i) as [v|] eqn:E.
      + destruct (stat v) eqn:Sv; [left; exists i; split; [lia | exists v; auto]| | |];
          (right; intros j L (u & Hu & Pu); destruct (Nat.eq_dec j i) as [->|];
           [congruence | apply (N j); [lia | exists u; auto]]).
      + right; intros j L (u & Hu & Pu); destruct (Nat.eq_dec j i) as [->|];
          [congruence | apply (N j); [lia | exists u; auto]]. }
  destruct D as [(j & L & Pj)|N]; [eauto | exists i; split; auto].
Qed.

(** *** No permit is lost

    With nothing in any hand and somebody pending: nothing is available, the oldest still lacks
    some, and whatever it lacks is owned by leases or reserved for the fulfilled: all that exists
    and is not its own.  (When the semaphore is closed as well, though there the oldest is ended
    instead of served.) *)
Theorem no_lost_permit ceil s :
  reachable ceil s -> sum hand (calls s) = 0 -> (exists i, pending s i) ->
  avail s = 0 /\
  exists h w, oldest s h /\ nth_error (waiters s) h = Some w /\ got w < need w /\
    (forall j v, nth_error (waiters s) j = Some v -> stat v = Pending -> j <> h -> got v = 0) /\
    got w + sum (fun n => n) (leases s) + (reserved s - got w) = cap s + debt s.
Proof.
  intros R Z (i & P). pose proof (nothing_available_while_pending _ _ _ R P) as A.
  split; auto. destruct (oldest_exists _ _ P) as (h & O).
  apply reachable_inv in R. destruct O as [(w & E & Pw) Old].
  exists h, w; repeat split; auto.
  - exists w; auto.
  - pose proof (i_waiter _ _ R _ _ E) as K; unfold waiter_ok in K; rewrite Pw in K; tauto.
  - intros j v Hv Pv Ne. destruct (got v) eqn:G; auto; exfalso.
    assert (Sv : served v) by (unfold served; rewrite Pv; lia).
    destruct (lt_eq_lt_dec j h) as [[L|L]|L]; [|auto|].
    + apply (Old j L); exists v; auto.
    + exact (i_order _ _ R _ _ Hv Sv h L w E Pw).
  - pose proof (i_sum _ _ R) as Su; unfold held, reserved in *.
    pose proof (sum_nth got _ _ _ E); lia.
Qed.

(** A call that carries something is never stuck: it can pay, serve, park, or end a waiter, and
    each of these moves a permit on, or finds out that the one it had chosen is settled. *)
Theorem whoever_carries_can_move ceil s t c :
  reachable ceil s -> nth_error (calls s) t = Some c -> 0 < hand c ->
  exists l s', step ceil l s s' /\
    (l = Pay t 1 \/ l = Grant t \/ l = Miss t \/ l = Park t \/ (exists i, l = Choose t i) \/
     exists i, l = ShutOne t i).
Proof.
  intros R E Hc. destruct c as [h d]; cbn in *.
  destruct (debt s) as [|n] eqn:D.
  2:{ exists (Pay t 1); eexists; split; [|auto]. cbn; exists (C h d); cbn; rewrite D; repeat split; auto; lia. }
  assert (Cases : (exists i, pending s i) \/ nobody_waits s).
  { unfold nobody_waits.
    assert (X : forall n, (exists i, pending s i) \/ forall i, i < n -> settled (waiters s) i).
    { induction n as [|n [IH|IH]]; [right; lia | auto |].
      destruct (nth_error (waiters s) n) as [v|] eqn:En.
      - destruct (stat v) eqn:Sv; [left; exists n, v; auto| | |];
          (right; intros i L u Hu; destruct (Nat.eq_dec i n) as [->|]; [congruence | apply (IH i); [lia | auto]]).
      - right; intros i L u Hu; destruct (Nat.eq_dec i n) as [->|]; [congruence | apply (IH i); [lia|auto]]. }
    destruct (X (length (waiters s))) as [Y|Y]; auto.
    right; intros i v Hv; apply (Y i); eauto using nth_lt. }
  destruct Cases as [(i & P)|No].
  2:{ exists (Park t); eexists; split; [|auto]. cbn; exists (C h d); repeat split; auto. }
  destruct (closed s) eqn:Cs.
  { destruct P as (w & Hw & Pw). exists (ShutOne t i); eexists; split; [|eauto 10].
    cbn; exists w, (C h d); auto. }
  destruct d as [|k|k].
  3:{ destruct (i_call _ _ (reachable_inv _ _ R) _ _ E) as [X _]; cbn in X; congruence. }
  - destruct (oldest_exists _ _ P) as (o & O).
    exists (Choose t o); eexists; split; [|eauto 10]. cbn; exists h; repeat split; auto; apply O.
  - pose proof (i_call _ _ (reachable_inv _ _ R) _ _ E) as K; unfold call_ok in K; cbn in K.
    destruct (nth_error (waiters s) k) as [v|] eqn:Ek; [|apply nth_error_None in Ek; lia].
    destruct (stat v) eqn:Sv;
      [exists (Grant t); eexists; split; [cbn; exists h, k, v; auto | auto]| | |];
      (exists (Miss t); eexists; split; [|auto];
       cbn; exists h, k; repeat split; auto; intros u Hu; congruence).
Qed.

(** *** Close *)

Theorem close_leaves_nobody ceil s :
  reachable ceil s -> returned s = true -> closed s = true /\ forall i, ~ pending s i.
Proof.
  intros R H. destruct (i_returned _ _ (reachable_inv _ _ R) H) as [C N].
  split; auto. intros i; apply settled_not, N.
Qed.

(** The same, for the transition itself: it is the check of the code, that each waiter was seen
    settled since the bit was set, which makes it so. *)
Theorem when_close_returns ceil s s' t :
  reachable ceil s -> step ceil (CloseReturn t) s s' -> forall i, ~ pending s i.
Proof.
  intros R (h & E & _) i. apply settled_not.
  pose proof (i_call _ _ (reachable_inv _ _ R) _ _ E) as K; apply K; lia.
Qed.

(** Once the bit is set it stays; nobody joins, nobody chooses; so a call that had not chosen its
    waiter before never will, and never grants.  [s] need not be reachable. *)
Theorem closed_for_good ceil s s' : steps ceil s s' -> closed s = true -> closed s' = true.
Proof.
  intros H C; induction H as [|s l s1 s2 H1 IH H2]; auto. specialize (IH C).
  destruct l; cbn in H2;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end; subst s2; cbn; auto; try (destruct (_ <? _); auto).
Qed.

Theorem no_new_grant_after_close ceil s s' t :
  steps ceil s s' -> closed s = true ->
  (forall h i, nth_error (calls s) t <> Some (C h (Chose i))) ->
  forall s'', ~ step ceil (Grant t) s' s''.
Proof.
  intros H Cl N.
  assert (N' : forall h i, nth_error (calls s') t <> Some (C h (Chose i))).
  { induction H as [|s l s1 s2 H1 IH H2]; auto. specialize (IH Cl N).
    pose proof (closed_for_good _ _ _ H1 Cl) as C1.
    assert (Upd : forall u c c', nth_error (calls s1) u = Some c ->
       calls s2 = upd (calls s1) u c' -> (doing c' = doing c \/ forall i, doing c' <> Chose i) ->
       forall h i, nth_error (calls s2) t <> Some (C h (Chose i))).
    { intros u c c' Hu X D h i; rewrite X, (nth_upd _ _ _ _ _ Hu).
      destruct (Nat.eqb_spec u t) as [->|]; [|apply IH].
      intros [= ->]; cbn in D; destruct D as [D|D]; [|exact (D i eq_refl)].
      destruct c as [k d]; cbn in D; subst d; exact (IH k i Hu). }
    destruct l; cbn in H2;
      repeat match goal with
      | H : exists _, _ |- _ => destruct H as [? H]
      | H : _ /\ _ |- _ => destruct H
      end; subst s2; auto;
      try (match goal with K : nth_error (calls s1) _ = Some _ |- _ =>
             eapply Upd; [exact K | cbn; reflexivity |
                          cbn; solve [left; reflexivity | right; discriminate]] end; fail).
    - (* Spawn *) cbn; intros h i E; apply nth_snoc in E as [E|[_ E]]; [exact (IH h i E) | discriminate].
    - (* Choose *) congruence.
    - (* Grant *) destruct (_ <? _);
        (eapply Upd; [eassumption | cbn; reflexivity | cbn; right; discriminate]). }
  intros s'' (h & i & w & E & _); exact (N' h i E).
Qed.

(** *** Debt comes first *)

Theorem debt_comes_first ceil l s s' :
  step ceil l s s' ->
  (exists k, l = Fast k) \/ (exists t i, l = Choose t i) \/ (exists t, l = Park t) -> debt s = 0.
Proof.
  intros H [(k & ->)|[(t & i & ->)|(t & ->)]]; cbn in H;
    repeat match goal with H : exists _, _ |- _ => destruct H as [? H] end; tauto.
Qed.

(** ** The system is not empty

    Two permits, both leased at once; waiter 0 wants two, waiter 1 wants one; one permit comes back
    and is a partial grant; waiter 0 cancels and its partial grant reaches waiter 1, which is
    polled; the semaphore is closed, and the close returns. *)
Ltac look_at_all := intros i w E; destruct i as [|[|i]]; cbn in E; try discriminate; try congruence;
  try (destruct i; discriminate).
Ltac go lb R :=
  eapply (steps_more _ _ lb) in R;
  [| cbn;
     repeat match goal with |- exists _, _ => eexists | |- _ /\ _ => split end;
     unfold nobody_waits, oldest, pending;
     repeat match goal with |- exists _, _ => eexists | |- _ /\ _ => split end;
     solve [ reflexivity | lia | right; reflexivity | left; reflexivity
           | look_at_all
           | intros w E; injection E as <-; discriminate
           | intros j L (w & E & P); destruct j as [|[|j]]; cbn in E;
             (lia || (injection E as <-; discriminate)) ] ];
  vm_compute in R.

Example a_run : exists s,
  reachable 2 s /\ returned s = true /\
  waiters s = [W 2 0 Cancelled; W 1 0 Fulfilled] /\ leases s = [1; 1].
Proof.
  pose proof (steps_none 2 (init 2)) as R.
  go Spawn R. go (Fast 2) R. go (Enqueue 2) R. go (Enqueue 1) R.
  go (Release 0 0 1) R. go (Choose 0 0) R. go (Grant 0) R.
  go (Cancel 0 0) R. go (Choose 0 1) R. go (Grant 0) R. go (Take 1) R.
  go (CloseBit 0) R. go (Look 0) R. go (Look 0) R. go (CloseReturn 0) R.
  eexists; split; [exists 2; split; [lia | exact R]|]. auto.
Qed.
