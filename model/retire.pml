/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retirement (docs/guarantees.md, src/task/retire.c) for Spin: calls of one sink that hang past their deadline and do
 * what they do much later, or never. Their generation is retired, an attempt that was not decided is aborted, and the
 * next one has another incarnation. A commit is conditional on the target's cursor with -DCAS; without it, it reads
 * the cursor and then writes.
 *
 * EPOCHS to publish, HANGS. Every other macro leaves one rule out and must fail.
 */
#define INC (HANGS+EPOCHS)
#define GONE 9
byte art[INC+1];                /* by incarnation: batches in its staged artifact; GONE: removed */
bool said[INC+1];               /* a decided descriptor names it, with two batches */
byte cursor, times[EPOCHS+1];   /* the target */
byte gen, next;                 /* generation whose answers count; last incarnation */
byte strays, hangs;             /* threads of retired generations; calls that have hung */
bool answered, late;            /* the present call has; is past its deadline */
/* Until it is given up, and then for a while or for ever. */
inline hang() {
	if :: atomic { hangs < HANGS -> hangs++; late = true };
		(gen != g);
		if :: skip
end:		:: false fi
	:: skip fi }
#define ANSWER atomic { if :: gen == g -> answered = true :: else -> strays-- fi }
proctype Write(byte g, i) {     /* write_batch */
	hang();
	atomic { if :: art[i] == GONE   /* unlinked: nobody sees what is written */
		:: else -> assert(!said[i]); art[i]++ fi }      /* nothing is written into what was decided */
	ANSWER }
proctype Commit(byte g, n, i) {
	byte seen;
#ifdef CAS
	hang();
	atomic { if :: cursor == n-1 -> cursor = n; times[n]++; assert(art[i] == 2) :: else fi }
#else
	seen = cursor;
	hang();
	atomic { if :: seen == n-1 -> cursor = n; times[n]++; assert(art[i] == 2) :: else fi }
#endif
	ANSWER }
active proctype Coordinator() {
	byte epoch, mine, asked;
	epoch = 1;
	do :: epoch > EPOCHS -> break
	:: else ->
#ifdef SAME_INCARNATION
		mine = epoch;
#else
		next++; mine = next;
#endif
		asked = 0;
		do :: asked == 2 -> break
		:: atomic { asked < 2 -> answered = false; run Write(gen, mine) };
			if :: answered -> asked++
			:: atomic { late && !answered -> late = false; gen++; strays++;
				/* Abort, rollback by the intent, then another attempt */
#ifdef SAME_INCARNATION
				art[mine] = 0;
#else
				art[mine] = GONE; next++; mine = next;
#endif
				asked = 0 }
			fi
		od;
		atomic { assert(art[mine] == 2); said[mine] = true };
		do :: asked == 3 -> break
		:: asked < 3 ->                 /* until it is answered: the same again */
#if !defined(CAS) && !defined(BESIDE)
end:			(strays == 0);          /* beside a call that hangs nothing is committed */
#endif
			atomic { answered = false; run Commit(gen, epoch, mine) };
			if :: atomic { answered -> assert(times[epoch] == 1); asked = 3 }
			:: atomic { late && !answered -> late = false; gen++; strays++ }
			fi
		od;
		epoch++
	od;
	timeout; assert(times[1] == 1 && times[EPOCHS] == 1) }
