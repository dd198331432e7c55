/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delivery protocol (docs/protocol.md) for Spin. Two parts, chosen with -DDATA:
 *
 * DATA    the way of a batch: 2 sources, 6 bounded queues, 3 participants of 2 sinks, aligned barriers,
 *         gates, ends of sources, abort and rewind, overlap of epoch n+1 with commit n.
 * COMMIT  (default) store, lease, decision, commit, recovery, cleaner: 2 owners that pause, crash and
 *         restart, 2 targets: 0 stages at the target (manifest or log entry, then files are moved into
 *         place), 1 is spool and apply (row lock, open transaction that dies with its connection,
 *         replay). -DCOPY: two copies of one store.
 *
 * Bounds, all given by run.sh. DATA: RS rows of a source, QC room in a queue, BARS checkpoints before the
 * sources end. COMMIT: R rows, attempts 1..NA-1 (NA is 4), STARTS take-overs and restarts. FAULTS in
 * both. Variants: EMPTIES (an attempt may be empty at sink 1), GATHER (sink 0 has a commit_interval), PARTS
 * (sink 0 has two participants), FALL (target 0 loses its last publication), RESOLVE (target 0 refuses a decided
 * attempt for good, and a person gives `weir resolve` a word), ADOPT (the store is lost and built again from the
 * cursors). Every other macro is a mutation, one rule left out or read otherwise, and must fail; some fail
 * with a variant only, as run.sh has it.
 *
 * Left out: keyed rows. Abort is one step with the reservation of the next attempt. Retired generations have
 * a model of their own, retire.pml, and deployment claims another, claims.pml.
 */
#define span(a,b) (((1<<(b))-1) & ~((1<<(a))-1))        /* rows a+1..b as bits */
#ifdef DATA
/* ------------------------------------------------------------ part DATA */
#define S 2                     /* sources */
#define P 3                     /* participants: 0,1 = sink A; 2 = sink B */
#define Q(s,p) q[(s)*P+(p)]
#define BAR 100
#define END 101
chan q[S*P] = [QC] of { byte, byte };   /* row number, BAR or END; generation */
byte gen[S];                    /* rewind generation of each source */
byte dpos[S];                   /* last decided position (store) */
byte cpos[S];                   /* position of the last attempt seen at every target */
byte bpos[S];                   /* position at the barrier of the running attempt */
bool breq[S];                   /* coordinator -> source: send the barrier */
bool bsent[S];                  /* the running attempt has a barrier of this source (else its end counts) */
bool stop[S], stopped[S], ended[S], quit; bool gate[P], sealed[P], purge[P];
byte acc[P*S];                  /* rows taken by participant p from source s in this attempt */
#ifdef EPHEMERAL                /* source 1 cannot go back: what was not decided is lost, and counted */
byte lost;
#define LOST(s) ((s) == 1 -> lost : 0)
#define IS_EPHEMERAL(s) ((s) == 1)
#else
#define LOST(s) 0
#define IS_EPHEMERAL(s) false
#endif
/* room in the queue is the only thing a source waits for; a stop ends the wait
 * (PUSH_BLOCKS: it does not, the literal reading) */
inline push(s, p, m) {
#ifdef PUSH_BLOCKS
	Q(s,p)!m,g
#else
	if :: atomic { !stop[s] && nfull(Q(s,p)) -> Q(s,p)!m,g }
	:: stop[s] -> goto HALT fi
#endif
}
proctype Source(byte s) {
#ifdef EPHEMERAL
	bool giving;
#define GIVING(x) ; giving = x
#else
#define GIVING(x)
#endif
	byte pos, g;
	do :: quit -> break
	:: stop[s] -> goto HALT
	:: atomic { !stop[s] && !ended[s] && pos < RS -> pos++ GIVING(true) };
		if                              /* any participant of sink A */
		:: push(s, 0, pos)
		:: push(s, 1, pos) fi;
		push(s, 2, pos) GIVING(false)   /* and the one of sink B */
	:: !stop[s] && breq[s] && !ended[s] -> breq[s] = false; bsent[s] = true; bpos[s] = pos;
		push(s, 0, BAR); push(s, 1, BAR); push(s, 2, BAR)
	:: !stop[s] && !breq[s] && !ended[s] && pos == RS -> ended[s] = true;
		push(s, 0, END); push(s, 1, END); push(s, 2, END)
	:: false ->
HALT:	atomic {
#ifdef EPHEMERAL
		if :: s == 1 -> pos = (giving -> pos-1 : pos);  /* it is held, and given again */
#ifdef LOST_QUEUED
			lost = lost | acc[2*S+1]
#else
			lost = lost | span(dpos[1], pos)
#endif
		:: else fi;
		giving = false;
#endif
		stopped[s] = true };
		(!stop[s]);                     /* the coordinator raised the generation, all dropped */
#ifdef REWIND_COMMITTED
		pos = cpos[s];
#else
		pos = (IS_EPHEMERAL(s) -> pos : dpos[s]);
#endif
		g = gen[s]; bsent[s] = false;
#ifndef ENDED_STAYS_ENDED
		ended[s] = false;
#endif
		stopped[s] = false od }
proctype Part(byte p) {
	byte met, fin, m, g, s;         /* barriers met; queues whose source ended */
	do :: quit -> break
	:: purge[p] ->                  /* a rewind: drop what is older, say so */
		atomic {
			s = 0; do :: s < S ->
#ifndef KEEP_QUEUED
				do :: nempty(Q(s,p)) -> Q(s,p)?m,g; assert(g < gen[s])
				:: empty(Q(s,p)) -> break od;
#endif
				acc[p*S+s] = 0; s++
			:: else -> break od; met = 0;
#ifndef ENDED_STAYS_ENDED
			fin = 0;
#endif
			sealed[p] = false; purge[p] = false; s = 0; m = 0; g = 0 }
#ifdef UNALIGNED
#define readable(s) (gate[p] && !purge[p] && nempty(Q(s,p)))
#else
#define readable(s) (gate[p] && !purge[p] && !(met & (1<<s)) && nempty(Q(s,p)))
#endif
	:: atomic { readable(0) -> s = 0; goto TAKE }
	:: atomic { readable(1) -> s = 1;
TAKE:		Q(s,p)?m,g;
		if
#ifndef KEEP_QUEUED
		:: g < gen[s] -> skip
#endif
		:: m == BAR -> met = met | (1<<s)
		:: m == END -> met = met | (1<<s); fin = fin | (1<<s)
		:: else ->                      /* a row goes to write_batch: once per attempt */
			assert(!(acc[p*S+s] & (1<<(m-1)))); acc[p*S+s] = acc[p*S+s] | (1<<(m-1))
		fi; m = 0; g = 0; s = 0 }
#ifdef ENDED_GLOBAL
	:: atomic { gate[p] && !purge[p] && (met & 1 || ended[0]) && (met & 2 || ended[1]) ->
#else
	:: atomic { gate[p] && !purge[p] && met == 3 ->
#endif
		gate[p] = false; sealed[p] = true; met = fin } od }
byte faults, bars; bool asked, inflight;
inline open_all() { d_step { gate[0] = true; gate[1] = true; gate[2] = true;
	sealed[0] = false; sealed[1] = false; sealed[2] = false; asked = false } }
#define ALLSEALED (sealed[0] && sealed[1] && sealed[2])
active proctype Coord() {
	byte i; atomic { i = 0; run Source(0); run Source(1); run Part(0); run Part(1); run Part(2) }
	open_all(); do
	:: atomic { !asked && bars < BARS && !ALLSEALED -> asked = true; bars++; breq[0] = true; breq[1] = true }
	:: atomic { inflight -> inflight = false; cpos[0] = dpos[0]; cpos[1] = dpos[1] }  /* commit n lands */
	:: atomic { ALLSEALED && !inflight ->    /* decision n: exactly the rows between the positions, at both sinks */
		i = 0; do :: i < S -> assert(!(acc[0*S+i] & acc[1*S+i]));
			assert((acc[0*S+i] | acc[1*S+i]) == (span(dpos[i], (bsent[i] -> bpos[i] : RS)) & ~LOST(i)));
			assert(acc[2*S+i] == (span(dpos[i], (bsent[i] -> bpos[i] : RS)) & ~LOST(i)));
			acc[0*S+i] = 0; acc[1*S+i] = 0; acc[2*S+i] = 0;
			dpos[i] = (bsent[i] -> bpos[i] : RS); bsent[i] = false; i++
		:: else -> break od; breq[0] = false; breq[1] = false; inflight = true; i = 0; if
		:: dpos[0] == RS && dpos[1] == RS && ended[0] && ended[1] -> quit = true; break
		:: else -> open_all()           /* overlap: n+1 opens while commit n is on its way */
		fi }
	:: atomic { faults < FAULTS -> faults++; /* abort of the undecided attempt, then the rewind */
		gate[0] = false; gate[1] = false; gate[2] = false;
		breq[0] = false; breq[1] = false; stop[0] = true; stop[1] = true }
		atomic { stopped[0] && stopped[1] -> gen[0]++; gen[1]++;
			purge[0] = true; purge[1] = true; purge[2] = true }
		atomic { !purge[0] && !purge[1] && !purge[2] -> stop[0] = false; stop[1] = false }
		(!stopped[0] && !stopped[1]); open_all() od }
#else
/* ---------------------------------------------------------- part COMMIT */
#ifdef COPY
#define H 2                     /* two stores: the second is a copy of the first */
#define MYH o
#else
#define H 1
#define MYH 0
#endif
#define NONE 0
#define RES 1
#define COM 2
#define ABO 3
#define X(h,n) ((h)*NA+(n))
#define ALL ((1<<R)-1)
#ifdef EMPTIES
#define SUB(k) ((k)==0 -> ALL : (ALL & 5))     /* the second sink does not take row 2 */
#else
#define SUB(k) ALL
#endif
/* stores */
byte ltok[H]; byte lastd[H]; byte st[H*NA], hi[H*NA], rw[H*NA], dt[H*NA], dg[H*NA], inc[H*NA]; bool copied;
/* targets: cursor = (attempt, token, digest); rows visible; 0 = stage, 1 = spool and apply */
byte cN[2], cT[2], cD[2], vis[2];
byte pend;                      /* target 0: named by a manifest, not yet moved into place */
byte man;                       /* target 0: manifests that exist, by attempt number (BY_NUMBER) */
short pub;                      /* target 0: attempts named by a manifest, as artifact ids */
#ifdef ADOPT
#define ARTS (2*NA)
#else
#define ARTS (H*NA)
#endif
byte art[ARTS];                 /* target 0: staged artifacts: 0 none, 1 there, 2 removed */
#ifdef PARTS
byte brt[H*NA];                 /* as art, of the second participant */
#define BOTH(s) && brt[s] == 1
#else
#define BOTH(s)
#endif
#ifdef FALL
byte bN, bT, bD, bV; bool fell; /* target 0 before its last publication */
#endif
#ifdef TRUST_SEEN
byte said;                      /* what the store remembers of target 0 */
#endif
#ifdef RESOLVE                  /* attempt refused for good; the same once a person has said so, or KEPT */
byte refused, word;
#define KEPT 255
#define GIVEN(k,i) ((k) == 0 && word == (i))
#else
#define GIVEN(k,i) false
#endif
#ifdef ADOPT
bool lost, alive[2];
#ifdef ADOPT_AHEAD
#define AGREED true
#else
#define AGREED cN[0] == cN[1]
#endif
#define HISTORY (lost -> 3 : h+1)
#define INCARNATION(n) (lost -> NA+(n) : (n))
#else
#define HISTORY (h+1)
#define INCARNATION(n) X(h,n)
#endif
byte lock;                      /* target 1: owner+1 whose open transaction holds the cursor row */
/* requests under way, per owner and target: history, attempt, expected cursor, token */
byte rqN[4], rqP[4], rqT[4];
/* a decision under way to the store, per owner */
byte dsN[2], dsT[2], dsB[2], dsH[2];
#ifdef COPY
#define COPIED copied
#else
#define COPIED true
#endif
byte starts, faults; bool fin[2]; byte ownTok[2];
#ifdef CLEAN_NOW                 /* at once after the durable Abort */
#define CLEAN_GUARD(a)
#else                           /* once this history's cursor there is beyond the attempt */
#define CLEAN_GUARD(a) && seen[0] != 255 && seen[0] > a
#endif
/* rows of the decided attempts after p up to n */
#define RW(k,h,i,p,n) ((i) > (p) && (i) <= (n) && !GIVEN(k,i) -> rw[X(h,i)] : 0)
#define UN(k,h,p,n) (RW(k,h,1,p,n) | RW(k,h,2,p,n) | RW(k,h,3,p,n))
inline match(h, k, r) {         /* does the cursor at k belong to history h ? */
	r = (cN[k] == 0 || (st[X(h,cN[k])] == COM && dt[X(h,cN[k])] == cT[k]
#ifndef NO_DIGEST
		&& dg[X(h,cN[k])] == cD[k]
#endif
#ifdef WORD_FORGETS
		&& !GIVEN(k,cN[k])
#endif
	)) }
/* CAS: the cursor is still the predecessor, in all three */
#define SAME_T(h,k,p) (cT[k] == dt[X(h,p)])
#define SAME_D(h,k,p) (cD[k] == dg[X(h,p)])
#ifdef NEW_TOKEN
#undef SAME_T
#define SAME_T(h,k,p) true
#endif
#ifdef NO_DIGEST
#undef SAME_D
#define SAME_D(h,k,p) true
#endif
#define CAS(h,k,n,p) (cN[k] == p && (p == 0 || (SAME_T(h,k,p) && SAME_D(h,k,p))))
#if defined(NO_PREDECESSOR)
#define MAY(h,k,n,p) (cN[k] < n)
#elif defined(BY_NUMBER)        /* create-once manifest whose name is the attempt's number */
#define MAY(h,k,n,p) ((k == 1 && CAS(h,k,n,p)) || (k == 0 && !(man & (1<<n))))
#else
#define MAY(h,k,n,p) CAS(h,k,n,p)
#endif
#ifdef NEW_TOKEN
#define PT(n) tok
#else
#define PT(n) dt[X(h,n)]
#endif
/* one conditional step at the target: publish the attempts after p up to n of history h */
inline land(h, k, n, p, t) {
	if :: MAY(h,k,n,p) ->
		assert(st[X(h,n)] == COM);                      /* visible = decided */
#ifdef LAST_ONLY
		mask = rw[X(h,n)] & SUB(k);
#else
		mask = (UN(k, h, p, n) | (GIVEN(k,n) -> rw[X(h,n)] : 0)) & SUB(k);      /* sent before the word */
#endif
#ifdef FALL
		if :: k == 0 -> bN = cN[0]; bT = cT[0]; bD = cD[0]; bV = vis[0] | pend :: else fi;
#endif
		assert(!(vis[k] & mask) && (k == 1 || !(pend & mask))); /* at most once */
		if :: k == 0 -> pend = pend | mask; man = man | (1<<n); pub = pub | (1<<inc[X(h,n)]);
			assert(art[inc[X(h,n)]] == 1 BOTH(inc[X(h,n)])) /* its artifacts are there */
		:: else -> vis[k] = vis[k] | mask fi;
		assert(n > cN[k] && t >= cT[k]);                /* cursor and fence never fall */
		cN[k] = n; cT[k] = t; cD[k] = dg[X(h,n)]; mask = 0
	:: else fi }
inline reserve(h, n) {
	if :: n < NA -> if :: st[X(h,n)] == NONE -> st[X(h,n)] = RES; inc[X(h,n)] = INCARNATION(n) :: else fi
	   :: else fi }
#ifdef NO_LEASE
#define LEASE(h,t) true
#else
#define LEASE(h,t) (ltok[h] == t)
#endif
/* decision n in one transaction with the reservation of n+1; the lease row first */
inline decide(h, n, t, b, e) {
	if :: LEASE(h,t) ->
		assert(st[X(h,n)] == RES);                      /* one outcome only */
		st[X(h,n)] = COM; dt[X(h,n)] = t; dg[X(h,n)] = HISTORY; hi[X(h,n)] = e; rw[X(h,n)] = span(b, e);
		lastd[h] = n; reserve(h, n+1)
	:: else fi }
#define OWED(k) (UN(k, h, seen[k], ld) & SUB(k))
#ifdef LIT_EMPTY
#define SETTLED(k) (seen[k] == ld)
#else
#define SETTLED(k) (seen[k] != 255 && (seen[k] == ld || OWED(k) == 0))
#endif
#ifdef GATHER                   /* commit_interval: sink 0 may owe several attempts; a batch in doubt (up to bt) stays as it is */
#define MAYGO(k) (seen[k] != 255)
#else
#define MAYGO(k) SETTLED(k)
#endif
#ifdef PARTS
#ifdef CLEAN_WHOLE              /* only what all participants have begun */
#define LEFT(s) (art[s] == 1 && brt[s] == 1)
#else
#define LEFT(s) (art[s] == 1 || brt[s] == 1)
#endif
#else
#define LEFT(s) (art[s] == 1)
#endif
#define DIRTY(a) (st[X(h,a)] == ABO && LEFT(inc[X(h,a)]) CLEAN_GUARD(a))
#define LEFTOVER(a) (st[a] == ABO && a < cN[0] && (art[inc[a]] == 1 OTHER(inc[a])))
#ifdef PARTS
#define OTHER(s) || brt[s] == 1
#else
#define OTHER(s)
#endif
#define ME X(h,n)
proctype Owner(byte o) {
	byte tok, n, ph, e, pos, ld, bt, i, mask, h; byte seen[2], cs[2], pr[2]; bool ok; h = MYH;
end:	atomic { o == 0 || (starts < STARTS && COPIED) -> if :: o == 1 -> starts++ :: else fi }
START:	atomic {
#ifdef CLEAN_FIRST
		i = 1;                          /* cleaner before the durable Abort */
		do :: i < NA && st[X(h,i)] != RES -> i++ :: else -> break od;
		if :: i < NA && art[inc[X(h,i)]] == 1 -> art[inc[X(h,i)]] = 2 :: else fi; i = 0 }
	atomic {
#endif
		if :: lock == o+1 && rqN[2+o] == 0 -> lock = 0 :: else fi;
#ifdef FALL
		if :: !fell && cN[0] && pend == 0 -> fell = true; vis[0] = bV; cN[0] = bN; cT[0] = bT; cD[0] = bD
		:: true fi;
#endif
#ifdef ADOPT
		alive[o] = true;
		if :: !lost && !alive[1-o] && cN[0] && AGREED && rqN[0]+rqN[1]+rqN[2]+rqN[3]+dsN[0]+dsN[1] == 0 ->
			i = (cN[0] > cN[1] -> cN[0] : cN[1]);   /* its positions stand in the cursor's record */
			lost = true; lastd[0] = i; n = i+1;
			do :: n < NA -> st[n] = NONE; n++ :: else -> break od;
			do :: i > 0 -> rw[i] = 0; i-- :: else -> break od
		:: true fi;
#endif
#ifdef TOKEN_REUSED
		if :: ownTok[o] && ltok[h] == ownTok[o] -> skip :: else -> ltok[h]++ fi;
#else
		ltok[h]++;
#endif
		tok = ltok[h]; ownTok[o] = tok; bt = 0; ld = lastd[h]; ph = 0; e = 0; pos = 0;
		seen[0] = 255; seen[1] = 255; cs[0] = 0; cs[1] = 0; pr[0] = 0; pr[1] = 0;
#ifdef TRUST_SEEN
		seen[0] = said;
#endif
		n = 1; do :: n < NA && st[X(h,n)] != RES -> n++ :: else -> break od }
	do
	/* commit: read the cursor, decide by the table */
	:: atomic { cs[0] == 0 && seen[0] != ld && (seen[0] == 255 || !SETTLED(0)) -> i = 0; goto READ }
	:: atomic { cs[1] == 0 && seen[1] != ld && (seen[1] == 255 || OWED(1) != 0) -> i = 1;
READ:		match(h, i, ok); if :: i == 0 && cN[0] >= bt -> bt = 0 :: else fi;      /* settled */
		if
		:: cN[i] > ld -> goto STOP              /* fenced or conflict */
		:: cN[i] <= ld && !ok -> goto STOP      /* conflict */
		:: cN[i] == ld && ok -> seen[i] = ld;
#ifdef TRUST_SEEN
			if :: i == 0 -> said = ld :: else fi;
#endif
#ifndef LIT_ROLL
			if :: i == 0 -> assert(!(vis[0] & pend)); vis[0] = vis[0] | pend; pend = 0 :: else fi
#endif
		:: cN[i] < ld && ok -> pr[i] = cN[i]; if :: (UN(i, h, cN[i], ld) & SUB(i)) == 0 -> seen[i] = cN[i]
			   :: else -> cs[i] = 1 fi
		fi; i = 0; ok = 0 }
	/* send: it may land at once, or the answer is lost and it stays under way */
	:: atomic { cs[0] == 1 -> if
		:: bt = (bt -> bt : ld); land(h, 0, bt, pr[0], PT(bt)); cs[0] = 2       /* landed and answered, or refused */
		:: rqN[o] == 0 && faults < FAULTS -> faults++; bt = (bt -> bt : ld);
			rqN[o] = bt; rqP[o] = pr[0]; rqT[o] = PT(bt); cs[0] = 3
		fi }
#ifdef RESOLVE
	:: atomic { cs[0] == 1 && !refused -> refused = (bt -> bt : ld);        /* for good: stop */
		if :: lock == o+1 && rqN[2+o] == 0 -> lock = 0 :: else fi; goto WAIT }
#endif
	:: atomic { cs[0] == 2 -> cs[0] = 0;                    /* files into place, then look again */
		vis[0] = vis[0] | pend; pend = 0 }
	:: atomic { cs[0] == 3 ->
#ifdef ROLLBACK_IN_DOUBT
		ld = pr[0]; pos = hi[X(h,ld)]; e = 0; seen[0] = 255; seen[1] = 255; cs[1] = 0; bt = 0;
#endif
		cs[0] = 0 }                                     /* in doubt: read, the same batch again */
	:: atomic { cs[1] == 1 && (lock == 0 || lock == o+1) && rqN[2+o] == 0 ->
		lock = o+1; match(h, 1, ok);                    /* prepared or replayed; checked under the lock */
		if :: cN[1] == pr[1] && ok -> rqN[2+o] = ld; rqP[2+o] = pr[1]; rqT[2+o] = PT(ld); cs[1] = 2
		:: else -> lock = 0; cs[1] = 0 fi; ok = 0 }
	:: atomic { cs[1] == 2 && rqN[2+o] == 0 -> cs[1] = 0 }
	/* recovery ends: all decided is published; what is only reserved becomes Abort */
	:: atomic { ph == 0 && SETTLED(0) && SETTLED(1) -> if :: ltok[h] != tok -> goto STOP
		:: else -> if :: n < NA -> st[ME] = ABO; n++; reserve(h, n)
			   :: else -> n = 1; do :: n < NA && st[ME] != 0 -> n++ :: else -> break od; reserve(h, n) fi;
			pos = hi[X(h,ld)]; ph = (n < NA && pos < R -> 1 : 9) fi }
	/* the epoch: begin, write, pre_commit at both sinks */
	:: atomic { ph == 1 -> if :: e = pos+1 :: pos+2 <= R -> e = pos+2 fi;
#ifdef PARTS
		if :: e > pos && st[ME] != ABO && brt[inc[ME]] != 2 -> brt[inc[ME]] = 1 :: else fi; ph = 6 }
	:: atomic { ph == 6 ->
#endif
		if :: st[ME] != ABO && art[inc[ME]] != 2 -> art[inc[ME]] = 1 :: else fi; ph = 2 }
	:: atomic { ph == 2 && SETTLED(1) && cs[1] == 0 && (lock == 0 || lock == o+1) && rqN[2+o] == 0 ->
		if                                              /* prepare: row lock, cursor read under it */
		:: (span(pos, e) & SUB(1)) -> lock = o+1; match(h, 1, ok);
			if :: ok && cN[1] == seen[1] -> ph = 3 :: else -> lock = 0; goto STOP fi; ok = 0
		:: else -> ph = 3 fi }
	:: atomic { (ph >= 1 && ph <= 3 || ph == 6) && faults < FAULTS -> faults++;   /* proven failure: rollback */
		if :: lock == o+1 && cs[1] == 0 && rqN[2+o] == 0 -> lock = 0 :: else fi; ph = 5 }
	:: atomic { ph == 5 ->                                  /* Abort durable, n+1 reserved */
		if :: ltok[h] != tok -> goto STOP
		   :: else -> assert(st[ME] == RES); st[ME] = ABO; n++; reserve(h, n) fi;
#ifdef REWIND_COMMITTED
		pos = hi[X(h,seen[0])];
#else
		pos = hi[X(h,ld)];
#endif
		ph = (n < NA && pos < R -> 1 : 9) }
	:: atomic { ph == 3 && MAYGO(0) && SETTLED(1) ->      /* decision; n before it is at every target */
		if :: decide(h, n, tok, pos, e); if :: st[ME] != COM || dt[ME] != tok -> goto STOP :: else fi;
			ld = n; n++; pos = e; ph = (n < NA && pos < R -> 1 : 9)
		:: faults < FAULTS && starts < STARTS -> faults++; starts++; /* outcome unknown: stop, ask the store */
			if :: decide(h, n, tok, pos, e) :: true
			   :: dsN[o] = n; dsT[o] = tok; dsB[o] = pos; dsH[o] = e fi; goto START fi }
	/* the abort cleaner, target 0: never an artifact that is decided here or published by any history */
	:: atomic { ph != 0 && cs[0] == 0 && (DIRTY(1) || DIRTY(2) || DIRTY(3)) ->
		i = (DIRTY(1) -> 1 : (DIRTY(2) -> 2 : 3)); assert(!(pub & (1<<inc[X(h,i)])) && st[X(h,i)] != COM);
#ifdef PARTS
		if :: brt[inc[X(h,i)]] == 1 -> brt[inc[X(h,i)]] = 2 :: else -> art[inc[X(h,i)]] = 2 fi;
#else
		art[inc[X(h,i)]] = 2;
#endif
		i = 0 }
	:: atomic { ph == 9 && SETTLED(0) && SETTLED(1) && ltok[h] == tok && cs[0] == 0 &&
		!DIRTY(1) && !DIRTY(2) && !DIRTY(3) -> fin[h] = true; goto STOP }
	:: atomic { ltok[h] != tok -> goto STOP }                /* notices that it is fenced */
	:: atomic { starts < STARTS -> starts++; goto START }             /* crash and restart, at any point */
	od;
#ifdef RESOLVE
WAIT:	atomic { word -> goto START };
#endif
STOP:	atomic {
#ifdef ADOPT
		alive[o] = false;
#endif
		if :: lock == o+1 && rqN[2+o] == 0 -> lock = 0 :: else fi;
#ifndef COPY
		assert(fin[h] || ltok[h] != tok)               /* with one store nobody stops but the fenced */
#endif
	} }
#ifdef COPY
#define HH(i) ((i)%2)
#else
#define HH(i) 0
#endif
#ifdef LIVE                     /* a COMMIT is not lost for ever */
#define MAYDROP(i) (i < 2)
#else
#define MAYDROP(i) true
#endif
#define resolve(i) \
	:: atomic { rqN[i] -> \
		if :: land(HH(i), i/2, rqN[i], rqP[i], rqT[i]) :: MAYDROP(i) fi; \
		if :: i >= 2 && lock == i-1 -> lock = 0 :: else fi; \
		rqN[i] = 0; rqP[i] = 0; rqT[i] = 0 }
/* the network and the servers: requests land late or never, idle connections die */
active proctype Net() {
	byte mask;
end:	do resolve(0)
	resolve(1)
	resolve(2)
	resolve(3)
	:: atomic { dsN[0] -> if :: decide(0, dsN[0], dsT[0], dsB[0], dsH[0]) :: true fi; dsN[0] = 0; dsT[0] = 0; dsB[0] = 0; dsH[0] = 0 }
	:: atomic { dsN[1] -> if :: decide(HH(1), dsN[1], dsT[1], dsB[1], dsH[1]) :: true fi; dsN[1] = 0; dsT[1] = 0; dsB[1] = 0; dsH[1] = 0 }
	:: atomic { lock && rqN[1+lock] == 0 && (ownTok[lock-1] != ltok[HH(lock-1)] || faults < FAULTS) ->
		if :: ownTok[lock-1] == ltok[HH(lock-1)] -> faults++ :: else fi; lock = 0 } od }
#ifdef RESOLVE
/* Takes the lease; asks the target, if that can be asked, which refuses the word when it shows the attempt. */
active proctype Person() {
end:	atomic { refused ->
		if :: cN[0] >= refused -> word = KEPT
		:: cN[0] <= refused -> ltok[0]++; word = refused;
#ifdef WORD_ABORTS
			st[refused] = ABO
#endif
		fi } }
#define LATE pend               /* may land after the last look; the next start moves the files */
#define NOT_THERE (word && word != KEPT && !(pub & (1<<inc[word])) -> rw[word] : 0)
#else
#define LATE 0
#define NOT_THERE 0
#define word false
#endif
init {
	byte i; atomic { run Owner(0); run Owner(1) }
#ifdef COPY
	atomic { i = 1;                         /* at any time */
		do :: i < NA -> st[NA+i] = st[i]; hi[NA+i] = hi[i]; rw[NA+i] = rw[i]; dt[NA+i] = dt[i]; dg[NA+i] = dg[i]; inc[NA+i] = inc[i]; i++
		   :: else -> break od; ltok[H-1] = ltok[0]; lastd[H-1] = lastd[0]; copied = true; i = 0 }
#else
	timeout;                                /* nothing moves any more: faults are over */
	assert(fin[0]); assert((vis[0] | LATE) == (span(0, hi[lastd[0]]) & ~NOT_THERE) && (pend == 0 || word));
	assert(vis[1] == (span(0, hi[lastd[0]]) & SUB(1))); assert(cN[0] == lastd[0] || word);
	assert(word || !(LEFTOVER(1) || LEFTOVER(2) || LEFTOVER(3)))
#endif
}
#ifdef LIVE                     /* with weak fairness (pan -a -f): once faults stop, everything is delivered */
ltl live { <> fin[0] }
#endif
#endif
