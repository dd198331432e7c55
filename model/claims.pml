/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployment claims (docs/protocol.md, K1 to K6) for Spin: two deployments, each with a store of its own, start at one
 * target at the same moment, are paused anywhere, killed and started again. The last NEW of them (0 to 2) are asked
 * for with --new-deployment.
 *
 * EPOCHS to publish, KILLS. Every other macro leaves one rule out, or reads it otherwise, and must fail.
 */
#define D 2
#define CLAIMS 4
byte chain[CLAIMS], head;       /* chain[1..head]: deployment + 1; each created once */
byte linked[D];                 /* manifests that exist and are not published: claims at its link, + 1 */
byte shown[D], late[D];         /* epochs published; of them, since it was replaced */
byte kills, done, refused;
byte asked[D];                  /* claims that a --new-deployment read, + 1; 0: it has not claimed behind them */
#define MINE(n) (chain[n] == d+1)
#define WAS(i) ((i) < head && MINE(i))
#define REPLACED (WAS(1) || WAS(2) || WAS(3))
/* F13: visible from here on */
inline publish() {
	shown[d]++;
	if :: MINE(head) -> skip
	:: else -> late[d]++;
		assert(late[d] <= 1);           /* a replaced one finishes one epoch at most, */
		assert(MINE(linked[d]-1))       /* which it had linked before */
	fi;
	linked[d] = 0 }
proctype Deployment(byte d) {
	byte h, first; bool may; may = (d >= D - NEW);
START:	atomic { h = head;              /* K1 */
		if :: h && MINE(h) -> goto RUN
#ifndef ANYBODY
		:: h && !MINE(h) && (!may || REPLACED) -> goto REFUSED
#endif
		:: else -> first = (first -> first : h+1) fi }
	if :: atomic { kills < KILLS -> kills++; may = false; first = 0; goto START }
	:: atomic { head < CLAIMS-1 ->  /* K2, K3: link() of number h+1 */
#ifdef OVERWRITE
		head = h+1; chain[h+1] = d+1
#else
		if :: head == h -> head++; assert(!WAS(1) && !WAS(2)); chain[head] = d+1;
			asked[d] = (may -> first : 0)
		:: head != h && MINE(head) -> skip
#ifdef TRIED_AGAIN
		:: head != h && !MINE(head) -> may = true; goto START
#else
		:: head != h && !MINE(head) -> goto REFUSED
#endif
		fi
#endif
		} fi;
RUN:	atomic { may = false; h = 0;
		if :: linked[d] && !MINE(head) -> goto REFUSED   /* K5 of take_over, F8 */
		:: else fi }
	if :: linked[d] -> atomic { publish() } :: else fi;
	do :: shown[d] == EPOCHS -> break
	:: atomic { kills < KILLS -> kills++; goto START }
	:: shown[d] < EPOCHS ->
		if :: atomic { MINE(head) -> skip } :: atomic { !MINE(head) -> goto REFUSED } fi;       /* K5 */
		atomic { linked[d] = head+1 };  /* F10 */
		if :: atomic { kills < KILLS -> kills++; goto START } :: skip fi;
#ifndef NO_K6
		if :: atomic { MINE(head) -> skip } :: atomic { !MINE(head) -> goto REFUSED } fi;       /* K6 */
#endif
		atomic { publish() }
	od;
	done++; goto OUT;
REFUSED: refused++;
OUT:	skip }
init {
	atomic { run Deployment(0); run Deployment(1) }
	timeout;
	assert(done >= 1);
#if NEW == 0
	assert(done == 1 && refused == 1 && (!shown[0] || !shown[1]));  /* one gets the target, for good */
#endif
#if NEW == 2
	assert(!asked[0] || asked[0] != asked[1])       /* of two that read one chain, one is refused */
#endif
}
