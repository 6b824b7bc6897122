(** * What is proved, in one list

    The definitions are at the top of [Level1.v], [Level2.v], [Refine.v] and [Progress.v].  Each line below has the statement in
    full, so that it cannot drift from the theorem: it does not compile otherwise. *)

From Coq Require Import List Arith.
Import ListNotations.
Require Level1 Level2 Refine Progress.

Module L1.
Import Level1.

(** Conservation.  What running calls carry counts as held. *)
Check (conservation : forall ceil s, reachable ceil s ->
  avail s + held s + reserved s = cap s + debt s).

(** Never more than there are is out. *)
Check (never_more_out : forall ceil s, reachable ceil s ->
  held s + reserved s <= cap s + debt s /\ cap s <= ceil).

(** Each waiter is settled at most once, and what it got leaves it at most once. *)
Check (settled_once : forall ceil l s s' i w,
  step ceil l s s' -> nth_error (waiters s) i = Some w -> stat w <> Pending ->
  exists w', nth_error (waiters s') i = Some w' /\
             stat w' = stat w /\ need w' = need w /\ got w' <= got w).

(** Strict FIFO, four ways: each grant, partial or full, goes to the least arrival number pending;
    whoever was served has nobody older pending; nothing is available while anybody is pending; and
    then neither a fast acquire nor a newcomer takes anything. *)
Check (grants_go_to_the_oldest : forall ceil l s s' i w w',
  reachable ceil s -> step ceil l s s' ->
  nth_error (waiters s) i = Some w -> nth_error (waiters s') i = Some w' ->
  got w < got w' \/ (stat w <> Fulfilled /\ stat w' = Fulfilled) -> oldest s i).
Check (served_in_order : forall ceil s i j w,
  reachable ceil s -> nth_error (waiters s) j = Some w -> served w -> i < j -> ~ pending s i).
Check (nothing_available_while_pending : forall ceil s i,
  reachable ceil s -> pending s i -> avail s = 0).
Check (nobody_overtakes : forall ceil l s s' i,
  reachable ceil s -> step ceil l s s' -> pending s i ->
  (forall k, l <> Fast k) /\
  (forall w, nth_error (waiters s') (length (waiters s)) = Some w -> got w = 0)).

(** No permit is lost. *)
Check (no_lost_permit : forall ceil s,
  reachable ceil s -> sum hand (calls s) = 0 -> (exists i, pending s i) ->
  avail s = 0 /\
  exists h w, oldest s h /\ nth_error (waiters s) h = Some w /\ got w < need w /\
    (forall j v, nth_error (waiters s) j = Some v -> stat v = Pending -> j <> h -> got v = 0) /\
    got w + sum (fun n => n) (leases s) + (reserved s - got w) = cap s + debt s).

(** A call that carries permits always has a transition that moves them on. *)
Check (whoever_carries_can_move : forall ceil s t c,
  reachable ceil s -> nth_error (calls s) t = Some c -> 0 < hand c ->
  exists l s', step ceil l s s' /\
    (l = Pay t 1 \/ l = Grant t \/ l = Miss t \/ l = Park t \/ (exists i, l = Choose t i) \/
     exists i, l = ShutOne t i)).

(** Close: nobody is pending once one has returned; the bit is for good; and who had not chosen
    its waiter before the bit grants nothing after it. *)
Check (close_leaves_nobody : forall ceil s,
  reachable ceil s -> returned s = true -> closed s = true /\ forall i, ~ pending s i).
Check (when_close_returns : forall ceil s s' t,
  reachable ceil s -> step ceil (CloseReturn t) s s' -> forall i, ~ pending s i).
Check (closed_for_good : forall ceil s s',
  steps ceil s s' -> closed s = true -> closed s' = true).
Check (no_new_grant_after_close : forall ceil s s' t,
  steps ceil s s' -> closed s = true ->
  (forall h i, nth_error (calls s) t <> Some (C h (Chose i))) ->
  forall s'', ~ step ceil (Grant t) s' s'').

(** Debt is paid before anything is taken, anybody chosen, or anything made available. *)
Check (debt_comes_first : forall ceil l s s',
  step ceil l s s' ->
  (exists k, l = Fast k) \/ (exists t i, l = Choose t i) \/ (exists t, l = Park t) -> debt s = 0).

(** The system is not empty. *)
Check (a_run : exists s,
  reachable 2 s /\ returned s = true /\
  waiters s = [W 2 0 Cancelled; W 1 0 Fulfilled] /\ leases s = [1; 1]).
End L1.

Module L2.
Import Level1 Level2.

(** Each transition of the code keeps the invariant; [inv2] and what it is made of are defined in
    [Level2.v]. *)
Check (step2_inv : forall l s s', inv2 s -> step2 true l s s' -> inv2 s').

(** Conservation, through joining, cutting, and recycling. *)
Check (conservation2 : forall s, reachable2 true s ->
  free s + (leased s + sum carry (threads s)) + (untaken s + sum reserved1 (nodes s)) = total s).

(** Strict FIFO: all that wait are in the queue, unless they are unpublished; and whoever is granted
    something, be it a part, is the least arrival number that waits. *)
Check (waiting_is_listed : forall s i n, reachable2 true s -> slot s i n -> sta n = Waiting ->
  home n = Listed \/ exists t, home n = Private t).
Check (grants_go_to_the_oldest2 : forall l s s' i n n', reachable2 true s -> step2 true l s s' ->
  slot s i n -> slot s' i n' -> sta n = Waiting -> home n = Listed ->
  sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
  forall j z, listed (nodes s) j z -> sta z = Waiting -> arr n <= arr z).

(** A settled status is final within a generation; a generation never falls, and changes only of a
    slot that was popped. *)
Check (settled_once2 : forall l s s' i n, reachable2 true s -> step2 true l s s' -> slot s i n ->
  exists n', slot s' i n' /\ gen n <= gen n' /\
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n)).

(** No permit is lost. *)
Check (no_lost_permit2 : forall s i n,
  reachable2 true s -> listed (nodes s) i n -> sta n = Waiting ->
  free s = 0 /\ got_in (pay n) < want n /\
  (0 < got_in (pay n) -> forall j z, listed (nodes s) j z -> arr n <= arr z) /\
  (sum carry (threads s) = 0 -> leased s + untaken s + sum reserved1 (nodes s) = total s)).

(** No unpublished slot is ever changed by others. *)
Check (unpublished_untouched : forall l s s' i n u, reachable2 true s -> step2 true l s s' ->
  slot s i n -> home n = Popped u \/ home n = Private u -> actor l <> Some u -> slot s' i n).

(** Whoever has seen CLOSED and an empty queue: nobody waits from then on. *)
Check (close_leaves_nobody2 : forall s s' a,
  reachable2 true s -> shut s = true -> sword s = Avail a -> steps2 true s s' ->
  forall i n, slot s' i n -> sta n = Waiting -> exists t, home n = Private t).

(** Without the check of the generation all of this is false: by runs. *)
Check (unchecked_breaks_the_invariant :
  exists s, reachable2 false s /\ all_permits s = total s /\ ~ inv2 s).
Check (unchecked_touches_unpublished : exists s s' i n,
  reachable2 false s /\ step2 false (GrantPart 0 1) s s' /\
  slot s i n /\ home n = Private 1 /\ ~ slot s' i n).
Check (unchecked_loses_a_permit : exists s,
  reachable2 false s /\ total s = 2 /\ all_permits s = 1 /\ sum carry (threads s) = 0 /\
  (forall t c p, thr s t c p -> p = Idle) /\
  exists i n, slot s i n /\ home n = Listed /\ sta n = Waiting /\ got_in (pay n) = 0).

(** With it there still are runs that reuse slots and follow hints. *)
Check (a_run2 : exists s,
  reachable2 true s /\ slot s 1 (Nd 2 Waiting (Head 1) 2 Listed 2) /\
  slot s 0 (Nd 1 Granted (Head 0) 1 Out 0) /\ untaken s = 1).
End L2.

Module R.
Import Level1 Level2 Refine.

(** Level 2 refines level 1: whatever transition the words make, the abstract queue can follow, and the
    words look like it again. *)
Check (forward : forall ceil l s s' s1,
  inv2 s -> inv ceil s1 -> refines s s1 -> step2 true l s s' -> total s' <= ceil ->
  exists s1', steps ceil s1 s1' /\ refines s' s1').

(** So every run of the words is a run of the abstract queue. *)
Check (refinement : forall n s, steps2 true (init2 n) s ->
  exists ceil s1, n <= ceil /\ steps ceil (init n) s1 /\ refines s s1).

(** A listed request waits in its word if and only if it is pending in the abstract queue. *)
Check (waits_is_pending : forall s s1 i n, refines s s1 -> listed (nodes s) i n ->
  (sta n = Waiting <-> pending s1 (arr n))).
End R.

Module P.
Import Level1 Level2 Progress.

(** An exchange on a waiter's word that succeeds is on the waiter that the thread has the handle of: in
    that use of the slot, in the queue, waiting.  And a generation that is over never comes back, so
    that an exchange with an old handle never succeeds again.  (Generations are natural numbers here.) *)
Check (exchange_hits_its_waiter : forall l s s' t c p h,
  reachable2 true s -> step2 true l s s' ->
  exchanges l = Some t -> thr s t c p -> subject p = Some h ->
  exists n, listed (nodes s) (fst h) n /\ gen n = snd h /\ sta n = Waiting).
Check (a_stale_generation_never_succeeds : forall l s s' s'' i g n t c p,
  reachable2 true s -> slot s i n -> g < gen n -> steps2 true s s' ->
  exchanges l = Some t -> thr s' t c p -> subject p = Some (i, g) -> ~ step2 true l s' s'').

(** After the CLOSED bit only a thread that had chosen its waiter before it grants. *)
Check (no_new_grant_after_close2 : forall s s' s'' t a,
  steps2 true s s' -> shut s = true -> (forall c h, ~ thr s t c (Chosen h)) ->
  ~ step2 true (GrantAll t) s' s'' /\ (0 < a -> ~ step2 true (GrantPart t a) s' s'')).

(** Who pays for a retry.  If nothing of [changes] happened between two moments, then the state word and
    all words in the queue are what they were: so each failed exchange and each changed anchor is
    charged to one of these.  And there are not many: five for each request that joined, and one for
    each call that takes at once, closes, or brings permits. *)
Check (a_retry_has_a_cause : forall tr s s',
  reachable2 true s -> run2 tr s s' -> count changes tr = 0 ->
  sword s' = sword s /\ shut s' = shut s /\
  forall i n, listed (nodes s) i n -> listed (nodes s') i n).
Check (work_is_bounded : forall n tr s, run2 tr (init2 n) s ->
  count changes tr <= count takes tr + count closes tr + count brings tr + 5 * count joins tr).
End P.
