(** * Level 2: the words

    The queue as the code has it: a state word, a pool of slots with one word each, links to older
    neighbours, generations, the hints, and each compare-exchange a transition of its own.  Any
    number of threads, any number of slots.

    What a thread has read so far is its [phase]; between reading and its compare-exchange anything
    may happen.  The order of arrival and where a slot is ([home]) are ghosts: no guard of a thread
    consults them, but for "this slot is in the free list", "it was cut out, so I may free it" and
    "I popped it", which the code knows by having won an exchange.

    The transition system has a switch.  With [checked = true] a hint to a newer neighbour is
    believed if the generation of the slot is the one that the hint names: the code.  With [false] it
    is believed whatever its generation: the first sketch of the algorithm.  For the one there is the
    invariant, for the other a run that loses a permit. *)

From Coq Require Import List Arith Lia Bool.
Import ListNotations.
Require Import Level1.

(** ** Words *)

Definition handle := (nat * nat)%type.          (* slot, generation *)

Inductive wstatus := Waiting | Granted | Gone | Ended.   (* Gone: cancelled; Ended: by close *)
Inductive payload := Link (older : nat) | Head (got : nat).
Inductive body := Avail (n : nat) | Queue (tail : handle).

(** Where a slot is.  [Popped]: out of the free list, its word still the old one.  [Private]: its word
    is written, and the state word does not name it yet.  [Out]: cut out of the queue and not yet
    freed. *)
Inductive where_ := InPool | Popped (t : nat) | Private (t : nat) | Listed | Out.

(** [gen], [sta] and [pay] are the word; [want] is the request; [home] and [arr] are ghosts. *)
Record node := Nd {
  gen : nat; sta : wstatus; pay : payload;
  want : nat;
  home : where_; arr : nat
}.

(** ** What a thread has in mind *)

(** From where a run of settled waiters is seen: the state word, which names the slot in question with
    that generation; or a waiter that links to it. *)
Inductive anchor := AtS (g : nat) | AtW (x : handle).

Inductive phase2 :=
| Idle
| Prep (i k : nat)                 (* popped the slot i for a request of k *)
| Pub (i k : nat) (s0 : body)      (* wrote its word to fit the state word s0 *)
| Cert (h : handle)                (* a certificate: all that is older than h is settled *)
| Chosen (h : handle)              (* the same, and then the state word was seen open *)
| Read1 (g x : handle)             (* certified g is settled, and its hint says x *)
| Read2 (g x : handle)             (* x was seen to be linked to the slot of g, or granted *)
| Walk (a : anchor) (n : nat) (c : option nat)
                                   (* from the anchor by way of n: all settled until c *)
| Sees (a : anchor) (n : nat) (h : handle) (old : bool)
                                   (* … and h waits there, with nobody older if [old]; that the
                                      anchor is unchanged has still to be checked *)
| Known (h : handle).              (* has the handle of a waiter that was published *)

Record thread := Th { carry : nat; mind : phase2 }.

Record state2 := St2 {
  total : nat;                     (* N *)
  sword : body;                    (* the state word … *)
  shut : bool;                     (* … and its CLOSED bit *)
  nodes : list node;               (* the pool: a slot is a position *)
  newer : nat -> option handle;    (* the hint in each slot *)
  hint : option handle;            (* the certificate that all share *)
  threads : list thread;
  leased : nat;                    (* permits owned through leases *)
  untaken : nat;                   (* granted in full, not polled yet *)
  clock : nat;                     (* ghost: the next arrival number *)
  published : list handle          (* ghost: all handles that ever were published *)
}.

Definition with_thread s t p := St2 (total s) (sword s) (shut s) (nodes s) (newer s) (hint s)
  (upd (threads s) t p) (leased s) (untaken s) (clock s) (published s).
Definition with_sword s b := St2 (total s) b (shut s) (nodes s) (newer s) (hint s)
  (threads s) (leased s) (untaken s) (clock s) (published s).
Definition with_nodes s l := St2 (total s) (sword s) (shut s) l (newer s) (hint s)
  (threads s) (leased s) (untaken s) (clock s) (published s).
Definition with_counts s n l u := St2 n (sword s) (shut s) (nodes s) (newer s) (hint s)
  (threads s) l u (clock s) (published s).
Definition with_hints s f h := St2 (total s) (sword s) (shut s) (nodes s) f h
  (threads s) (leased s) (untaken s) (clock s) (published s).

(** What cutting does to a slot that is listed between two arrival numbers, both excluded. *)
Definition between (lo hi : option nat) (a : nat) : bool :=
  (match lo with None => true | Some l => l <? a end) &&
  (match hi with None => true | Some h => a <? h end).
Definition cut1 lo hi n :=
  match home n with
  | Listed => if between lo hi (arr n) then Nd (gen n) (sta n) (pay n) (want n) Out (arr n) else n
  | _ => n
  end.
Definition cut lo hi l := map (cut1 lo hi) l.

Definition slot (s : state2) i n := nth_error (nodes s) i = Some n.
Definition thr (s : state2) t c p := nth_error (threads s) t = Some (Th c p).

(** The partial grant in a word; and what is reserved by a slot: only words that were published
    count. *)
Definition got_in p := match p with Head g => g | Link _ => 0 end.
Definition reserved1 n :=
  match home n, sta n with Listed, Waiting => got_in (pay n) | _, _ => 0 end.

Definition free s := match sword s with Avail a => a | Queue _ => 0 end.
Definition all_permits s :=
  free s + (leased s + sum carry (threads s)) + (untaken s + sum reserved1 (nodes s)).

(** The anchor is still what it was when the walk set out. *)
Definition holds s a n : Prop :=
  match a with
  | AtS g => sword s = Queue (n, g)
  | AtW x => exists m, slot s (fst x) m /\ gen m = snd x /\ sta m = Waiting /\ pay m = Link n
  end.

(** A payload that links to the slot of [c], or to nobody; and the arrival number of that slot. *)
Definition older p := match p with Link j => Some j | Head _ => None end.
Definition link_to c := match c with Some j => Link j | None => Head 0 end.
Definition arr_of s (c : option nat) (a : option nat) : Prop :=
  match c, a with
  | None, None => True
  | Some j, Some b => exists m, slot s j m /\ arr m = b
  | _, _ => False
  end.

(** Somebody has the handle: a future, or a thread that met it in the queue. *)
Definition has s h := In h (published s) \/ exists t c,
  thr s t c (Known h) \/ thr s t c (Cert h) \/ exists n d, thr s t c (Walk (AtW h) n d).

(** ** The transitions *)

Inductive label2 :=
| Spawn2
| FastTake (k : nat)        (* S: Avail a -> Avail (a - k) *)
| Collect (m : nat)         (* a grant is polled *)
| GiveBack (t m : nat)      (* a lease goes back: t carries it *)
| DropUntaken (t m : nat)   (* a grant is dropped unpolled: t carries it *)
| Grow2 (t k : nat)
| Forget2 (m : nat)
| Put (t : nat)             (* S: Avail a -> Avail (a + what t carries) *)
| Fresh (t k : nat)         (* t has a slot that was never used *)
| Pop (t i k : nat)         (* t pops a slot off the free list *)
| Write (t : nat)           (* t reads S and writes its private word, in a new generation *)
| Publish (t : nat)         (* S: what t read -> Queue (its slot) *)
| Withdraw (t : nat)        (* t gives its unpublished slot up, to be recycled *)
| SetNewer (i : nat) (h : handle)   (* anybody who has the handle writes a hint *)
| SetHint (t : nat)         (* t shares its certificate *)
| LoadHint (t : nat)
| LoadNewer (t i : nat)
| Learn (t : nat) (h : handle)      (* a future has the handle of its waiter *)
| Follow1 (t : nat)         (* certified g is settled: load its hint x *)
| Follow2 (t : nat)         (* load the word of x *)
| Follow3 (t : nat)         (* load the word of g again *)
| Choose2 (t : nat)         (* S is seen open: the certified waiter is the one that t will serve *)
| GrantAll (t : nat)        (* word: waiting -> granted *)
| GrantPart (t a : nat)     (* word: Link | Head got -> Head (got + a), with all that t carries; or with
                               a = 0 a cut alone, on the strength of a certificate *)
| StartS (t : nat)
| StartW (t d : nat)        (* the word of a known waiter links to d, or did *)
| WalkOn (t : nat)          (* load the next word: settled, so past it *)
| WalkSees (t : nat)        (* load the next word: waits *)
| Check (t : nat)           (* the anchor is unchanged after that: what it saw is in the queue *)
| WalkEnd (t : nat)         (* the same, when the run went to the end: the anchor is the oldest *)
| CutW (t : nat) (lo : option nat)      (* word: Link n -> Link c | Head 0 *)
| CutS (t m : nat) (lo : option nat)    (* S: Queue n -> Queue c | Avail m *)
| CutAll (t m : nat)        (* S: Queue h -> Avail m, for a certified and settled h *)
| CancelIt (t : nat)        (* word: waiting -> cancelled *)
| ShutIt (t : nat)          (* CLOSED, word: waiting -> shut *)
| CloseIt
| Recycle (i : nat) (p : payload) (b : bool)
                            (* a slot that was cut goes to the free list, or is about to: its links are
                               in the words, so any payload *)
| Abandon (t : nat).        (* t forgets what it knew *)

Definition step2 (checked : bool) (l : label2) (s s' : state2) : Prop :=
  match l with
  | Spawn2 => s' = St2 (total s) (sword s) (shut s) (nodes s) (newer s) (hint s)
                       (threads s ++ [Th 0 Idle]) (leased s) (untaken s) (clock s) (published s)
  | FastTake k => exists a,
      sword s = Avail a /\ shut s = false /\ k <= a /\
      s' = with_sword (with_counts s (total s) (leased s + k) (untaken s)) (Avail (a - k))
  | Collect m =>
      m <= untaken s /\ s' = with_counts s (total s) (leased s + m) (untaken s - m)
  | GiveBack t m => exists c p,
      thr s t c p /\ m <= leased s /\
      s' = with_thread (with_counts s (total s) (leased s - m) (untaken s)) t (Th (c + m) p)
  | DropUntaken t m => exists c p,
      thr s t c p /\ m <= untaken s /\
      s' = with_thread (with_counts s (total s) (leased s) (untaken s - m)) t (Th (c + m) p)
  | Grow2 t k => exists c p,
      thr s t c p /\
      s' = with_thread (with_counts s (total s + k) (leased s) (untaken s)) t (Th (c + k) p)
  | Forget2 m =>
      m <= leased s /\ m <= total s /\ s' = with_counts s (total s - m) (leased s - m) (untaken s)
  | Put t => exists c p a,
      thr s t c p /\ 0 < c /\ sword s = Avail a /\
      s' = with_thread (with_sword s (Avail (a + c))) t (Th 0 p)
  | Fresh t k => exists c,
      thr s t c Idle /\ 0 < k /\
      s' = with_thread (with_nodes s (nodes s ++ [Nd 0 Gone (Head 0) 0 (Popped t) 0]))
                       t (Th c (Prep (length (nodes s)) k))
  | Pop t i k => exists c n,
      thr s t c Idle /\ 0 < k /\ slot s i n /\ home n = InPool /\
      s' = with_thread (with_nodes s (upd (nodes s) i
             (Nd (gen n) (sta n) (pay n) (want n) (Popped t) (arr n)))) t (Th c (Prep i k))
  | Write t => exists c i k n,
      ((thr s t c (Prep i k) /\ slot s i n /\ home n = Popped t) \/
       (exists s0, thr s t c (Pub i k s0)) /\ slot s i n /\ home n = Private t) /\
      shut s = false /\ free s < k /\
      let g := match home n with Popped _ => S (gen n) | _ => gen n end in
      let p := match sword s with Avail a => Head a | Queue h => Link (fst h) end in
      s' = with_thread (with_nodes s (upd (nodes s) i (Nd g Waiting p k (Private t) 0)))
                       t (Th c (Pub i k (sword s)))
  | Publish t => exists c i k s0 n,
      thr s t c (Pub i k s0) /\ sword s = s0 /\ shut s = false /\ slot s i n /\
      s' = St2 (total s) (Queue (i, gen n)) (shut s)
               (upd (nodes s) i (Nd (gen n) (sta n) (pay n) (want n) Listed (clock s)))
               (newer s) (hint s) (upd (threads s) t
                 (Th c (match s0 with Avail _ => Cert (i, gen n) | Queue _ => Known (i, gen n) end)))
               (leased s) (untaken s) (S (clock s)) ((i, gen n) :: published s)
  | Withdraw t => exists c i k n,
      (thr s t c (Prep i k) \/ exists s0, thr s t c (Pub i k s0)) /\ slot s i n /\
      (home n = Popped t \/ home n = Private t) /\
      let g := match home n with Popped _ => S (gen n) | _ => gen n end in
      s' = with_thread (with_nodes s (upd (nodes s) i (Nd g Gone (Head 0) (want n) Out (arr n))))
                       t (Th c Idle)
  | SetNewer i h =>
      has s h /\
      s' = with_hints s (fun j => if j =? i then Some h else newer s j) (hint s)
  | SetHint t => exists c h,
      thr s t c (Cert h) /\ s' = with_hints s (newer s) (Some h)
  | LoadHint t => exists c h,
      thr s t c Idle /\ hint s = Some h /\ s' = with_thread s t (Th c (Cert h))
  | LoadNewer t i => exists c h,
      thr s t c Idle /\ newer s i = Some h /\ s' = with_thread s t (Th c (Known h))
  | Learn t h => exists c,
      thr s t c Idle /\ In h (published s) /\ s' = with_thread s t (Th c (Known h))
  | Follow1 t => exists c g x n,
      thr s t c (Cert g) /\ slot s (fst g) n /\ gen n = snd g /\ sta n <> Waiting /\
      newer s (fst g) = Some x /\
      s' = with_thread s t (Th c (Read1 g x))
  | Follow2 t => exists c g x n,
      thr s t c (Read1 g x) /\ slot s (fst x) n /\
      (checked = true -> gen n = snd x) /\
      (pay n = Link (fst g) \/ sta n = Granted) /\
      s' = with_thread s t (Th c (Read2 g (fst x, gen n)))
  | Follow3 t => exists c g x n,
      thr s t c (Read2 g x) /\ slot s (fst g) n /\ gen n = snd g /\
      s' = with_thread s t (Th c (Cert x))
  | Choose2 t => exists c h,
      thr s t c (Cert h) /\ 0 < c /\ shut s = false /\ s' = with_thread s t (Th c (Chosen h))
  | GrantAll t => exists c h n,
      thr s t c (Chosen h) /\ slot s (fst h) n /\ gen n = snd h /\ sta n = Waiting /\
      let lacks := want n - got_in (pay n) in
      lacks <= c /\
      s' = with_thread (with_counts (with_nodes s (upd (nodes s) (fst h)
             (Nd (gen n) Granted (pay n) (want n) (home n) (arr n))))
             (total s) (leased s) (untaken s + want n)) t (Th (c - lacks) (Cert h))
  | GrantPart t a => exists c h n,
      (thr s t c (Cert h) /\ a = 0 \/ thr s t c (Chosen h) /\ a = c) /\
      slot s (fst h) n /\ gen n = snd h /\ sta n = Waiting /\
      (a = 0 -> older (pay n) <> None) /\
      a < want n - got_in (pay n) /\
      s' = with_thread (with_nodes s (cut None (Some (arr n)) (upd (nodes s) (fst h)
             (Nd (gen n) Waiting (Head (got_in (pay n) + a)) (want n) (home n) (arr n)))))
             t (Th (c - a) (Cert h))
  | StartS t => exists c n g,
      thr s t c Idle /\ sword s = Queue (n, g) /\
      s' = with_thread s t (Th c (Walk (AtS g) n (Some n)))
  | StartW t d => exists c x,
      thr s t c (Known x) /\
      s' = with_thread s t (Th c (Walk (AtW x) d (Some d)))
  | WalkOn t => exists c a n j m,
      thr s t c (Walk a n (Some j)) /\ slot s j m /\ sta m <> Waiting /\
      s' = with_thread s t (Th c (Walk a n (older (pay m))))
  | WalkSees t => exists c a n j m,
      thr s t c (Walk a n (Some j)) /\ slot s j m /\ sta m = Waiting /\
      s' = with_thread s t (Th c (Sees a n (j, gen m)
             (match older (pay m) with None => true | _ => false end)))
  | Check t => exists c a n h b,
      thr s t c (Sees a n h b) /\ holds s a n /\
      s' = with_thread s t (Th c (if b then Cert h else Known h))
  | WalkEnd t => exists c x n,
      thr s t c (Walk (AtW x) n None) /\ holds s (AtW x) n /\
      s' = with_thread s t (Th c (Cert x))
  | CutW t lo => exists c x n cur m,
      thr s t c (Walk (AtW x) n cur) /\ cur <> Some n /\
      slot s (fst x) m /\ gen m = snd x /\ sta m = Waiting /\ pay m = Link n /\
      arr_of s cur lo /\
      s' = with_thread (with_nodes s (cut lo (Some (arr m)) (upd (nodes s) (fst x)
             (Nd (gen m) Waiting (link_to cur) (want m) (home m) (arr m)))))
             t (Th c (match cur with None => Cert x | Some _ => Idle end))
  | CutS t m lo => exists c g n cur,
      thr s t c (Walk (AtS g) n cur) /\ cur <> Some n /\ sword s = Queue (n, g) /\ arr_of s cur lo /\
      match cur with
      | None => (m = 0 \/ m = c) /\
          s' = with_thread (with_nodes (with_sword s (Avail m)) (cut lo None (nodes s)))
                           t (Th (c - m) Idle)
      | Some j => exists mj, slot s j mj /\
          s' = with_thread (with_nodes (with_sword s (Queue (j, gen mj))) (cut lo None (nodes s)))
                           t (Th c Idle)
      end
  | CutAll t m => exists c h n,
      thr s t c (Cert h) /\ sword s = Queue h /\ slot s (fst h) n /\ sta n <> Waiting /\
      (m = 0 \/ m = c) /\
      s' = with_thread (with_nodes (with_sword s (Avail m)) (cut None None (nodes s)))
                       t (Th (c - m) (Cert h))
  | CancelIt t => exists c h n,
      thr s t c (Known h) /\ slot s (fst h) n /\ gen n = snd h /\ sta n = Waiting /\
      s' = with_thread (with_nodes s (upd (nodes s) (fst h)
             (Nd (gen n) Gone (pay n) (want n) (home n) (arr n)))) t (Th (c + got_in (pay n)) Idle)
  | ShutIt t => exists c h n,
      shut s = true /\
      thr s t c (Known h) /\ slot s (fst h) n /\ gen n = snd h /\ sta n = Waiting /\
      s' = with_thread (with_nodes s (upd (nodes s) (fst h)
             (Nd (gen n) Ended (pay n) (want n) (home n) (arr n)))) t (Th (c + got_in (pay n)) Idle)
  | CloseIt => s' = St2 (total s) (sword s) true (nodes s) (newer s) (hint s)
                        (threads s) (leased s) (untaken s) (clock s) (published s)
  | Recycle i p b => exists n,
      slot s i n /\ home n = Out /\
      s' = with_nodes s (upd (nodes s) i (Nd (gen n) (sta n) p (want n)
             (if b then InPool else Out) (arr n)))
  | Abandon t => exists c p,
      thr s t c p /\
      match p with Prep _ _ | Pub _ _ _ => False | _ => True end /\
      s' = with_thread s t (Th c Idle)
  end.

Definition init2 n := St2 n (Avail n) false [] (fun _ => None) None [] 0 0 0 [].

Inductive steps2 (checked : bool) : state2 -> state2 -> Prop :=
| steps2_none s : steps2 checked s s
| steps2_more s l s' s'' : steps2 checked s s' -> step2 checked l s' s'' -> steps2 checked s s''.

Definition reachable2 checked s := exists n, steps2 checked (init2 n) s.

(** ** The invariant *)

Definition private (n : node) := match home n with Private _ => True | _ => False end.
Definition listed l i n := nth_error l i = Some n /\ home n = Listed.

(** Of a handle that others have: its slot is not in an earlier use, and if it is still in that
    use, then it was published.  The key to hazard 2. *)
Definition known l (h : handle) := exists n,
  nth_error l (fst h) = Some n /\ snd h <= gen n /\ (gen n = snd h -> ~ private n).

(** A certificate: for as long as the slot is in that use, all that is older is settled. *)
Definition cert l (h : handle) :=
  known l h /\
  forall n, listed l (fst h) n -> gen n = snd h ->
  forall j z, listed l j z -> arr z < arr n -> sta z <> Waiting.

(** From [n] on all is settled until [c], which is there. *)
Definition seg l (a : nat) (c : option nat) :=
  (forall j z, listed l j z -> arr z <= a ->
     (forall i m, c = Some i -> listed l i m -> arr m < arr z) -> sta z <> Waiting) /\
  (forall i, c = Some i -> exists m, listed l i m /\ arr m <= a).

(** What a walk knows holds for as long as the slot behind its anchor is listed, in that use or behind
    that anchor; and never again after that.  So the anchor itself need not be watched at each step. *)
Definition on_track l (a : anchor) n m := listed l n m /\
  match a with
  | AtS g => gen m = g
  | AtW x => exists y, listed l (fst x) y /\ gen y = snd x /\ arr m < arr y
  end.

Definition anchor_known l (a : anchor) n :=
  match a with AtS g => known l (n, g) | AtW x => known l x end.

Definition walk_ok l (a : anchor) n c :=
  anchor_known l a n /\ forall m, on_track l a n m -> seg l (arr m) c.

Definition sees_ok l (a : anchor) n h (old : bool) :=
  anchor_known l a n /\
  forall m, on_track l a n m -> known l h /\ (old = true -> cert l h).

Definition fits (n : node) (s0 : body) :=
  match s0 with Avail a => pay n = Head a /\ a < want n | Queue h => pay n = Link (fst h) end.

Definition mind_ok l t (p : phase2) :=
  match p with
  | Idle => True
  | Prep i k => 0 < k /\ exists n, nth_error l i = Some n /\ home n = Popped t
  | Pub i k s0 => 0 < k /\ exists n, nth_error l i = Some n /\ home n = Private t /\
                  sta n = Waiting /\ want n = k /\ fits n s0
  | Cert h | Chosen h => cert l h
  | Read1 g x => cert l g /\ known l x /\
                 (forall n, nth_error l (fst g) = Some n -> gen n = snd g -> sta n <> Waiting)
  | Read2 g x => known l g /\ known l x /\
                 (forall n, nth_error l (fst g) = Some n -> gen n = snd g -> cert l x)
  | Walk a n c => walk_ok l a n c
  | Sees a n h b => sees_ok l a n h b
  | Known h => known l h
  end.

Definition node_ok k (n : node) :=
  match home n with
  | InPool | Popped _ | Out => sta n <> Waiting
  | Private _ => True
  | Listed => arr n < k /\ (sta n = Waiting -> got_in (pay n) < want n)
  end.

(** The list: arrival numbers are different, a link leads to the next older one, [Head] means that
    there is none, and older than a granted one all are settled. *)
Record list_ok l : Prop := {
  l_inj : forall i j n m, listed l i n -> listed l j m -> arr n = arr m -> i = j;
  l_link : forall i n j, listed l i n -> pay n = Link j ->
           exists m, listed l j m /\ arr m < arr n /\
           forall b z, listed l b z -> arr z < arr n -> arr z <= arr m;
  l_head : forall i n g, listed l i n -> pay n = Head g ->
           forall b z, listed l b z -> arr n <= arr z;
  l_granted : forall i n, listed l i n -> sta n = Granted ->
           forall b z, listed l b z -> arr z < arr n -> sta z <> Waiting
}.

Definition sword_ok l b :=
  match b with
  | Avail _ => forall i n, ~ listed l i n
  | Queue h => exists n, listed l (fst h) n /\ gen n = snd h /\
               forall j z, listed l j z -> arr z <= arr n
  end.

Record inv2 (s : state2) : Prop := {
  j_sum : all_permits s = total s;
  j_node : forall i n, slot s i n -> node_ok (clock s) n;
  j_list : list_ok (nodes s);
  j_sword : sword_ok (nodes s) (sword s);
  j_newer : forall i h, newer s i = Some h -> known (nodes s) h;
  j_hint : forall h, hint s = Some h -> cert (nodes s) h;
  j_published : forall h, In h (published s) -> known (nodes s) h;
  j_mind : forall t p, nth_error (threads s) t = Some p -> mind_ok (nodes s) t (mind p)
}.

(** * Scripts *)

Lemma listed_dec l i : (exists n, listed l i n) \/ forall n, ~ listed l i n.
Proof.
  unfold listed; destruct (nth_error l i) as [n|] eqn:E.
  - destruct (home n) eqn:H; [right|right|right|left; eauto|right]; intros m [F G]; congruence.
  - right; intros m [F G]; discriminate.
Qed.

Lemma listed_fun l i n m : listed l i n -> listed l i m -> n = m.
Proof. intros [A _] [B _]; congruence. Qed.

(** ** How the pool may change, and what every reader knows in spite of it *)

(** One slot: another use of it, unpublished; or the same use, in which nothing settled waits again,
    nothing becomes private, and what is listed is where it was, unless it was just published with the
    next arrival number. *)
Definition later k (n n' : node) :=
  (gen n < gen n' /\ home n' <> Listed) \/
  (gen n = gen n' /\ (private n' -> private n) /\ (sta n <> Waiting -> sta n' <> Waiting) /\
   (home n' = Listed -> (home n = Listed /\ arr n' = arr n) \/ (private n /\ arr n' = k))).

Record grows k (l l' : list node) : Prop := {
  g_slot : forall i n, nth_error l i = Some n -> exists n', nth_error l' i = Some n' /\ later k n n';
  g_new : forall i n', listed l' i n' -> exists n, nth_error l i = Some n;
  g_clock : forall i n, listed l i n -> arr n < k
}.

Definition inj l := forall i j n m, listed l i n -> listed l j m -> arr n = arr m -> i = j.

(** Whatever leaves the list, all between it and a waiting newer neighbour, or the newest, leaves
    with it. *)
Definition cuts (l l' : list node) := forall j c, listed l j c -> (forall c', ~ listed l' j c') ->
  forall i n n', listed l i n -> listed l' i n' -> arr c < arr n ->
  exists y m, listed l y m /\ sta m = Waiting /\ arr c < arr m /\ arr m <= arr n.

(** What t has popped, nobody but t changes. *)
Definition keeps t (l l' : list node) := forall i n u,
  nth_error l i = Some n -> home n = Popped u \/ home n = Private u -> u <> t ->
  nth_error l' i = Some n.

Lemma listed_back k l l' i n' : grows k l l' -> listed l' i n' ->
  (exists n, listed l i n /\ arr n' = arr n /\ gen n' = gen n /\
             (sta n <> Waiting -> sta n' <> Waiting)) \/
  (arr n' = k /\ exists n, nth_error l i = Some n /\ private n /\ gen n = gen n').
Proof.
  intros G L. destruct (g_new _ _ _ G _ _ L) as [n E].
  destruct (g_slot _ _ _ G _ _ E) as (m & E' & La).
  destruct L as [E'' H]. assert (m = n') by congruence; subst m.
  destruct La as [[_ X]|(A & B & C & D)]; [congruence|].
  destruct (D H) as [[H1 H2]|[H1 H2]].
  - left; exists n; repeat split; auto.
  - right; split; auto. exists n; auto.
Qed.

Lemma known_grows k l l' h : grows k l l' -> known l h -> known l' h.
Proof.
  intros G (n & E & Le & P). destruct (g_slot _ _ _ G _ _ E) as (n' & E' & La).
  exists n'; split; auto. destruct La as [[Lt X]|(A & B & C & D)].
  - split; [lia|]. intros; lia.
  - rewrite <- A; split; auto. intros Q Pr; apply (P Q); auto.
Qed.

Lemma cert_grows k l l' h : grows k l l' -> cert l h -> cert l' h.
Proof.
  intros G [K C]; split; [eauto using known_grows|].
  intros n' L' E' j z' Lz Lt.
  destruct (listed_back _ _ _ _ _ G L') as [(n & L & A & Ge & _)|(A & n & En & P & Ge)].
  - destruct (listed_back _ _ _ _ _ G Lz) as [(z & Lz0 & Az & _ & Sz)|(Az & _)].
    + apply Sz. apply (C n L) with (j := j); auto; congruence || lia.
    + pose proof (g_clock _ _ _ G _ _ L); lia.
  - destruct K as (m & Em & _ & Pm). assert (m = n) by congruence; subst m.
    exfalso; apply Pm; auto; congruence.
Qed.

Lemma seg_grows k l l' i0 n0 n0' c : grows k l l' -> inj l -> cuts l l' ->
  listed l i0 n0 -> listed l' i0 n0' -> arr n0' = arr n0 ->
  seg l (arr n0) c -> seg l' (arr n0') c.
Proof.
  intros G I K L L' A [S1 S2]; rewrite A.
  assert (Keep : forall i m, c = Some i -> listed l i m -> exists m', listed l' i m' /\ arr m' = arr m).
  { intros i m -> Lm. destruct (S2 i eq_refl) as (m0 & Lm0 & Le).
    assert (m0 = m) by eauto using listed_fun; subst m0.
    destruct (listed_dec l' i) as [[m' Lm']|N].
    - exists m'; split; auto.
      destruct (listed_back _ _ _ _ _ G Lm') as [(m1 & L1 & A1 & _)|(_ & q & Eq & P & _)].
      + rewrite A1; f_equal; eauto using listed_fun.
      + destruct Lm as [E H]; assert (q = m) by congruence; subst q.
        unfold private in P; rewrite H in P; tauto.
    - exfalso. destruct (Nat.eq_dec (arr m) (arr n0)) as [Q|Q].
      + assert (i = i0) by eauto; subst i. eapply N; eauto.
      + destruct (K i m Lm N i0 n0 n0' L L') as (y & my & Ly & Wy & Lt1 & Lt2); [lia|].
        apply (S1 y my Ly Lt2); auto.
        intros i1 m1 [= <-] L1. assert (m1 = m) by eauto using listed_fun; subst; auto. }
  split.
  - intros j z' Lz Le Cu.
    destruct (listed_back _ _ _ _ _ G Lz) as [(z & Lz0 & Az & _ & Sz)|(Az & _)].
    + apply Sz, (S1 j z Lz0); [lia|].
      intros i m Hc Lm. destruct (Keep i m Hc Lm) as (m' & Lm' & Am).
      rewrite <- Am, <- Az; eauto.
    + pose proof (g_clock _ _ _ G _ _ L); lia.
  - intros i Hc. destruct (S2 i Hc) as (m & Lm & Le).
    destruct (Keep i m Hc Lm) as (m' & Lm' & Am). exists m'; split; auto; lia.
Qed.

Lemma anchor_grows k l l' a n : grows k l l' -> anchor_known l a n -> anchor_known l' a n.
Proof. destruct a; cbn; eauto using known_grows. Qed.

Lemma on_track_back k l l' a n m' : grows k l l' -> anchor_known l a n -> on_track l' a n m' ->
  exists m, on_track l a n m /\ listed l' n m' /\ arr m' = arr m.
Proof.
  intros G K [L' T]; destruct a as [g|x]; cbn in *.
  - destruct (listed_back _ _ _ _ _ G L') as [(m & L & A & Gm & _)|(A & q & Eq & P & Gm)].
    + exists m; repeat split; auto; try apply L; try apply L'; congruence.
    + destruct K as (q' & Eq' & _ & Pq); cbn in *. assert (q' = q) by congruence; subst.
      exfalso; apply Pq; auto; congruence.
  - destruct T as (y' & Ly' & Gy & Lt).
    destruct (listed_back _ _ _ _ _ G Ly') as [(y & Ly & Ay & Gy' & _)|(Ay & q & Eq & P & Gq)].
    + destruct (listed_back _ _ _ _ _ G L') as [(m & Lm & Am & _ & _)|(Am & _)].
      * exists m; repeat split; auto; try apply Lm; try apply L'.
        exists y; repeat split; try apply Ly; [congruence | lia].
      * pose proof (g_clock _ _ _ G _ _ Ly); lia.
    + destruct K as (q' & Eq' & _ & Pq). assert (q' = q) by congruence; subst.
      exfalso; apply Pq; auto; congruence.
Qed.

Lemma walk_grows k l l' a n c : grows k l l' -> inj l -> cuts l l' ->
  walk_ok l a n c -> walk_ok l' a n c.
Proof.
  intros G I K [Kn W]; split; [eauto using anchor_grows|].
  intros m' T'. destruct (on_track_back _ _ _ _ _ _ G Kn T') as (m & T & L' & A).
  destruct T as [L T]. eapply seg_grows; eauto. apply W; split; auto.
Qed.

Lemma sees_grows k l l' a n h b : grows k l l' -> sees_ok l a n h b -> sees_ok l' a n h b.
Proof.
  intros G [Kn W]; split; [eauto using anchor_grows|].
  intros m' T'. destruct (on_track_back _ _ _ _ _ _ G Kn T') as (m & T & _).
  destruct (W m T) as [W1 W2]; split; eauto using known_grows, cert_grows.
Qed.

Lemma mind_grows k t l l' u p : grows k l l' -> inj l -> cuts l l' -> keeps t l l' -> u <> t ->
  mind_ok l u p -> mind_ok l' u p.
Proof.
  intros G I K Ke Ne; destruct p as [|i r|i r s0|h|h|g x|g x|a n c|a n h b|h]; cbn; auto.
  - intros (Lt & n & E & H); split; auto. exists n; split; auto. eapply Ke; eauto.
  - intros (Lt & n & E & H & R); split; auto. exists n; split; auto. eapply Ke; eauto.
  - eauto using cert_grows.
  - eauto using cert_grows.
  - intros (A & B & C); split; [eauto using cert_grows | split; [eauto using known_grows|]].
    intros n' E' Ge. destruct A as [(n & E & Le & P) _].
    destruct (g_slot _ _ _ G _ _ E) as (m & Em & [[Lt X]|(Q1 & Q2 & Q3 & Q4)]);
      assert (m = n') by congruence; subst m; [lia|].
    apply Q3, (C n); auto; congruence.
  - intros (A & B & C); split; [eauto using known_grows | split; [eauto using known_grows|]].
    intros n' E' Ge. destruct A as (n & E & Le & P).
    destruct (g_slot _ _ _ G _ _ E) as (m & Em & [[Lt X]|(Q1 & Q2 & Q3 & Q4)]);
      assert (m = n') by congruence; subst m; [lia|].
    eapply cert_grows; eauto. apply (C n); auto; congruence.
  - eauto using walk_grows.
  - eauto using sees_grows.
  - eauto using known_grows.
Qed.

(** The part of the invariant that readers rely on, all at once. *)
Record readers (s : state2) (l : list node) : Prop := {
  r_newer : forall i h, newer s i = Some h -> known l h;
  r_hint : forall h, hint s = Some h -> cert l h;
  r_published : forall h, In h (published s) -> known l h
}.

Lemma readers_grows k s l l' : grows k l l' -> readers s l -> readers s l'.
Proof. intros G [A B C]; constructor; intros; eauto using known_grows, cert_grows. Qed.

Definition minds (ths : list thread) l := forall t p, nth_error ths t = Some p -> mind_ok l t (mind p).

Lemma minds_upd k ths l l' t c p q : minds ths l ->
  grows k l l' -> inj l -> cuts l l' -> keeps t l l' ->
  nth_error ths t = Some (Th c p) -> mind_ok l' t (mind q) ->
  minds (upd ths t q) l'.
Proof.
  intros M G I K Ke E N u r; rewrite (nth_upd _ _ _ _ _ E).
  destruct (Nat.eqb_spec t u) as [->|Ne]; [intros [= <-]; auto|].
  intros F; eapply mind_grows; eauto.
Qed.

Lemma minds_same ths l t c p q : minds ths l ->
  nth_error ths t = Some (Th c p) -> mind_ok l t (mind q) -> minds (upd ths t q) l.
Proof.
  intros M E N u r; rewrite (nth_upd _ _ _ _ _ E).
  destruct (Nat.eqb_spec t u) as [->|Ne]; [intros [= <-]; auto|]. eauto.
Qed.

Lemma later_refl k n : later k n n.
Proof. right; repeat split; auto. Qed.

(** ** One slot changes *)

Section OneSlot.
  Variables (k : nat) (l : list node) (i : nat) (n n' : node).
  Hypothesis at_i : nth_error l i = Some n.

  Lemma upd_grows : (forall j m, listed l j m -> arr m < k) -> later k n n' -> grows k l (upd l i n').
  Proof.
    intros C La; constructor; auto.
    - intros j m E; rewrite (nth_upd _ _ _ _ _ at_i).
      destruct (Nat.eqb_spec i j) as [->|]; [|exists m; split; auto using later_refl].
      exists n'; split; auto. congruence.
    - intros j m' [E H]; rewrite (nth_upd _ _ _ _ _ at_i) in E.
      destruct (Nat.eqb_spec i j) as [->|]; eauto.
  Qed.

  Lemma upd_cuts : (home n = Listed -> home n' = Listed) -> cuts l (upd l i n').
  Proof.
    intros H j c [E Hc] N; exfalso.
    destruct (Nat.eq_dec i j) as [->|Ne].
    - apply (N n'); split; [rewrite (nth_upd _ _ _ _ _ at_i), Nat.eqb_refl; auto|].
      apply H; congruence.
    - apply (N c); split; auto. rewrite (nth_upd _ _ _ _ _ at_i).
      destruct (Nat.eqb_spec i j); congruence.
  Qed.

  Lemma upd_keeps t :
    (forall u, home n = Popped u \/ home n = Private u -> u = t) -> keeps t l (upd l i n').
  Proof.
    intros H j m u E Hm Ne; rewrite (nth_upd _ _ _ _ _ at_i).
    destruct (Nat.eqb_spec i j) as [->|]; auto.
    assert (m = n) by congruence; subst; exfalso; eauto.
  Qed.

  Lemma listed_upd j m : listed (upd l i n') j m <->
    (j = i /\ m = n' /\ home n' = Listed) \/ (j <> i /\ listed l j m).
  Proof.
    unfold listed; rewrite (nth_upd _ _ _ _ _ at_i).
    destruct (Nat.eqb_spec i j) as [->|]; intuition (subst; congruence || auto).
  Qed.
End OneSlot.

(** ** Cutting *)

Lemma nth_cut lo hi l i : nth_error (cut lo hi l) i = option_map (cut1 lo hi) (nth_error l i).
Proof. unfold cut; revert i; induction l as [|n r IH]; intros [|i]; cbn; auto. Qed.

Lemma listed_cut lo hi l i n :
  listed (cut lo hi l) i n <-> listed l i n /\ between lo hi (arr n) = false.
Proof.
  unfold listed; rewrite nth_cut. destruct (nth_error l i) as [m|]; cbn.
  - unfold cut1; destruct (home m) eqn:H; try destruct (between lo hi (arr m)) eqn:B;
      intuition (try discriminate); try congruence;
      match goal with E : Some _ = Some _ |- _ => injection E as <-; cbn in *; congruence end.
  - intuition discriminate.
Qed.

Lemma cut_later k lo hi n : later k n (cut1 lo hi n).
Proof.
  unfold cut1; destruct (home n) eqn:H; try apply later_refl.
  destruct (between lo hi (arr n)); [|apply later_refl].
  right; cbn; repeat split; auto; try tauto; discriminate.
Qed.

Lemma cut_grows k lo hi l : (forall j m, listed l j m -> arr m < k) -> grows k l (cut lo hi l).
Proof.
  intros C; constructor; auto.
  - intros i n E; exists (cut1 lo hi n); split; [rewrite nth_cut, E; auto | apply cut_later].
  - intros i n [E _]; rewrite nth_cut in E. destruct (nth_error l i); [eauto | discriminate].
Qed.

Lemma cut_keeps t lo hi l : keeps t l (cut lo hi l).
Proof.
  intros i n u E H _; rewrite nth_cut, E; cbn; unfold cut1.
  destruct H as [-> | ->]; auto.
Qed.

(** Below a waiting anchor, or from the newest on. *)
Lemma cut_cuts_below l lo x m : listed l x m -> sta m = Waiting ->
  cuts l (cut lo (Some (arr m)) l).
Proof.
  intros Lx Wx j c Lc N i n n' Ln Ln' Lt.
  exists x, m; repeat split; auto; try apply Lx.
  - apply Nat.nle_gt; intros Le. apply (N c), listed_cut; split; auto.
    unfold between. destruct (Nat.ltb_spec (arr c) (arr m)); [lia|]. apply andb_false_r.
  - apply listed_cut in Ln' as [Ln0 B]. assert (n' = n) by eauto using listed_fun; subst.
    unfold between in B.
    destruct (Nat.ltb_spec (arr n) (arr m)); [|lia]. exfalso.
    rewrite andb_true_r in B. apply (N c), listed_cut; split; auto.
    unfold between. destruct lo as [b|]; [|discriminate].
    apply andb_false_intro1. apply Nat.ltb_ge in B; apply Nat.ltb_ge; lia.
Qed.

Lemma cut_cuts_top l lo : cuts l (cut lo None l).
Proof.
  intros j c Lc N i n n' Ln Ln' Lt; exfalso.
  apply listed_cut in Ln' as [Ln0 B]. assert (n' = n) by eauto using listed_fun; subst.
  unfold between in B; rewrite andb_true_r in B.
  apply (N c), listed_cut; split; auto; unfold between; rewrite andb_true_r.
  destruct lo as [b|]; [|discriminate]. apply Nat.ltb_ge in B; apply Nat.ltb_ge; lia.
Qed.

Lemma sum_cut lo hi l :
  (forall i n, listed l i n -> between lo hi (arr n) = true -> sta n <> Waiting) ->
  sum reserved1 (cut lo hi l) = sum reserved1 l.
Proof.
  unfold cut; induction l as [|n r IH]; intros H; cbn; auto.
  rewrite IH by (intros i m [E Hm]; apply (H (S i) m); split; auto). f_equal.
  unfold cut1; destruct (home n) eqn:Hn; auto.
  destruct (between lo hi (arr n)) eqn:B; auto.
  unfold reserved1; cbn. rewrite Hn.
  specialize (H 0 n (conj eq_refl Hn) B). destruct (sta n); tauto.
Qed.

(** ** The list *)

Lemma list_ok_inj l : list_ok l -> inj l.
Proof. intros L i j n m; apply (l_inj _ L). Qed.

(** What is not listed does not matter. *)
Lemma list_ok_ext l l' : (forall i n, listed l' i n <-> listed l i n) -> list_ok l -> list_ok l'.
Proof.
  intros X [A B C D]; constructor.
  - intros i j n m L1 L2; apply X in L1, L2; eauto.
  - intros i n j L P; apply X in L. destruct (B i n j L P) as (m & Lm & Lt & F).
    exists m; repeat split; auto; try apply X; auto; try apply Lm.
    intros b z Lz; apply X in Lz; eauto.
  - intros i n g L P b z Lz; apply X in L, Lz; eauto.
  - intros i n L P b z Lz; apply X in L, Lz; eauto.
Qed.

Lemma sword_ok_ext l l' b : (forall i n, listed l' i n <-> listed l i n) -> sword_ok l b -> sword_ok l' b.
Proof.
  intros X; destruct b as [a|h]; cbn.
  - intros N i n L; apply X in L; eapply N; eauto.
  - intros (n & L & G & F); exists n; repeat split; auto; try apply X; auto; try apply L.
    intros j z Lz; apply X in Lz; eauto.
Qed.

(** A listed slot is settled. *)
Section Settle.
  Variables (l : list node) (i : nat) (n n' : node).
  Hypothesis at_i : listed l i n.
  Hypothesis same : home n' = home n /\ arr n' = arr n /\ pay n' = pay n /\ gen n' = gen n.
  Hypothesis ends : sta n' <> Waiting.

  Let to_old j m : listed (upd l i n') j m ->
    exists m0, listed l j m0 /\ arr m = arr m0 /\ pay m = pay m0 /\ gen m = gen m0 /\
               (sta m0 <> Waiting -> sta m <> Waiting) /\ (m = m0 \/ (j = i /\ m = n')).
  Proof.
    intros L; apply (listed_upd _ _ _ _ (proj1 at_i)) in L as [(-> & -> & _)|[Ne L]].
    - exists n; intuition.
    - exists m; intuition.
  Qed.

  Let to_new j m0 : listed l j m0 ->
    exists m, listed (upd l i n') j m /\ arr m = arr m0 /\ gen m = gen m0.
  Proof.
    intros L. destruct (Nat.eq_dec j i) as [->|Ne].
    - exists n'. assert (m0 = n) by eauto using listed_fun; subst. destruct same as (A & B & C & D).
      split; [|auto]. apply (listed_upd _ _ _ _ (proj1 at_i)); left; repeat split; auto.
      rewrite A; apply at_i.
    - exists m0; split; auto. apply (listed_upd _ _ _ _ (proj1 at_i)); right; auto.
  Qed.

  Lemma settle_list :
    (sta n' = Granted -> forall b z, listed l b z -> arr z < arr n -> sta z <> Waiting) ->
    list_ok l -> list_ok (upd l i n').
  Proof.
    intros Gr [A B C D]; constructor.
    - intros a b x y La Lb E. apply to_old in La as (x0 & La & Ax & _), Lb as (y0 & Lb & Ay & _).
      apply (A a b x0 y0 La Lb). congruence.
    - intros a x j La P. apply to_old in La as (x0 & La & Ax & Px & _).
      destruct (B a x0 j La) as (m & Lm & Lt & F); [congruence|].
      destruct (to_new _ _ Lm) as (m' & Lm' & Am & _). exists m'; repeat split; auto; try apply Lm'; try lia.
      intros b z Lz. apply to_old in Lz as (z0 & Lz & Az & _). specialize (F b z0 Lz). lia.
    - intros a x g La P b z Lz. apply to_old in La as (x0 & La & Ax & Px & _), Lz as (z0 & Lz & Az & _).
      pose proof (C a x0 g La ltac:(congruence) b z0 Lz). lia.
    - intros a x La P b z Lz Lt.
      apply to_old in La as (x0 & La & Ax & _ & _ & _ & O), Lz as (z0 & Lz & Az & _ & _ & Sz & _).
      apply Sz. destruct O as [->|[-> ->]].
      + apply (D a x0 La P b z0 Lz); lia.
      + assert (x0 = n) by eauto using listed_fun; subst. apply (Gr P b z0 Lz); lia.
  Qed.

  Lemma settle_sword b : sword_ok l b -> sword_ok (upd l i n') b.
  Proof.
    destruct b as [a|h]; cbn.
    - intros N; exfalso; eapply N; eauto.
    - intros (m & Lm & G & F). destruct (to_new _ _ Lm) as (m' & Lm' & Am & Gm).
      exists m'; split; [auto|]; split; [congruence|].
      intros j z Lz. apply to_old in Lz as (z0 & Lz & Az & _). specialize (F j z0 Lz). lia.
  Qed.
End Settle.

(** A listed, waiting slot gets another place, and all between it and its new older neighbour leaves. *)
Section Cut.
  Variables (l : list node) (x : nat) (m : node) (p : payload) (w : nat) (lo : option nat).
  Hypothesis at_x : listed l x m.
  Hypothesis waits_m : sta m = Waiting.
  Let m' := Nd (gen m) Waiting p w (home m) (arr m).
  Hypothesis fits_p : match p with
    | Link j => exists q, listed l j q /\ arr q < arr m /\ lo = Some (arr q)
    | Head _ => lo = None
    end.
  Hypothesis L : list_ok l.

  Let l' := cut lo (Some (arr m)) (upd l x m').

  Lemma listed_anchor j n : listed l' j n <->
    (j = x /\ n = m') \/ (j <> x /\ listed l j n /\ between lo (Some (arr m)) (arr n) = false).
  Proof.
    unfold l'; rewrite listed_cut, (listed_upd _ _ _ _ (proj1 at_x)).
    assert (B : between lo (Some (arr m')) (arr m') = false).
    { unfold between; rewrite Nat.ltb_irrefl; apply andb_false_r. }
    assert (H : home m' = Listed) by apply at_x.
    split.
    - intros [[(-> & -> & _)|[Ne Lj]] Bn]; auto.
    - intros [[-> ->]|(Ne & Lj & Bn)]; split; auto.
  Qed.

  Lemma out_of_range n : between lo (Some (arr m)) (arr n) = false <->
    arr m <= arr n \/ exists b, lo = Some b /\ arr n <= b.
  Proof.
    unfold between; rewrite andb_false_iff, Nat.ltb_ge.
    destruct lo as [b|]; split.
    - intros [H|H]; [right; exists b; split; auto; apply Nat.ltb_ge; auto | auto].
    - intros [H|(b' & [= <-] & H)]; [auto | left; apply Nat.ltb_ge; auto].
    - intros [H|H]; [discriminate | auto].
    - intros [H|(b' & H & _)]; [auto | discriminate].
  Qed.

  (** Every listed one was listed, with the same number. *)
  Let to_old j n : listed l' j n -> exists n0, listed l j n0 /\ arr n = arr n0 /\ gen n = gen n0 /\
    (j <> x -> n = n0) /\ between lo (Some (arr m)) (arr n) = false.
  Proof.
    intros H; apply listed_anchor in H as [[-> ->]|(Ne & Lj & B)].
    - exists m; repeat split; auto; try apply at_x; try congruence.
      apply out_of_range; left; auto.
    - exists n; auto.
  Qed.

  Lemma anchor_list : list_ok l'.
  Proof.
    destruct L as [A B C D]; constructor.
    - intros i j a b La Lb E.
      destruct (to_old _ _ La) as (a0 & La0 & Aa & _), (to_old _ _ Lb) as (b0 & Lb0 & Ab & _).
      apply (A i j a0 b0 La0 Lb0). congruence.
    - intros i n j Li P. apply listed_anchor in Li as [[-> ->]|(Ne & Li & Bn)].
      + cbn in P. pose proof fits_p as Fp; rewrite P in Fp. destruct Fp as (q & Lq & Lt & Elo).
        assert (j <> x) by (intros ->; assert (q = m) by eauto using listed_fun; subst; lia).
        exists q; split; [|split; [cbn; auto|]].
        * apply listed_anchor; right; repeat split; auto; try apply Lq.
          apply out_of_range; right; exists (arr q); auto.
        * intros b z Lz Lt'; cbn in Lt'. destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _ & _ & Bz).
          apply out_of_range in Bz as [Bz|(b' & E & Bz)]; [lia|]. congruence || (rewrite Elo in E; injection E as <-; auto).
      + destruct (B i n j Li P) as (q & Lq & Lt & F).
        assert (Q : between lo (Some (arr m)) (arr q) = false \/ j = x).
        { destruct (Nat.eq_dec j x) as [->|Nj]; auto. left. apply out_of_range.
          apply out_of_range in Bn as [Bn|(b & E & Bn)].
          - left. apply (F x m at_x).
            assert (arr n <> arr m) by (intros E; apply Ne; eauto). lia.
          - right; exists b; split; auto; lia. }
        destruct (Nat.eq_dec j x) as [->|Nj].
        * assert (q = m) by eauto using listed_fun; subst q.
          exists m'; split; [apply listed_anchor; auto|]; split; [cbn; auto|].
          intros b z Lz Lt'. destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _).
          cbn; rewrite Az; apply (F b z0 Lz0); lia.
        * destruct Q as [Q|Q]; [|congruence].
          exists q; split; [apply listed_anchor; auto|]; split; auto.
          intros b z Lz Lt'. destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _).
          rewrite Az; apply (F b z0 Lz0); lia.
    - intros i n g Li P b z Lz. destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _ & _ & Bz).
      apply listed_anchor in Li as [[-> ->]|(Ne & Li & Bn)].
      + cbn in P. pose proof fits_p as Fp; rewrite P in Fp.
        apply out_of_range in Bz as [Bz|(b' & E & Bz)]; [auto|]. congruence.
      + rewrite Az; eauto.
    - intros i n Li P b z Lz Lt.
      apply listed_anchor in Li as [[-> ->]|(Ne & Li & Bn)]; [discriminate|].
      destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _ & Zz & _).
      destruct (Nat.eq_dec b x) as [->|Nb].
      + assert (z0 = m) by eauto using listed_fun; subst z0.
        apply listed_anchor in Lz as [[_ ->]|(N & _)]; [|congruence].
        exfalso. apply (D i n Li P x m at_x); [lia|].
        exact waits_m.
      + rewrite (Zz Nb); rewrite (Zz Nb) in Lt. eauto.
  Qed.

  Lemma anchor_sword b : sword_ok l b -> sword_ok l' b.
  Proof.
    destruct b as [a|h]; cbn.
    - intros N; exfalso; eapply N; eauto.
    - intros (n & Ln & G & F). destruct (Nat.eq_dec (fst h) x) as [E|Ne].
      + exists m'; split; [apply listed_anchor; auto|].
        assert (n = m) by (rewrite E in Ln; eauto using listed_fun); subst n. split; [auto|].
        intros j z Lz; destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _); cbn.
        rewrite Az; eauto.
      + exists n; split; [apply listed_anchor; right; repeat split; auto; try apply Ln|].
        { apply out_of_range; left; eauto. }
        split; auto. intros j z Lz; destruct (to_old _ _ Lz) as (z0 & Lz0 & Az & _).
        rewrite Az; eauto.
  Qed.
End Cut.

(** The state word moves to an older one, and all that is newer leaves. *)
Section CutTop.
  Variables (l : list node) (lo : option nat).
  Hypothesis L : list_ok l.
  Let l' := cut lo None l.

  Let top j n : listed l' j n <-> listed l j n /\ exists b, lo = Some b /\ arr n <= b.
  Proof.
    unfold l'; rewrite listed_cut; unfold between; rewrite andb_true_r.
    destruct lo as [b|]; split; intros [H1 H2]; split; auto.
    - exists b; split; auto; apply Nat.ltb_ge; auto.
    - destruct H2 as (b' & [= <-] & H2); apply Nat.ltb_ge; auto.
    - discriminate.
    - destruct H2 as (b' & H2 & _); discriminate.
  Qed.

  Lemma top_list : list_ok l'.
  Proof.
    destruct L as [A B C D]; constructor.
    - intros i j n m L1 L2; apply top in L1 as [L1 _], L2 as [L2 _]; eauto.
    - intros i n j Li P; apply top in Li as [Li (b & E & Le)].
      destruct (B i n j Li P) as (q & Lq & Lt & F).
      exists q; split; [apply top; split; auto; exists b; split; auto; lia|]; split; auto.
      intros c z Lz; apply top in Lz as [Lz _]; eauto.
    - intros i n g Li P b z Lz; apply top in Li as [Li _], Lz as [Lz _]; eauto.
    - intros i n Li P b z Lz; apply top in Li as [Li _], Lz as [Lz _]; eauto.
  Qed.

  Lemma top_empty : lo = None -> forall i n, ~ listed l' i n.
  Proof. intros E i n H; apply top in H as [_ (b & F & _)]; congruence. Qed.

  Lemma top_sword j m : listed l j m -> lo = Some (arr m) -> sword_ok l' (Queue (j, gen m)).
  Proof.
    intros Lj E; exists m; split; [apply top; split; auto; exists (arr m); auto|].
    split; auto. intros i z Lz; apply top in Lz as [_ (b & F & Le)]. congruence.
  Qed.
End CutTop.

(** ** Walks *)

Lemma known_listed k l h n : known l h -> nth_error l (fst h) = Some n -> gen n = snd h ->
  sta n = Waiting -> node_ok k n -> home n = Listed.
Proof.
  intros (m & E & _ & P) E' G W N. assert (m = n) by congruence; subst m.
  unfold node_ok in N; unfold private in P. destruct (home n); auto; tauto.
Qed.

Lemma listed_known l i n : listed l i n -> known l (i, gen n).
Proof.
  intros [E H]; exists n; repeat split; auto. intros _; unfold private; rewrite H; auto.
Qed.

Lemma seg_start l n m : listed l n m -> seg l (arr m) (Some n).
Proof.
  intros L; split.
  - intros j z Lz Le C. specialize (C n m eq_refl L); lia.
  - intros i [= <-]; exists m; auto.
Qed.

Lemma seg_on l a j m : list_ok l -> seg l a (Some j) -> nth_error l j = Some m -> sta m <> Waiting ->
  seg l a (older (pay m)).
Proof.
  intros L [S1 S2] E W. destruct (S2 j eq_refl) as (m0 & Lm & Le).
  assert (m0 = m) by (destruct Lm; congruence); subst m0.
  split.
  - intros b z Lz Lez C. destruct (lt_eq_lt_dec (arr m) (arr z)) as [[Lt|Eq]|Lt].
    + apply (S1 b z Lz Lez). intros i q [= <-] Lq.
      assert (q = m) by eauto using listed_fun; subst; auto.
    + assert (j = b) by (eapply (l_inj _ L); eauto); subst b.
      assert (z = m) by eauto using listed_fun; subst; auto.
    + destruct (pay m) as [d|g] eqn:P.
      * destruct (l_link _ L j m d Lm P) as (q & Lq & Ltq & F).
        specialize (F b z Lz Lt). specialize (C d q eq_refl Lq). lia.
      * pose proof (l_head _ L j m g Lm P b z Lz). lia.
  - intros i Hi. destruct (pay m) as [d|g] eqn:P; [|discriminate]. injection Hi as <-.
    destruct (l_link _ L j m d Lm P) as (q & Lq & Ltq & F). exists q; split; auto; lia.
Qed.

Lemma holds_on_track s a n : inv2 s -> anchor_known (nodes s) a n -> holds s a n ->
  exists m, on_track (nodes s) a n m /\
    match a with
    | AtS _ => forall j z, listed (nodes s) j z -> arr z <= arr m
    | AtW x => exists y, listed (nodes s) (fst x) y /\ gen y = snd x /\ sta y = Waiting /\
               arr m < arr y /\ forall j z, listed (nodes s) j z -> arr z < arr y -> arr z <= arr m
    end.
Proof.
  intros I K H; destruct a as [g|x]; cbn in *.
  - pose proof (j_sword _ I) as W; rewrite H in W; cbn in W.
    destruct W as (m & L & G & F); exists m; repeat split; auto; apply L.
  - destruct H as (y & E & G & W & P).
    assert (Ly : listed (nodes s) (fst x) y).
    { split; auto. eapply known_listed; eauto. eapply (j_node _ I); eauto. }
    destruct (l_link _ (j_list _ I) _ _ _ Ly P) as (m & Lm & Lt & F).
    exists m; split; [split; [auto | exists y; auto] | exists y; auto].
Qed.

(** ** Each step keeps the invariant *)

Lemma minds_all k ths l l' : minds ths l -> grows k l l' -> inj l -> cuts l l' ->
  (forall t, keeps t l l') -> minds ths l'.
Proof.
  intros M G I K Ke t p E. eapply (mind_grows k (S t)); eauto.
Qed.

Lemma unlisted_upd l i n n' : nth_error l i = Some n -> home n <> Listed -> home n' <> Listed ->
  (forall j m, listed (upd l i n') j m <-> listed l j m) /\
  sum reserved1 (upd l i n') = sum reserved1 l.
Proof.
  intros E H H'; split.
  - intros j m; rewrite (listed_upd _ _ _ _ E); split.
    + intros [(-> & -> & X)|[Ne L]]; [tauto | auto].
    + intros L; right; split; auto. intros ->. destruct L as [E' L]. congruence.
  - pose proof (sum_upd reserved1 _ _ n' _ E) as S.
    assert (Z : forall m, home m <> Listed -> reserved1 m = 0)
      by (intros m X; unfold reserved1; destruct (home m); tauto).
    rewrite !Z in S by auto. lia.
Qed.

Lemma nodes_upd k l i n n' :
  nth_error l i = Some n -> (forall j m, nth_error l j = Some m -> node_ok k m) -> node_ok k n' ->
  forall j m, nth_error (upd l i n') j = Some m -> node_ok k m.
Proof.
  intros E F N j m; rewrite (nth_upd _ _ _ _ _ E).
  destruct (i =? j); [intros [= <-]; auto | eauto].
Qed.

Lemma nodes_cut k lo hi l :
  (forall i n, listed l i n -> between lo hi (arr n) = true -> sta n <> Waiting) ->
  (forall j m, nth_error l j = Some m -> node_ok k m) ->
  forall j m, nth_error (cut lo hi l) j = Some m -> node_ok k m.
Proof.
  intros S F j m; rewrite nth_cut; destruct (nth_error l j) as [n|] eqn:E; [|discriminate].
  cbn; intros [= <-]. unfold cut1; destruct (home n) eqn:H; eauto.
  destruct (between lo hi (arr n)) eqn:B; eauto.
  cbn. apply (S j n); auto; split; auto.
Qed.

(** A slot that was not listed and is not. *)
Lemma unlisted_inv s t i c p q n n' :
  inv2 s -> slot s i n -> home n <> Listed -> home n' <> Listed ->
  later (clock s) n n' -> node_ok (clock s) n' ->
  (forall u, home n = Popped u \/ home n = Private u -> u = t) ->
  thr s t c p -> carry q = c -> mind_ok (upd (nodes s) i n') t (mind q) ->
  inv2 (with_thread (with_nodes s (upd (nodes s) i n')) t q).
Proof.
  intros I E H H' La N O T Cq M.
  assert (Ck : forall j m, listed (nodes s) j m -> arr m < clock s).
  { intros j m [F G]. pose proof (j_node _ I _ _ F) as K; unfold node_ok in K.
    rewrite G in K; apply K. }
  pose proof (upd_grows _ _ _ _ _ E Ck La) as G.
  destruct (unlisted_upd _ _ _ _ E H H') as [X Y].
  destruct I as [Js Jn Jl Jw Jr Jh Jp Jm].
  constructor; cbn; eauto using known_grows, cert_grows.
  - unfold all_permits, free in *; cbn. rewrite Y.
    pose proof (sum_upd carry _ _ q _ T) as Z; cbn in Z. lia.
  - unfold slot; cbn; eapply nodes_upd; eauto.
  - eapply list_ok_ext; eauto.
  - eapply sword_ok_ext; eauto.
  - eapply minds_upd; eauto.
    + apply list_ok_inj; auto.
    + eapply upd_cuts; eauto; tauto.
    + eapply upd_keeps; eauto.
Qed.

(** A listed slot is settled, and a thread changes its hand. *)
Lemma settle_inv s t i c p q n n' u :
  inv2 s -> listed (nodes s) i n ->
  n' = Nd (gen n) (sta n') (pay n) (want n) (home n) (arr n) ->
  sta n' <> Waiting -> sta n = Waiting ->
  (sta n' = Granted -> forall b z, listed (nodes s) b z -> arr z < arr n -> sta z <> Waiting) ->
  thr s t c p -> carry q + u = c + got_in (pay n) ->
  mind_ok (upd (nodes s) i n') t (mind q) ->
  inv2 (with_thread (with_counts (with_nodes s (upd (nodes s) i n')) (total s) (leased s)
         (untaken s + u)) t q).
Proof.
  intros I L En Se Wn Gr T Cq M. pose proof L as [E H].
  assert (Same : home n' = home n /\ arr n' = arr n /\ pay n' = pay n /\ gen n' = gen n)
    by (rewrite En; auto).
  assert (Ck : forall j m, listed (nodes s) j m -> arr m < clock s).
  { intros j m [F G]. pose proof (j_node _ I _ _ F) as K; unfold node_ok in K.
    rewrite G in K; apply K. }
  assert (La : later (clock s) n n').
  { destruct Same as (A & B & C & D). right; unfold private; rewrite A, D, H; repeat split; auto. }
  pose proof (upd_grows _ _ _ _ _ E Ck La) as G.
  destruct I as [Js Jn Jl Jw Jr Jh Jp Jm].
  constructor; cbn; eauto using known_grows, cert_grows.
  - unfold all_permits, free in *; cbn.
    pose proof (sum_upd carry _ _ q _ T) as Z; cbn in Z.
    pose proof (sum_upd reserved1 _ _ n' _ E) as Y.
    assert (R : reserved1 n = got_in (pay n)) by (unfold reserved1; rewrite H, Wn; auto).
    assert (R' : reserved1 n' = 0).
    { unfold reserved1; destruct (home n'); auto. destruct (sta n'); tauto. }
    lia.
  - unfold slot; cbn; eapply nodes_upd; eauto. pose proof (Jn _ _ E) as K.
    destruct Same as (A & B & C & D). unfold node_ok in *; rewrite A, H in *; rewrite B.
    split; [apply K | tauto].
  - eapply settle_list; eauto.
  - eapply settle_sword; eauto.
  - eapply minds_upd; eauto.
    + apply list_ok_inj; auto.
    + eapply upd_cuts; eauto. destruct Same as [-> _]; auto.
    + eapply upd_keeps; eauto. intros v [X|X]; congruence.
Qed.

(** Nothing but what a thread has in mind. *)
Lemma mind_inv s t c p q :
  inv2 s -> thr s t c p -> carry q = c -> mind_ok (nodes s) t (mind q) -> inv2 (with_thread s t q).
Proof.
  intros [Js Jn Jl Jw Jr Jh Jp Jm] T Cq M.
  constructor; cbn; auto.
  - unfold all_permits, free in *; cbn.
    pose proof (sum_upd carry _ _ q _ T) as Z; cbn in Z. lia.
  - eapply minds_same; eauto.
Qed.

(** A waiting slot gets another place, and all between leaves. *)
Lemma cut_inv s t x c p q m pl lo :
  inv2 s -> listed (nodes s) x m -> sta m = Waiting ->
  (match pl with
   | Link j => exists z, listed (nodes s) j z /\ arr z < arr m /\ lo = Some (arr z)
   | Head _ => lo = None
   end) ->
  (forall i n, listed (nodes s) i n -> between lo (Some (arr m)) (arr n) = true -> sta n <> Waiting) ->
  got_in pl < want m ->
  thr s t c p -> carry q + got_in pl = c + got_in (pay m) ->
  (forall l', grows (clock s) (nodes s) l' -> mind_ok l' t (mind q)) ->
  inv2 (with_thread (with_nodes s (cut lo (Some (arr m)) (upd (nodes s) x
         (Nd (gen m) Waiting pl (want m) (home m) (arr m))))) t q).
Proof.
  intros I L W Fp Se Lg T Cq M. pose proof L as [E H].
  set (m' := Nd (gen m) Waiting pl (want m) (home m) (arr m)).
  assert (Ck : forall j n, listed (nodes s) j n -> arr n < clock s).
  { intros j n [F G]. pose proof (j_node _ I _ _ F) as K; unfold node_ok in K.
    rewrite G in K; apply K. }
  assert (La : later (clock s) m m').
  { right; unfold private; cbn; rewrite H; repeat split; auto. }
  pose proof (upd_grows _ _ _ _ _ E Ck La) as G1.
  set (l1 := upd (nodes s) x m') in *.
  assert (Back : forall j n, listed l1 j n -> exists n0, listed (nodes s) j n0 /\ arr n = arr n0 /\
                   (j <> x -> n = n0)).
  { intros j n Lj; apply (listed_upd _ _ _ _ E) in Lj as [(-> & -> & _)|[Ne Lj]];
      [exists m | exists n]; cbn; repeat split; auto; try apply Lj; tauto. }
  assert (Ck1 : forall j n, listed l1 j n -> arr n < clock s).
  { intros j n Lj; destruct (Back j n Lj) as (n0 & L0 & -> & _); eauto. }
  assert (Lx1 : listed l1 x m').
  { apply (listed_upd _ _ _ _ E); left; cbn; auto. }
  pose proof (cut_grows (clock s) lo (Some (arr m)) l1 Ck1) as G2.
  assert (I0 : inj (nodes s)) by (apply list_ok_inj, I).
  assert (I1 : inj l1).
  { intros i j a b La' Lb Eq. destruct (Back _ _ La') as (a0 & La0 & Aa & _), (Back _ _ Lb) as (b0 & Lb0 & Ab & _).
    apply (I0 i j a0 b0); auto; congruence. }
  assert (Se1 : forall i n, listed l1 i n -> between lo (Some (arr m)) (arr n) = true -> sta n <> Waiting).
  { intros i n Li B. apply (listed_upd _ _ _ _ E) in Li as [(-> & -> & _)|[Ne Li]]; [|eauto].
    cbn in B; unfold between in B. rewrite Nat.ltb_irrefl, andb_false_r in B; discriminate. }
  set (l2 := cut lo (Some (arr m)) l1) in *.
  assert (Mq : mind_ok l2 t (mind q)).
  { apply M. constructor; auto.
    - intros i n En. destruct (g_slot _ _ _ G1 _ _ En) as (n1 & E1 & La1).
      exists (cut1 lo (Some (arr m)) n1); split; [unfold l2; rewrite nth_cut, E1; auto|].
      unfold l1 in E1; rewrite (nth_upd _ _ _ _ _ E) in E1.
      destruct (Nat.eqb_spec x i) as [->|Ne].
      + injection E1 as <-. assert (n = m) by congruence; subst n.
        unfold cut1; cbn; rewrite H. unfold between; rewrite Nat.ltb_irrefl, andb_false_r. exact La.
      + assert (n1 = n) by congruence; subst n1. apply cut_later.
    - intros i n Li; apply listed_cut in Li as [Li _]. destruct (Back _ _ Li) as (n0 & [L0 _] & _); eauto. }
  destruct I as [Js Jn Jl Jw Jr Jh Jp Jm].
  constructor; cbn.
  - unfold all_permits, free in *; cbn. fold m' l1 l2.
    unfold l2; rewrite sum_cut by auto.
    pose proof (sum_upd carry _ _ q _ T) as Z; cbn in Z.
    pose proof (sum_upd reserved1 _ _ m' _ E) as Y; fold l1 in Y.
    assert (R : reserved1 m = got_in (pay m)) by (unfold reserved1; rewrite H, W; auto).
    assert (R' : reserved1 m' = got_in pl) by (unfold reserved1; cbn; rewrite H; auto).
    lia.
  - unfold slot; cbn. apply nodes_cut; auto. eapply nodes_upd; eauto.
    pose proof (Jn _ _ E) as K; unfold node_ok in *; cbn; rewrite H in *. split; [apply K | auto].
  - eapply anchor_list; eauto.
  - eapply anchor_sword; eauto.
  - intros i h Hh; eapply known_grows; [exact G2|]; eapply known_grows; [exact G1|]; eauto.
  - intros h Hh; eapply cert_grows; [exact G2|]; eapply cert_grows; [exact G1|]; eauto.
  - intros h Hh; eapply known_grows; [exact G2|]; eapply known_grows; [exact G1|]; eauto.
  - intros u r; rewrite (nth_upd _ _ _ _ _ T).
    destruct (Nat.eqb_spec t u) as [->|Ne]; [intros [= <-]; auto|].
    intros F. eapply (mind_grows _ t l1); [exact G2 | auto | | apply cut_keeps | auto |].
    + apply (cut_cuts_below l1 lo x m'); auto.
    + eapply (mind_grows _ t (nodes s)); eauto.
      * eapply upd_cuts; eauto.
      * eapply upd_keeps; eauto. intros v [X|X]; congruence.
Qed.

Lemma inv_init2 n : inv2 (init2 n).
Proof.
  constructor; unfold init2, slot; cbn; try discriminate; try tauto; try lia.
  - intros [|]; discriminate.
  - constructor; unfold listed; intros [|] *; cbn; intros [? ?]; discriminate.
  - intros [|] ? [? ?]; discriminate.
  - intros [|]; discriminate.
Qed.

Lemma listed_clock s i n : inv2 s -> listed (nodes s) i n -> arr n < clock s.
Proof.
  intros I [E H]. pose proof (j_node _ I _ _ E) as N; unfold node_ok in N.
  rewrite H in N; apply N.
Qed.

Theorem step2_inv l s s' : inv2 s -> step2 true l s s' -> inv2 s'.
Proof.
  intros I St.
  assert (Mi : forall t c p, thr s t c p -> mind_ok (nodes s) t p).
  { intros t c p T. exact (j_mind _ I t _ T). }
  assert (No : forall i n, slot s i n -> node_ok (clock s) n) by apply I.
  destruct l; cbn -[cut Nat.ltb] in St.
  - (* Spawn2 *) subst. destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    + unfold all_permits, free in *; cbn; rewrite sum_snoc; cbn; lia.
    + intros t p E; apply nth_snoc in E as [E|[_ ->]]; [eauto | exact Logic.I].
  - (* FastTake *) destruct St as (a & W & Cl & Le & ->).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    + unfold all_permits, free in *; cbn; rewrite W in Js; lia.
    + rewrite W in Jw; exact Jw.
  - (* Collect *) destruct St as (Le & ->).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    unfold all_permits, free in *; cbn; lia.
  - (* GiveBack *) destruct St as (c & p & T & Le & ->).
    pose proof (sum_upd carry _ _ (Th (c + m) p) _ T) as Z; cbn in Z. pose proof (Mi _ _ _ T).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    + unfold all_permits, free in *; cbn; lia.
    + eapply minds_same; eauto.
  - (* DropUntaken *) destruct St as (c & p & T & Le & ->).
    pose proof (sum_upd carry _ _ (Th (c + m) p) _ T) as Z; cbn in Z. pose proof (Mi _ _ _ T).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    + unfold all_permits, free in *; cbn; lia.
    + eapply minds_same; eauto.
  - (* Grow2 *) destruct St as (c & p & T & ->).
    pose proof (sum_upd carry _ _ (Th (c + k) p) _ T) as Z; cbn in Z. pose proof (Mi _ _ _ T).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    + unfold all_permits, free in *; cbn; lia.
    + eapply minds_same; eauto.
  - (* Forget2 *) destruct St as (Le & Le' & ->).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    unfold all_permits, free in *; cbn; lia.
  - (* Put *) destruct St as (c & p & a & T & _ & W & ->).
    pose proof (sum_upd carry _ _ (Th 0 p) _ T) as Z; cbn in Z. pose proof (Mi _ _ _ T).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    + unfold all_permits, free in *; cbn; rewrite W in Js; lia.
    + rewrite W in Jw; exact Jw.
    + eapply minds_same; eauto.
  - (* Fresh *) destruct St as (c & T & Lt & ->).
    set (n := Nd 0 Gone (Head 0) 0 (Popped t) 0).
    assert (At : forall i m, nth_error (nodes s) i = Some m -> nth_error (nodes s ++ [n]) i = Some m).
    { intros i m E; rewrite nth_error_app1; eauto using nth_lt. }
    assert (X : forall i m, listed (nodes s ++ [n]) i m <-> listed (nodes s) i m).
    { intros i m; split; intros [E H]; split; auto. apply nth_snoc in E as [E|[_ ->]]; auto; discriminate. }
    assert (G : grows (clock s) (nodes s) (nodes s ++ [n])).
    { constructor.
      - intros i m E; exists m; split; auto using later_refl.
      - intros i m L; apply X in L as [L _]; eauto.
      - eauto using listed_clock. }
    pose proof (sum_upd carry _ _ (Th c (Prep (length (nodes s)) k)) _ T) as Z; cbn in Z.
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; eauto using known_grows, cert_grows.
    + unfold all_permits, free in *; cbn; rewrite sum_snoc; cbn; lia.
    + intros i m E; apply nth_snoc in E as [E|[_ ->]]; [apply (Jn i); auto|].
      unfold node_ok; cbn; discriminate.
    + eapply list_ok_ext; eauto.
    + eapply sword_ok_ext; eauto.
    + eapply minds_upd; eauto.
      * apply list_ok_inj; auto.
      * intros j m L N; exfalso; apply (N m), X; auto.
      * intros i m u E _ _; auto.
      * cbn; split; auto. exists n; split; auto.
        rewrite nth_error_app2, Nat.sub_diag by lia; auto.
  - (* Pop *) destruct St as (c & n & T & Lt & E & H & ->).
    pose proof (No _ _ E) as K; unfold node_ok in K; rewrite H in K.
    eapply unlisted_inv; eauto; try congruence; cbn; try discriminate.
    + right; unfold private; cbn; repeat split; auto; [tauto | discriminate].
    + intros u [Q|Q]; congruence.
    + split; auto. eexists; split; [rewrite (nth_upd _ _ _ _ _ E), Nat.eqb_refl; auto | auto].
  - (* Write *) destruct St as (c & i & k & n & Cases & Cl & Fr & ->).
    assert (T : exists p, thr s t c p) by (destruct Cases as [(T & _)|[[s0 T] _]]; eauto).
    assert (Kp : 0 < k).
    { destruct Cases as [(T' & _)|[[s0 T'] _]]; apply Mi in T'; apply T'. }
    assert (E : slot s i n) by tauto.
    assert (H : home n = Popped t \/ home n = Private t) by tauto.
    destruct T as [p T].
    eapply unlisted_inv; eauto; try congruence; cbn; try discriminate.
    + destruct H; congruence.
    + destruct H as [H|H]; rewrite H; [left | right]; cbn; [split; [lia | discriminate]|].
      unfold private; cbn; rewrite H; repeat split; auto; try discriminate.
      destruct Cases as [(_ & _ & X)|[[s0 X] _]]; [congruence|].
      apply Mi in X as (_ & n0 & E0 & _ & W & _). unfold slot in E. congruence.
    + unfold node_ok; cbn; auto.
    + intros u [Q|Q]; destruct H; congruence.
    + split; auto. eexists; split; [rewrite (nth_upd _ _ _ _ _ E), Nat.eqb_refl; auto|].
      cbn; repeat split; auto. unfold free in Fr; destruct (sword s); cbn; auto.
  - (* Publish *) destruct St as (c & i & k & s0 & n & T & Es & Cl & E & ->); subst s0.
    destruct (Mi _ _ _ T) as (Kp & n0 & E0 & H & W & Wt & F).
    assert (n0 = n) by (unfold slot in E; congruence); subst n0; clear E0.
    set (n' := Nd (gen n) (sta n) (pay n) (want n) Listed (clock s)).
    assert (Ck : forall j m, listed (nodes s) j m -> arr m < clock s) by eauto using listed_clock.
    assert (La : later (clock s) n n').
    { right; unfold private; cbn; rewrite H; repeat split; auto. }
    pose proof (upd_grows _ _ _ _ _ E Ck La) as G.
    assert (X : forall j m, listed (upd (nodes s) i n') j m <-> (j = i /\ m = n') \/ listed (nodes s) j m).
    { intros j m; rewrite (listed_upd _ _ _ _ E); split.
      - intros [(-> & -> & _)|[Ne L]]; auto.
      - intros [[-> ->]|L]; [left; auto|]. right; split; auto.
        intros ->; destruct L as [E' H']. unfold slot in E. congruence. }
    set (q := match sword s with Avail _ => Cert (i, gen n) | Queue _ => Known (i, gen n) end).
    pose proof (sum_upd carry _ _ (Th c q) _ T) as Z; cbn in Z.
    pose proof (sum_upd reserved1 _ _ n' _ E) as Y.
    assert (R : reserved1 n = 0) by (unfold reserved1; rewrite H; auto).
    assert (R' : reserved1 n' = got_in (pay n)) by (unfold reserved1; cbn; rewrite W; auto).
    assert (Fg : got_in (pay n) = free s /\ got_in (pay n) < want n).
    { unfold free; destruct (sword s) as [a|h]; cbn in F; [destruct F as [-> Q]; cbn; auto|].
      rewrite F; cbn; lia. }
    assert (Kn : known (upd (nodes s) i n') (i, gen n)).
    { apply (listed_known _ i n'), X; auto. }
    assert (Mq : mind_ok (upd (nodes s) i n') t q).
    { unfold q; pose proof (j_sword _ I) as Jw. destruct (sword s) as [a|h]; cbn; auto.
      split; auto. intros n0 L0 _ b z Lz Lt; exfalso.
      apply X in Lz as [[-> ->]|Lz]; [|exact (Jw b z Lz)].
      apply X in L0 as [[_ ->]|L0]; [lia | exact (Jw _ _ L0)]. }
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; eauto using cert_grows, known_grows.
    + unfold all_permits, free in *; cbn; lia.
    + intros j m; unfold slot; cbn; rewrite (nth_upd _ _ _ _ _ E).
      destruct (i =? j); [intros [= <-]; unfold node_ok; cbn; split; [lia | intros _; apply Fg]|].
      intros Ej; specialize (Jn j m Ej); unfold node_ok in *; destruct (home m); auto; intuition lia.
    + destruct Jl as [A B C D]; constructor.
      * intros j b x y L1 L2 Eq. apply X in L1 as [[-> ->]|L1], L2 as [[-> ->]|L2]; auto.
        -- apply Ck in L2; cbn in Eq; lia.
        -- apply Ck in L1; cbn in Eq; lia.
        -- eauto.
      * intros j x d L P. apply X in L as [[-> ->]|L].
        -- cbn in P. destruct (sword s) as [a|h]; cbn in F; [destruct F; congruence|].
           assert (d = fst h) by congruence; subst d. destruct Jw as (m & Lm & Gm & Fm).
           exists m; split; [apply X; auto|]; split; [cbn; eauto|].
           intros b z Lz Lt. apply X in Lz as [[-> ->]|Lz]; [lia | eauto].
        -- destruct (B j x d L P) as (m & Lm & Lt & Fm). exists m; split; [apply X; auto|]; split; auto.
           intros b z Lz Lt'. apply X in Lz as [[-> ->]|Lz]; [cbn in Lt'; apply Ck in L; lia | eauto].
      * intros j x g L P b z Lz. apply X in L as [[-> ->]|L].
        -- cbn in P. destruct (sword s) as [a|h]; cbn in F; [|congruence].
           apply X in Lz as [[-> ->]|Lz]; [auto | exfalso; eapply Jw; eauto].
        -- apply X in Lz as [[-> ->]|Lz]; [cbn; apply Ck in L; lia | eauto].
      * intros j x L P b z Lz Lt. apply X in L as [[-> ->]|L]; [cbn in P; congruence|].
        apply X in Lz as [[-> ->]|Lz]; [cbn in Lt; apply Ck in L; lia | eauto].
    + exists n'; split; [apply X; auto|]; split; auto.
      intros j z Lz; apply X in Lz as [[-> ->]|Lz]; [auto | cbn; apply Ck in Lz; lia].
    + intros h [<-|Hh]; [auto | eauto using known_grows].
    + eapply minds_upd; eauto.
      * apply list_ok_inj; auto.
      * intros j m L N; exfalso; apply (N m), X; auto.
      * eapply upd_keeps; eauto. intros u [Q|Q]; congruence.
  - (* Withdraw *) destruct St as (c & i & k & n & Tc & E & H & ->).
    assert (T : exists p, thr s t c p) by (destruct Tc as [T|[s0 T]]; eauto).
    destruct T as [p T].
    eapply unlisted_inv; eauto; cbn; try discriminate.
    + destruct H; congruence.
    + destruct H as [H|H]; rewrite H; [left | right]; cbn; [split; [lia | discriminate]|].
      unfold private; cbn; repeat split; auto; try tauto; discriminate.
    + intros u [Q|Q]; destruct H; congruence.
    + exact Logic.I.
  - (* SetNewer *) destruct St as (Ha & ->).
    assert (Kh : known (nodes s) h).
    { destruct Ha as [Ha|(t & c & [T|[T|(n & d & T)]])]; [apply (j_published _ I); auto | | |];
        apply Mi in T; apply T. }
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    intros j h'. destruct (j =? i); [intros [= <-]; auto | eauto].
  - (* SetHint *) destruct St as (c & h & T & ->). pose proof (Mi _ _ _ T) as K.
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
    intros h' [= <-]; exact K.
  - (* LoadHint *) destruct St as (c & h & T & Hh & ->).
    eapply mind_inv; eauto. cbn; apply I; auto.
  - (* LoadNewer *) destruct St as (c & h & T & Hh & ->).
    eapply mind_inv; eauto. cbn; eapply (j_newer _ I); eauto.
  - (* Learn *) destruct St as (c & T & Hh & ->).
    eapply mind_inv; eauto. cbn; eapply (j_published _ I); eauto.
  - (* Follow1 *) destruct St as (c & g & x & n & T & E & G & W & Nx & ->).
    pose proof (Mi _ _ _ T) as K. eapply mind_inv; eauto.
    cbn; split; [exact K|]. split; [eapply (j_newer _ I); eauto|].
    intros m Em _; unfold slot in E; congruence.
  - (* Follow2 *) destruct St as (c & g & x & n & T & E & Ck & P & ->).
    pose proof (Mi _ _ _ T) as (Cg & Kx & Sg). specialize (Ck eq_refl).
    eapply mind_inv; eauto. cbn.
    assert (Hx : (fst x, gen n) = x) by (rewrite Ck; destruct x; auto).
    rewrite Hx; split; [apply Cg|]; split; [exact Kx|].
    intros m Em Gm; split; [exact Kx|].
    intros n0 L Gn j z Lz Lt. assert (n0 = n) by (destruct L; unfold slot in E; congruence); subst n0.
    destruct P as [P|P].
    + destruct (l_link _ (j_list _ I) _ _ _ L P) as (m0 & Lm & Ltm & F).
      assert (m0 = m) by (destruct Lm; congruence); subst m0.
      specialize (F j z Lz Lt). destruct (Nat.eq_dec (arr z) (arr m)) as [Q|Q].
      * assert (j = fst g) by (eapply (l_inj _ (j_list _ I)); eauto); subst j.
        assert (z = m) by eauto using listed_fun; subst; eauto.
      * destruct Cg as [_ Cg]. apply (Cg m Lm Gm j z Lz). lia.
    + exact (l_granted _ (j_list _ I) _ _ L P j z Lz Lt).
  - (* Follow3 *) destruct St as (c & g & x & n & T & E & G & ->).
    pose proof (Mi _ _ _ T) as (Kg & Kx & Cx).
    eapply mind_inv; eauto. cbn; eauto.
  - (* Choose2 *) destruct St as (c & h & T & _ & _ & ->). pose proof (Mi _ _ _ T) as K.
    eapply mind_inv; eauto.
  - (* GrantAll *) destruct St as (c & h & n & T & E & G & W & Le & ->).
    pose proof (Mi _ _ _ T) as [K C]; cbn in K, C.
    assert (H : home n = Listed) by (eapply known_listed; eauto).
    assert (L : listed (nodes s) (fst h) n) by (split; auto).
    pose proof (No _ _ E) as N; unfold node_ok in N; rewrite H in N. destruct N as [_ N].
    eapply settle_inv with (u := want n); eauto; cbn; try discriminate; auto.
    + specialize (N W). lia.
    + eapply cert_grows with (k := clock s); [|split; eauto].
      apply upd_grows with (n := n); eauto using listed_clock.
      right; unfold private; cbn; rewrite H; repeat split; auto.
  - (* GrantPart *) destruct St as (c & h & n & Tc & E & G & W & _ & Lt & ->).
    assert (T : exists p, thr s t c p /\ cert (nodes s) h /\ a <= c).
    { destruct Tc as [[T ->]|[T ->]]; pose proof (Mi _ _ _ T); eexists; split; eauto; split; auto; lia. }
    destruct T as (p & T & [K C] & Lc).
    assert (H : home n = Listed) by (eapply known_listed; eauto).
    assert (L : listed (nodes s) (fst h) n) by (split; auto).
    eapply cut_inv; eauto; cbn; auto; try lia.
    + intros i z Lz B. unfold between in B; apply Nat.ltb_lt in B; eauto.
    + intros l' Gr. eapply cert_grows; eauto; split; auto.
  - (* StartS *) destruct St as (c & n & g & T & W & ->).
    pose proof (j_sword _ I) as Jw; rewrite W in Jw; destruct Jw as (m & L & G & F); cbn in L, G.
    eapply mind_inv; eauto. cbn; split; cbn.
    + rewrite <- G; apply listed_known; auto.
    + intros m' [L' _]; eauto using seg_start.
  - (* StartW *) destruct St as (c & x & T & ->).
    pose proof (Mi _ _ _ T) as K; cbn in K.
    eapply mind_inv; eauto. cbn; split; cbn; auto.
    intros m' [L' _]; eauto using seg_start.
  - (* WalkOn *) destruct St as (c & a & n & j & m & T & E & W & ->).
    pose proof (Mi _ _ _ T) as [K S]; cbn in K, S.
    eapply mind_inv; eauto. cbn; split; auto.
    intros m0 Tr. eapply seg_on; eauto. apply I.
  - (* WalkSees *) destruct St as (c & a & n & j & m & T & E & W & ->).
    pose proof (Mi _ _ _ T) as [K S]; cbn in K, S.
    eapply mind_inv; eauto. cbn; split; auto.
    intros m0 Tr. destruct (S m0 Tr) as [_ S2]. destruct (S2 j eq_refl) as (m1 & L1 & _).
    assert (m1 = m) by (destruct L1; unfold slot in E; congruence); subst m1.
    pose proof (listed_known _ _ _ L1) as Kj.
    split; auto. intros O; split; auto. cbn; intros n0 L0 _ b z Lz Lt.
    assert (n0 = m) by eauto using listed_fun; subst n0.
    destruct (pay m) as [d|g] eqn:P; [discriminate|].
    pose proof (l_head _ (j_list _ I) _ _ _ L1 P b z Lz). lia.
  - (* Check *) destruct St as (c & a & n & h & b & T & Ho & ->).
    pose proof (Mi _ _ _ T) as [K S]; cbn in K, S.
    destruct (holds_on_track _ _ _ I K Ho) as (m & Tr & _).
    destruct (S m Tr) as [S1 S2]. destruct b; eapply mind_inv; eauto; cbn; auto.
  - (* WalkEnd *) destruct St as (c & x & n & T & Ho & ->).
    pose proof (Mi _ _ _ T) as [K S]; cbn in K, S.
    destruct (holds_on_track _ (AtW x) _ I K Ho) as (m & Tr & y & Ly & Gy & Wy & Lt & F).
    destruct (S m Tr) as [S1 _].
    eapply mind_inv; eauto. cbn; split; auto.
    intros y0 Ly0 _ b z Lz Ltz. assert (y0 = y) by eauto using listed_fun; subst y0.
    apply (S1 b z Lz); [eauto | discriminate].
  - (* CutW *) destruct St as (c & x & n & cur & m & T & _ & E & G & W & P & Ar & ->).
    pose proof (Mi _ _ _ T) as [K S]; cbn in K, S.
    assert (Ho : holds s (AtW x) n) by (exists m; auto).
    destruct (holds_on_track _ (AtW x) _ I K Ho) as (q & Tr & y & Ly & Gy & Wy & Lt & F).
    assert (y = m) by (destruct Ly; unfold slot in E; congruence); subst y.
    destruct (S q Tr) as [S1 S2].
    pose proof (No _ _ E) as N; unfold node_ok in N; destruct Ly as [_ H]; rewrite H in N.
    assert (L : listed (nodes s) (fst x) m) by (split; auto).
    assert (Cx : cur = None -> cert (nodes s) x).
    { intros ->; split; auto. intros y0 Ly0 _ b z Lz Ltz.
      assert (y0 = m) by (destruct Ly0; unfold slot in E; congruence); subst y0.
      apply (S1 b z Lz); [eauto | discriminate]. }
    eapply cut_inv; eauto; cbn; auto.
    + destruct cur as [j|]; cbn in *; [|destruct lo; tauto].
      destruct lo as [b|]; [|tauto]. destruct Ar as (z & Ez & <-).
      destruct (S2 j eq_refl) as (z' & Lz & Le).
      assert (z' = z) by (destruct Lz; unfold slot in Ez; congruence); subst z'.
      exists z; repeat split; try apply Lz; lia.
    + intros i z Lz B. unfold between in B; apply andb_true_iff in B as [B1 B2].
      apply Nat.ltb_lt in B2. apply (S1 i z Lz); [eauto|].
      intros d md -> Ld. cbn in Ar. destruct lo as [b|]; [|tauto]. destruct Ar as (w & Ew & <-).
      assert (w = md) by (destruct Ld; unfold slot in Ew; congruence); subst w.
      apply Nat.ltb_lt; auto.
    + destruct N as [_ N]. specialize (N W). destruct cur; cbn; lia.
    + rewrite P; destruct cur; cbn; lia.
    + intros l' Gr; destruct cur; cbn; auto. eapply cert_grows; eauto.
  - (* CutS *) destruct St as (c & g & n & cur & T & _ & W & Ar & St).
    pose proof (Mi _ _ _ T) as [K S]; cbn in K, S.
    destruct (holds_on_track _ (AtS g) _ I K W) as (q & Tr & F).
    destruct (S q Tr) as [S1 S2].
    assert (Ck : forall j m, listed (nodes s) j m -> arr m < clock s) by eauto using listed_clock.
    pose proof (cut_grows (clock s) lo None _ Ck) as G.
    assert (Se : forall i z, listed (nodes s) i z -> between lo None (arr z) = true -> sta z <> Waiting).
    { intros i z Lz B. unfold between in B; rewrite andb_true_r in B.
      apply (S1 i z Lz); [eauto|]. intros d md -> Ld. cbn in Ar.
      destruct lo as [b|]; [|tauto]. destruct Ar as (w & Ew & <-).
      assert (w = md) by (destruct Ld; unfold slot in Ew; congruence); subst w.
      apply Nat.ltb_lt; auto. }
    assert (Su : sum reserved1 (cut lo None (nodes s)) = sum reserved1 (nodes s)) by (apply sum_cut; auto).
    assert (Mn : forall r, mind r = Idle -> minds (upd (threads s) t r) (cut lo None (nodes s))).
    { intros r Er. eapply (minds_upd (clock s) _ (nodes s)); [exact (j_mind _ I) | exact G | apply list_ok_inj, I |
        apply cut_cuts_top | apply cut_keeps | exact T | rewrite Er; exact Logic.I]. }
    destruct cur as [j|].
    + destruct St as (mj & Ej & ->).
      pose proof (sum_upd carry _ _ (Th c Idle) _ T) as Z; cbn in Z.
      destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn -[cut];
        eauto using known_grows, cert_grows.
      * unfold all_permits, free in *; cbn -[cut]; rewrite W in Js; lia.
      * unfold slot; cbn -[cut]; apply nodes_cut; auto.
      * apply top_list; auto.
      * destruct (S2 j eq_refl) as (z & Lz & Le).
        assert (z = mj) by (destruct Lz; unfold slot in Ej; congruence); subst z.
        cbn in Ar; destruct lo as [b|]; [|tauto]. destruct Ar as (w & Ew & <-).
        assert (w = mj) by (unfold slot in *; congruence); subst w.
        apply (top_sword (nodes s) (Some (arr mj)) j mj); auto.
      * apply Mn; auto.
    + destruct St as (Le0 & ->). assert (Le : m <= c) by lia; clear Le0.
      pose proof (sum_upd carry _ _ (Th (c - m) Idle) _ T) as Z; cbn in Z.
      cbn in Ar; destruct lo as [b|]; [tauto|].
      destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn -[cut];
        eauto using known_grows, cert_grows.
      * unfold all_permits, free in *; cbn -[cut]; rewrite W in Js; lia.
      * unfold slot; cbn -[cut]; apply nodes_cut; auto.
      * apply top_list; auto.
      * apply top_empty; auto.
      * apply Mn; auto.
  - (* CutAll *) destruct St as (c & h & n & T & W & E & Wn & Le0 & ->).
    assert (Le : m <= c) by lia; clear Le0.
    pose proof (Mi _ _ _ T) as [K C]; cbn in K, C.
    pose proof (j_sword _ I) as Jw0; rewrite W in Jw0; destruct Jw0 as (n0 & L & Gn & F).
    assert (n0 = n) by (destruct L; unfold slot in E; congruence); subst n0.
    assert (Ck : forall j m, listed (nodes s) j m -> arr m < clock s) by eauto using listed_clock.
    pose proof (cut_grows (clock s) None None _ Ck) as G.
    assert (Se : forall i z, listed (nodes s) i z -> between None None (arr z) = true -> sta z <> Waiting).
    { intros i z Lz _. specialize (F i z Lz). destruct (Nat.eq_dec (arr z) (arr n)) as [Q|Q].
      - assert (i = fst h) by (eapply (l_inj _ (j_list _ I)); eauto); subst i.
        assert (z = n) by eauto using listed_fun; subst; auto.
      - apply (C n L Gn i z Lz); lia. }
    pose proof (sum_upd carry _ _ (Th (c - m) (Cert h)) _ T) as Z; cbn in Z.
    assert (Ch : cert (nodes s) h) by (split; auto).
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn -[cut];
      eauto using known_grows, cert_grows.
    + unfold all_permits, free in *; cbn -[cut]; rewrite W in Js; rewrite sum_cut by auto; lia.
    + unfold slot; cbn -[cut]; apply nodes_cut; auto.
    + apply top_list; auto.
    + apply top_empty; auto.
    + eapply (minds_upd (clock s) _ (nodes s)); [exact Jm | exact G | apply list_ok_inj; auto |
        apply cut_cuts_top | apply cut_keeps | exact T | eapply cert_grows; eauto].
  - (* CancelIt *) destruct St as (c & h & n & T & E & G & W & ->).
    pose proof (Mi _ _ _ T) as K; cbn in K.
    assert (H : home n = Listed) by (eapply known_listed; eauto).
    assert (L : listed (nodes s) (fst h) n) by (split; auto).
    pose proof (settle_inv s t (fst h) c (Known h) (Th (c + got_in (pay n)) Idle) n
      (Nd (gen n) Gone (pay n) (want n) (home n) (arr n)) 0 I L eq_refl) as Q.
    cbn in Q. rewrite Nat.add_0_r in Q. unfold with_counts, with_nodes, with_thread in *; cbn in *.
    rewrite Nat.add_0_r in Q. apply Q; auto; discriminate.
  - (* ShutIt *) destruct St as (c & h & n & Cl & T & E & G & W & ->).
    pose proof (Mi _ _ _ T) as K; cbn in K.
    assert (H : home n = Listed) by (eapply known_listed; eauto).
    assert (L : listed (nodes s) (fst h) n) by (split; auto).
    pose proof (settle_inv s t (fst h) c (Known h) (Th (c + got_in (pay n)) Idle) n
      (Nd (gen n) Ended (pay n) (want n) (home n) (arr n)) 0 I L eq_refl) as Q.
    cbn in Q. rewrite Nat.add_0_r in Q. unfold with_counts, with_nodes, with_thread in *; cbn in *.
    rewrite Nat.add_0_r in Q. apply Q; auto; discriminate.
  - (* CloseIt *) subst. destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; auto.
  - (* Recycle *) destruct St as (n & E & H & ->).
    pose proof (No _ _ E) as K; unfold node_ok in K; rewrite H in K.
    set (n' := Nd (gen n) (sta n) p (want n) (if b then InPool else Out) (arr n)).
    assert (Ck : forall j m, listed (nodes s) j m -> arr m < clock s) by eauto using listed_clock.
    assert (La : later (clock s) n n').
    { right; unfold private; cbn; repeat split; auto; destruct b; tauto || discriminate. }
    pose proof (upd_grows _ _ _ _ _ E Ck La) as G.
    destruct (unlisted_upd _ i n n' E) as [X Y]; [congruence | cbn; destruct b; discriminate|].
    destruct I as [Js Jn Jl Jw Jr Jh Jp Jm]; constructor; cbn; eauto using known_grows, cert_grows.
    + unfold all_permits, free in *; cbn; rewrite Y; lia.
    + unfold slot; cbn; eapply nodes_upd; eauto. unfold node_ok; cbn; destruct b; auto.
    + eapply list_ok_ext; eauto.
    + eapply sword_ok_ext; eauto.
    + eapply minds_all; eauto.
      * apply list_ok_inj; auto.
      * eapply upd_cuts; eauto. congruence.
      * intros t; eapply upd_keeps; eauto. intros u [Q|Q]; congruence.
  - (* Abandon *) destruct St as (c & p & T & _ & ->).
    eapply mind_inv; eauto. exact Logic.I.
Qed.

Lemma reachable2_inv s : reachable2 true s -> inv2 s.
Proof.
  intros (n & R). remember (init2 n) as s0 eqn:E.
  induction R; subst; eauto using inv_init2, step2_inv.
Qed.

(** * The theorems *)

Theorem conservation2 s : reachable2 true s ->
  free s + (leased s + sum carry (threads s)) + (untaken s + sum reserved1 (nodes s)) = total s.
Proof. intros R; exact (j_sum _ (reachable2_inv _ R)). Qed.

(** All that wait are in the queue, but for the unpublished. *)
Theorem waiting_is_listed s i n : reachable2 true s -> slot s i n -> sta n = Waiting ->
  home n = Listed \/ exists t, home n = Private t.
Proof.
  intros R E W; pose proof (j_node _ (reachable2_inv _ R) _ _ E) as N; unfold node_ok in N.
  destruct (home n); eauto; tauto.
Qed.

(** The slot that the step changes. *)
Ltac slot_by U := match goal with K : slot _ _ _ |- _ =>
  eapply U; [exact K | solve [subst; reflexivity] | cbn] end.

(** A closer look at a step: which slots it touches. *)
Lemma step2_slots l s s' : inv2 s -> step2 true l s s' ->
  forall i n, slot s i n -> exists n', slot s' i n' /\ gen n <= gen n' /\
    (* another generation: only of a slot that was popped *)
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (* settled: for good, within a generation *)
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n) /\
    (* a grant, in part or in full: by a certificate, and so to the oldest *)
    (sta n = Waiting -> home n = Listed ->
     sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
     forall j z, listed (nodes s) j z -> arr z < arr n -> sta z <> Waiting).
Proof.
  intros I St i n E.
  assert (Mi : forall t c p, thr s t c p -> mind_ok (nodes s) t p)
    by (intros t c p T; exact (j_mind _ I t _ T)).
  assert (Same : slot s' i n -> exists n', slot s' i n' /\ gen n <= gen n' /\
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n) /\
    (sta n = Waiting -> home n = Listed ->
     sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
     forall j z, listed (nodes s) j z -> arr z < arr n -> sta z <> Waiting)).
  { intros E'; exists n; repeat split; auto; try congruence.
    intros Ww Hl [X|X]; [congruence | lia]. }
  assert (Upd : forall j m m', slot s j m -> nodes s' = upd (nodes s) j m' ->
    gen m <= gen m' /\ (gen m' <> gen m -> exists t, home m = Popped t) /\
    (sta m <> Waiting -> gen m' = gen m -> sta m' = sta m) /\
    (sta m = Waiting -> home m = Listed ->
     sta m' = Granted \/ got_in (pay m) < got_in (pay m') ->
     forall j z, listed (nodes s) j z -> arr z < arr m -> sta z <> Waiting) ->
    exists n', slot s' i n' /\ gen n <= gen n' /\
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n) /\
    (sta n = Waiting -> home n = Listed ->
     sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
     forall j z, listed (nodes s) j z -> arr z < arr n -> sta z <> Waiting)).
  { intros j m m' Ej X K. destruct (Nat.eq_dec j i) as [->|Ne].
    - assert (m = n) by (unfold slot in *; congruence); subst m.
      exists m'; split; [|exact K]. unfold slot; rewrite X, (nth_upd _ _ _ _ _ Ej), Nat.eqb_refl; auto.
    - apply Same. unfold slot; rewrite X, (nth_upd _ _ _ _ _ Ej).
      destruct (Nat.eqb_spec j i); [tauto | exact E]. }
  assert (Cut : forall lo hi r, nodes s' = cut lo hi r ->
    (exists n', nth_error r i = Some n' /\ gen n <= gen n' /\
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n) /\
    (sta n = Waiting -> home n = Listed ->
     sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
     forall j z, listed (nodes s) j z -> arr z < arr n -> sta z <> Waiting)) ->
    exists n', slot s' i n' /\ gen n <= gen n' /\
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n) /\
    (sta n = Waiting -> home n = Listed ->
     sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
     forall j z, listed (nodes s) j z -> arr z < arr n -> sta z <> Waiting)).
  { intros lo hi r X (n' & E' & K). exists (cut1 lo hi n'); split.
    - unfold slot; rewrite X, nth_cut, E'; auto.
    - unfold cut1; destruct (home n'), (between lo hi (arr n')); exact K. }
  destruct l; cbn -[cut] in St;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end;
    try (apply Same; subst s'; exact E).
  - (* Fresh *) apply Same; subst s'; unfold slot; cbn; rewrite nth_error_app1; eauto using nth_lt.
  - (* Pop *) slot_by Upd.
    repeat split; auto; [congruence | intros ? ?; congruence].
  - (* Write *)
    match goal with F : (_ /\ _) \/ _, X : s' = _ |- _ =>
      rename F into Cases; rename X into Es end.
    destruct Cases as [(T & Ej & H)|[[s0 T] [Ej H]]]; rewrite H in Es;
      (slot_by Upd).
    + repeat split; eauto; [intros _ Q; exfalso; lia | intros ? ?; congruence].
    + apply Mi in T as (_ & mm & Em & _ & W & _). unfold slot in Ej.
      repeat split; auto; [congruence | congruence | intros ? ?; congruence].
  - (* Publish *) slot_by Upd.
    repeat split; auto; [congruence|].
    match goal with T : thr s t _ _ |- _ => destruct (Mi _ _ _ T) as (_ & mm & Em & Hm & _) end.
    unfold slot in *; intros ? ?; congruence.
  - (* Withdraw *)
    match goal with F : home _ = Popped t \/ _, X : s' = _ , D : thr _ _ _ _ \/ _ |- _ =>
      rename F into Hm; rename X into Es; rename D into Dt end.
    destruct Hm as [H|H]; rewrite H in Es; (slot_by Upd).
    + repeat split; eauto; [intros _ Q; exfalso; lia | intros ? ?; congruence].
    + repeat split; auto; [congruence | | intros ? ?; congruence].
      destruct Dt as [T|[s0 T]]; apply Mi in T; cbn in T.
      * destruct T as (_ & mm & Em & Hm). unfold slot in *; congruence.
      * destruct T as (_ & mm & Em & Hm & W & _). unfold slot in *; congruence.
  - (* GrantAll *)
    match goal with T : thr s t _ (Chosen ?h), Ej : slot s (fst ?h) ?m |- _ =>
      rename T into Tg; rename Ej into Eg end.
    apply Mi in Tg as [_ C].
    eapply Upd; [exact Eg | subst s'; reflexivity | cbn].
    repeat split; auto; [congruence | congruence |].
    intros Ww Hl _. apply C; auto. split; auto.
  - (* GrantPart *)
    match goal with T : thr s t _ (Cert ?h) /\ _ \/ _, Ej : slot s (fst ?h) ?m |- _ =>
      rename T into Tg; rename Ej into Eg; rename m into mg; rename h into hg end.
    assert (C : cert (nodes s) hg) by (destruct Tg as [[T _]|[T _]]; apply Mi in T; exact T).
    destruct C as [_ C].
    eapply Cut; [subst s'; reflexivity|]. rewrite (nth_upd _ _ _ _ _ Eg).
    destruct (Nat.eqb_spec (fst hg) i) as [Q|Q].
    + rewrite Q in *. assert (mg = n) by (unfold slot in *; congruence); subst mg.
      eexists; split; [reflexivity | cbn]. repeat split; auto; try congruence.
      intros Ww Hl _. apply C; auto. split; auto.
    + exists n; repeat split; auto; try congruence. intros Ww Hl [X|X]; [congruence | lia].
  - (* CutW *)
    match goal with Ej : slot s (fst ?h) ?m |- _ => rename Ej into Eg; rename m into mg; rename h into hg end.
    eapply Cut; [subst s'; reflexivity|]. rewrite (nth_upd _ _ _ _ _ Eg).
    destruct (Nat.eqb_spec (fst hg) i) as [Q|Q].
    + rewrite Q in *. assert (mg = n) by (unfold slot in *; congruence); subst mg.
      eexists; split; [reflexivity | cbn]. repeat split; auto; try congruence.
      intros Ww Hl [X|X]; [discriminate|].
      match goal with L : context [link_to ?c] |- _ => destruct c; cbn in X; lia end.
    + exists n; repeat split; auto; try congruence. intros Ww Hl [X|X]; [congruence | lia].
  - (* CutS *)
    match goal with C : match ?c with _ => _ end |- _ => destruct c end;
      repeat match goal with
      | H : exists _, _ |- _ => destruct H as [? H]
      | H : _ /\ _ |- _ => destruct H
      end;
      (eapply Cut; [subst s'; reflexivity|]; exists n; repeat split; auto; try congruence;
       intros Ww Hl [X|X]; [congruence | lia]).
  - (* CutAll *) eapply Cut; [subst s'; reflexivity|]; exists n; repeat split; auto; try congruence.
    intros Ww Hl [X|X]; [congruence | lia].
  - (* CancelIt *) slot_by Upd.
    repeat split; auto; try congruence. intros ? ? [X|X]; [discriminate | lia].
  - (* ShutIt *) slot_by Upd.
    repeat split; auto; try congruence. intros ? ? [X|X]; [discriminate | lia].
  - (* Recycle *) slot_by Upd.
    repeat split; auto; try congruence.
Qed.

(** Strict FIFO, word by word: whoever is granted something has the least arrival number of all that
    wait. *)
Theorem grants_go_to_the_oldest2 l s s' i n n' : reachable2 true s -> step2 true l s s' ->
  slot s i n -> slot s' i n' -> sta n = Waiting -> home n = Listed ->
  sta n' = Granted \/ got_in (pay n) < got_in (pay n') ->
  forall j z, listed (nodes s) j z -> sta z = Waiting -> arr n <= arr z.
Proof.
  intros R St E E' W H G j z L Wz. apply reachable2_inv in R.
  destruct (step2_slots _ _ _ R St i n E) as (m & Em & _ & _ & _ & F).
  assert (m = n') by (unfold slot in *; congruence); subst m.
  apply Nat.nlt_ge; intros Lt. exact (F W H G j z L Lt Wz).
Qed.

(** A status other than waiting is final for as long as the generation is the same, and the
    generation only ever grows, and only of a slot that was popped. *)
Theorem settled_once2 l s s' i n : reachable2 true s -> step2 true l s s' -> slot s i n ->
  exists n', slot s' i n' /\ gen n <= gen n' /\
    (gen n' <> gen n -> exists t, home n = Popped t) /\
    (sta n <> Waiting -> gen n' = gen n -> sta n' = sta n).
Proof.
  intros R St E. apply reachable2_inv in R.
  destruct (step2_slots _ _ _ R St i n E) as (m & A & B & C & D & _). eauto.
Qed.

(** While anybody waits nothing is free; each that waits lacks something, and only the oldest has got
    something; so with nothing in any hand, what it lacks is leased or was granted to others. *)
Theorem no_lost_permit2 s i n : reachable2 true s -> listed (nodes s) i n -> sta n = Waiting ->
  free s = 0 /\ got_in (pay n) < want n /\
  (0 < got_in (pay n) -> forall j z, listed (nodes s) j z -> arr n <= arr z) /\
  (sum carry (threads s) = 0 -> leased s + untaken s + sum reserved1 (nodes s) = total s).
Proof.
  intros R L W. apply reachable2_inv in R.
  assert (F : free s = 0).
  { pose proof (j_sword _ R) as S. unfold free; destruct (sword s); auto.
    exfalso; exact (S i n L). }
  split; auto. destruct L as [E H].
  pose proof (j_node _ R _ _ E) as N; unfold node_ok in N; rewrite H in N.
  split; [apply N; auto|]. split.
  - intros G. destruct (pay n) as [d|g] eqn:P; [cbn in G; lia|].
    apply (l_head _ (j_list _ R) i n g); [split; auto | exact P].
  - intros Z. pose proof (j_sum _ R) as Su; unfold all_permits in Su; lia.
Qed.

(** *** No unpublished slot is ever changed by others *)

(** Who makes the transition, where it matters. *)
Definition actor (l : label2) : option nat :=
  match l with
  | GiveBack t _ | DropUntaken t _ | Grow2 t _ | Put t | Fresh t _ | Pop t _ _ | Write t | Publish t
  | Withdraw t | SetHint t | LoadHint t | LoadNewer t _ | Learn t _ | Follow1 t | Follow2 t
  | Follow3 t | Choose2 t | GrantAll t | GrantPart t _ | StartS t | StartW t _ | WalkOn t | WalkSees t | Check t
  | WalkEnd t | CutW t _ | CutS t _ _ | CutAll t _ | CancelIt t | ShutIt t | Abandon t => Some t
  | _ => None
  end.

Theorem unpublished_untouched l s s' i n u : reachable2 true s -> step2 true l s s' ->
  slot s i n -> home n = Popped u \/ home n = Private u -> actor l <> Some u -> slot s' i n.
Proof.
  intros R St E H A. apply reachable2_inv in R. rename R into I.
  assert (Mi : forall t c p, thr s t c p -> mind_ok (nodes s) t p)
    by (intros t c p T; exact (j_mind _ I t _ T)).
  assert (No : forall i n, slot s i n -> node_ok (clock s) n) by apply I.
  assert (Upd : forall j m m', slot s j m ->
            (home m = Popped u \/ home m = Private u -> False) ->
            nth_error (upd (nodes s) j m') i = Some n).
  { intros j m m' Ej N. rewrite (nth_upd _ _ _ _ _ Ej).
    destruct (Nat.eqb_spec j i) as [->|]; [|exact E].
    exfalso; apply N. assert (m = n) by (unfold slot in *; congruence). subst; auto. }
  assert (Cut : forall lo hi r, nth_error r i = Some n -> nth_error (cut lo hi r) i = Some n).
  { intros lo hi r Er; rewrite nth_cut, Er; cbn; unfold cut1. destruct H as [-> | ->]; auto. }
  unfold slot. destruct l; cbn -[cut] in St, A;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end;
    try (subst s'; exact E).
  - (* Fresh *) subst s'; cbn; rewrite nth_error_app1; eauto using nth_lt.
  - (* Pop *) subst s'; cbn;
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact K | intros [X|X]; congruence] end.
  - (* Write *)
    match goal with F : (_ /\ _) \/ _ |- _ => destruct F as [(T & Ej & Hj)|[[s0 T] [Ej Hj]]] end;
      subst s'; cbn; (eapply Upd; [exact Ej | intros [X|X]; congruence]).
  - (* Publish *) match goal with T : thr s t _ _ |- _ => destruct (Mi _ _ _ T) as (_ & mm & Em & Hm & _) end.
    subst s'; cbn.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact K | unfold slot in *; intros [X|X]; congruence] end.
  - (* Withdraw *) match goal with F : home _ = Popped t \/ _ |- _ => rename F into Hm end.
    subst s'; cbn.
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact K | destruct Hm; intros [X|X]; congruence] end.
  - (* GrantAll *)
    match goal with T : thr s t _ (Chosen ?h), Ej : slot s (fst ?h) _ |- _ => rename Ej into Eg;
      destruct (Mi _ _ _ T) as [K _] end.
    assert (L := known_listed _ _ _ _ K Eg ltac:(assumption) ltac:(assumption) (No _ _ Eg)).
    subst s'; cbn; eapply Upd; [exact Eg | intros [X|X]; congruence].
  - (* GrantPart *)
    match goal with T : thr s t _ (Cert ?h) /\ _ \/ _, Ej : slot s (fst ?h) _ |- _ =>
      rename Ej into Eg; rename T into Tg; rename h into hg end.
    assert (K : known (nodes s) hg) by (destruct Tg as [[T _]|[T _]]; apply Mi in T; apply T).
    assert (L := known_listed _ _ _ _ K Eg ltac:(assumption) ltac:(assumption) (No _ _ Eg)).
    subst s'; cbn -[cut]; apply Cut; eapply Upd; [exact Eg | intros [X|X]; congruence].
  - (* CutW *)
    match goal with T : thr s t _ (Walk (AtW ?h) _ _), Ej : slot s (fst ?h) _ |- _ => rename Ej into Eg;
      destruct (Mi _ _ _ T) as [K _]; cbn in K end.
    assert (L := known_listed _ _ _ _ K Eg ltac:(assumption) ltac:(assumption) (No _ _ Eg)).
    subst s'; cbn -[cut]; apply Cut; eapply Upd; [exact Eg | intros [X|X]; congruence].
  - (* CutS *)
    match goal with C : match ?c with _ => _ end |- _ => destruct c end;
      repeat match goal with
      | H : exists _, _ |- _ => destruct H as [? H]
      | H : _ /\ _ |- _ => destruct H
      end; subst s'; cbn -[cut]; apply Cut; exact E.
  - (* CutAll *) subst s'; cbn -[cut]; apply Cut; exact E.
  - (* CancelIt *)
    match goal with T : thr s t _ (Known ?h), Ej : slot s (fst ?h) _ |- _ => rename Ej into Eg;
      pose proof (Mi _ _ _ T) as K; cbn in K end.
    assert (L := known_listed _ _ _ _ K Eg ltac:(assumption) ltac:(assumption) (No _ _ Eg)).
    subst s'; cbn; eapply Upd; [exact Eg | intros [X|X]; congruence].
  - (* ShutIt *)
    match goal with T : thr s t _ (Known ?h), Ej : slot s (fst ?h) _ |- _ => rename Ej into Eg;
      pose proof (Mi _ _ _ T) as K; cbn in K end.
    assert (L := known_listed _ _ _ _ K Eg ltac:(assumption) ltac:(assumption) (No _ _ Eg)).
    subst s'; cbn; eapply Upd; [exact Eg | intros [X|X]; congruence].
  - (* Recycle *) subst s'; cbn;
    match goal with K : slot _ _ _ |- _ => eapply Upd; [exact K | intros [X|X]; congruence] end.
Qed.

(** ** The first sketch: hints believed without their generation

    N = 2, both leased.  Threads: 0 releases (T1), 1 will be stopped before its exchange (T2), 2 and 3
    own the waiters I and X, 4 comes late (T3).  I waits, X behind it.  X cancels, leaves, and its slot
    is freed; the hint of I still names it.  T2 takes the slot for a request of two, writes
    waiting + Link I, and stops.  T1 grants I, follows the hint, and finds in that slot a waiter that
    is linked to I: it certifies it, though nobody has published it. *)

Ltac meet :=
  lazymatch goal with
  | |- exists _, _ => eexists; meet
  | |- _ /\ _ => split; [meet | cbn; meet]
  | |- _ \/ _ => first [left; meet | right; meet]
  | |- _ -> False => discriminate
  | |- _ <> _ => discriminate
  | |- _ => first [reflexivity | lia | discriminate | cbn; tauto]
  end.
Ltac go2 lb R :=
  eapply (steps2_more _ _ lb) in R; [| cbn; unfold has, thr, slot; cbn; meet]; vm_compute in R.

(** The state just before the false step: T1 has a permit in its hand, and a certificate for the slot
    in the generation of T2. *)
Definition unchecked_run (s : state2) :=
  reachable2 false s /\ total s = 2 /\ all_permits s = 2 /\
  thr s 0 1 (Chosen (1, 2)) /\
  thr s 1 0 (Pub 1 2 (Queue (0, 1))) /\
  slot s 1 (Nd 2 Waiting (Link 0) 2 (Private 1) 0).

Lemma unchecked_prefix : exists s, unchecked_run s /\
  exists s', step2 false (GrantPart 0 1) s s' /\
  exists s'', steps2 false s' s'' /\
    total s'' = 2 /\ all_permits s'' = 1 /\ sum carry (threads s'') = 0 /\
    (forall t c p, thr s'' t c p -> p = Idle) /\
    slot s'' 1 (Nd 2 Waiting (Link 2) 2 Listed 3).
Proof.
  pose proof (steps2_none false (init2 2)) as R.
  go2 Spawn2 R. go2 Spawn2 R. go2 Spawn2 R. go2 Spawn2 R. go2 Spawn2 R.
  go2 (FastTake 2) R.
  go2 (Fresh 2 1) R. go2 (Write 2) R. go2 (Publish 2) R. go2 (Abandon 2) R.
  go2 (Fresh 3 1) R. go2 (Write 3) R. go2 (Publish 3) R. go2 (SetNewer 0 (1, 1)) R.
  go2 (CancelIt 3) R. go2 (StartS 3) R. go2 (WalkOn 3) R. go2 (CutS 3 0 (Some 0)) R.
  go2 (Recycle 1 (Head 0) true) R.
  go2 (Pop 1 1 2) R. go2 (Write 1) R.
  go2 (GiveBack 0 1) R. go2 (StartS 0) R. go2 (WalkSees 0) R. go2 (Check 0) R.
  go2 (Choose2 0) R. go2 (GrantAll 0) R.
  go2 (Follow1 0) R. go2 (Follow2 0) R. go2 (Follow3 0) R.
  go2 (GiveBack 0 1) R. go2 (Choose2 0) R.
  match type of R with steps2 _ _ ?s => exists s; split; [| set (s1 := s) in * ] end.
  { unfold unchecked_run, thr, slot; repeat split; auto. exists 2; exact R. }
  eexists; split; [unfold s1; cbn; unfold thr, slot; cbn; meet|].
  match goal with |- exists s'', steps2 _ ?s s'' /\ _ =>
    pose proof (steps2_none false s) as Q; vm_compute in Q end.
  go2 (Abandon 0) Q.
  go2 (Fresh 4 1) Q. go2 (Write 4) Q. go2 (Publish 4) Q. go2 (Abandon 4) Q.
  go2 (Write 1) Q. go2 (Publish 1) Q. go2 (Abandon 1) Q.
  match type of Q with steps2 _ _ ?s => exists s end.
  split; [exact Q|]. repeat split; auto.
  intros t c p. unfold thr; cbn. do 5 (destruct t as [|t]; [intros [= <- <-]; auto|]).
  destruct t; discriminate.
Qed.

(** Still consistent to look at, and yet the invariant is broken already: the certificate is for a
    slot that nobody has published. *)
Theorem unchecked_breaks_the_invariant :
  exists s, reachable2 false s /\ all_permits s = total s /\ ~ inv2 s.
Proof.
  destruct unchecked_prefix as (s & (R & T & A & C & _ & E) & _).
  exists s; split; [auto|]; split; [congruence|]. intros I.
  destruct (j_mind _ I 0 _ C) as [(n & En & _ & P) _].
  change (nth_error (nodes s) 1 = Some n) in En.
  unfold slot in E; rewrite E in En; injection En as <-.
  apply P; [auto | exact Logic.I].
Qed.

(** T1 writes its permit into the unpublished slot. *)
Theorem unchecked_touches_unpublished : exists s s' i n,
  reachable2 false s /\ step2 false (GrantPart 0 1) s s' /\
  slot s i n /\ home n = Private 1 /\ ~ slot s' i n.
Proof.
  destruct unchecked_prefix as (s & (R & _ & _ & C & _ & E) & s' & St & _).
  exists s, s', 1; eexists; split; [exact R|]; split; [exact St|]; split; [exact E|]; split; [auto|].
  destruct St as (c & h & n & Tc & En & G & W & _ & Lt & ->).
  destruct Tc as [[T _]|[T _]]; [unfold thr in C, T; congruence|].
  unfold thr in C, T; rewrite C in T; injection T as <- <-.
  change (slot s 1 n) in En.
  unfold slot in En, E; rewrite E in En; injection En as <-.
  unfold slot. change (fst (1, 2)) with 1.
  cbn [nodes with_thread with_nodes]. rewrite nth_cut, (nth_upd _ _ _ _ _ E), Nat.eqb_refl.
  discriminate.
Qed.

(** T3 joins, T2's exchange fails, T2 writes its word once more: two permits exist, one is accounted
    for, nothing is in any hand, nobody is under way, and T2's request waits for ever. *)
Theorem unchecked_loses_a_permit : exists s,
  reachable2 false s /\ total s = 2 /\ all_permits s = 1 /\ sum carry (threads s) = 0 /\
  (forall t c p, thr s t c p -> p = Idle) /\
  exists i n, slot s i n /\ home n = Listed /\ sta n = Waiting /\ got_in (pay n) = 0.
Proof.
  destruct unchecked_prefix as (s & ((k & R) & _) & s' & St & s'' & R' & T & A & Z & M & E).
  exists s''; split; [|split; [auto | split; [auto | split; [auto | split; [exact M|]]]]].
  - exists k. assert (R1 : steps2 false (init2 k) s') by (eapply steps2_more; eauto).
    clear -R1 R'. induction R' as [|s l s1 s2 H1 IH H2]; auto.
    apply (steps2_more false _ l s1); auto.
  - exists 1; eexists; split; [exact E | auto].
Qed.

(** With the check the system has runs in which slots are used again and hints are followed: the same
    three waiters, and T2's request gets its partial grant by way of the hint. *)
Example a_run2 : exists s,
  reachable2 true s /\ slot s 1 (Nd 2 Waiting (Head 1) 2 Listed 2) /\
  slot s 0 (Nd 1 Granted (Head 0) 1 Out 0) /\ untaken s = 1.
Proof.
  pose proof (steps2_none true (init2 2)) as R.
  go2 Spawn2 R. go2 Spawn2 R. go2 Spawn2 R. go2 Spawn2 R.
  go2 (FastTake 2) R.
  go2 (Fresh 2 1) R. go2 (Write 2) R. go2 (Publish 2) R.
  go2 (Fresh 3 1) R. go2 (Write 3) R. go2 (Publish 3) R. go2 (SetNewer 0 (1, 1)) R.
  go2 (CancelIt 3) R. go2 (StartS 3) R. go2 (WalkOn 3) R. go2 (CutS 3 0 (Some 0)) R.
  go2 (Recycle 1 (Head 0) true) R.
  go2 (Pop 1 1 2) R. go2 (Write 1) R. go2 (Publish 1) R. go2 (SetNewer 0 (1, 2)) R.
  go2 (GiveBack 0 2) R. go2 (StartS 0) R. go2 (WalkSees 0) R. go2 (Check 0) R.
  go2 (StartW 0 0) R. go2 (WalkSees 0) R. go2 (Check 0) R.
  go2 (Choose2 0) R. go2 (GrantAll 0) R.
  go2 (Follow1 0) R. go2 (Follow2 0) R. go2 (Follow3 0) R. go2 (Choose2 0) R. go2 (GrantPart 0 1) R.
  match type of R with steps2 _ _ ?s => exists s end.
  split; [exists 2; exact R|]. unfold slot; auto.
Qed.

(** *** Close *)

Lemma closed_stays_empty l s s' a : step2 true l s s' -> shut s = true -> sword s = Avail a ->
  shut s' = true /\ exists b, sword s' = Avail b.
Proof.
  intros St C W. destruct l; cbn in St;
    repeat match goal with
    | H : exists _, _ |- _ => destruct H as [? H]
    | H : _ /\ _ |- _ => destruct H
    end; subst; cbn; eauto; congruence.
Qed.

(** [close] returns when it sees the CLOSED bit and nobody in the state word.  Then nobody waits,
    and nobody ever will, but for requests that are not published and never can be. *)
Theorem close_leaves_nobody2 s s' a : reachable2 true s -> shut s = true -> sword s = Avail a ->
  steps2 true s s' -> forall i n, slot s' i n -> sta n = Waiting -> exists t, home n = Private t.
Proof.
  intros (k & R) C W St.
  assert (X : reachable2 true s' /\ shut s' = true /\ exists b, sword s' = Avail b).
  { induction St as [|s l s1 s2 H1 IH H2].
    - repeat split; [exists k; exact R | auto | eauto].
    - destruct (IH R C W) as ((k' & R') & C' & b & W').
      destruct (closed_stays_empty _ _ _ _ H2 C' W'); repeat split; auto.
      exists k'; eapply steps2_more; eauto. }
  destruct X as (R' & C' & b & W'). intros i n E Wn.
  destruct (waiting_is_listed _ _ _ R' E Wn) as [H|H]; auto.
  pose proof (j_sword _ (reachable2_inv _ R')) as J; rewrite W' in J.
  exfalso; exact (J i n (conj E H)).
Qed.
