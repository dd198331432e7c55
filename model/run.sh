#!/bin/sh
# Checks the models with Spin and gcc: every base must pass, and every mutation, which leaves one rule
# out, must fail. Prints one line a check; exits 1 when one did not come out as wanted, 2 when Spin is
# missing (apt install spin).
#   model/run.sh [quick]   the bases, and the mutations that fail within seconds: two minutes on two cores
#   model/run.sh full      all of them, and progress under fairness
#   model/run.sh large     the same with larger bounds (6 GB of memory, some twenty minutes)
# The two parts run side by side; a second argument, data or commit, runs one of them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
level=${1:-quick}
part=${2:-both}
case $level.$part in
quick.* | full.* | large.*) ;;
*) sed -n '2,9s/^# *//p' "$0" >&2; exit 2 ;;
esac
command -v spin >/dev/null 2>&1 || { echo "model/run.sh: spin is missing: apt install spin" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
bad=0

if [ "$part" = both ]; then
  "$0" "$level" data >"$work/data" 2>&1 &
  "$0" "$level" commit || bad=1
  wait $! || bad=1
  cat "$work/data"
  exit $bad
fi

model=protocol
# expected outcome (pass | fail), options of pan, options of its compiler, macros of the model
check() {
  want=$1 pan=$2 compiler=$3
  shift 3
  optimize=-O2
  [ "$want" = pass ] || optimize=-O1 # it ends soon, so the compiler takes longer than the search
  rm -rf "$work/run" && mkdir "$work/run" && cd "$work/run" || exit 2
  spin -a "$@" "$here/$model.pml" >out 2>&1 &&
    gcc -w $optimize -DCOLLAPSE -DMEMLIM=6000 $compiler -o pan pan.c || { cat out; exit 2; }
  ./pan -m1000000 $pan >out 2>&1
  got=fail
  grep -q 'errors: 0' out && ! grep -q 'Search not completed' out && got=pass
  [ "$got" = "$want" ] || { bad=1; got="$got!"; }
  printf '%-5s (want %s) %9s states %6s s  %s | %s\n' "$got" "$want" \
    "$(sed -n 's/ *\([0-9]*\) states, stored.*/\1/p' out)" \
    "$(sed -n 's/.*elapsed time \([0-9.e+-]*\) .*/\1/p' out)" "$model $*" \
    "$(sed -n 's/^pan:1: //p' out | cut -c1-60)"
}
safe() { expected=$1; shift; check "$expected" "" -DSAFETY "$@"; }

data="-DDATA -DRS=2 -DQC=1 -DFAULTS=1 -DBARS=1"
commit="-DNA=4 -DR=3 -DSTARTS=1 -DFAULTS=1"

if [ "$part" = data ]; then
  safe pass $data
  for rule in KEEP_QUEUED UNALIGNED REWIND_COMMITTED ENDED_GLOBAL ENDED_STAYS_ENDED PUSH_BLOCKS; do
    safe fail $data -D$rule
  done
  safe pass -DDATA -DRS=1 -DQC=1 -DFAULTS=1 -DBARS=1 -DEPHEMERAL
  safe fail $data -DEPHEMERAL -DLOST_QUEUED
  [ "$level" = quick ] || safe pass $data -DEPHEMERAL
  [ "$level" = large ] && safe pass -DDATA -DRS=2 -DQC=2 -DFAULTS=1 -DBARS=1
  exit $bad
fi

model=claims
for new in 0 1 2; do safe pass -DEPOCHS=2 -DKILLS=2 -DNEW=$new; done
for rule in "NEW=0 -DOVERWRITE" "NEW=0 -DANYBODY" "NEW=1 -DNO_K6" "NEW=2 -DTRIED_AGAIN"; do
  safe fail -DEPOCHS=2 -DKILLS=2 -D$rule
done
model=retire
for variant in "" -DCAS; do safe pass -DEPOCHS=2 -DHANGS=3 $variant; done
for rule in SAME_INCARNATION BESIDE; do safe fail -DEPOCHS=2 -DHANGS=2 -D$rule; done
model=protocol

safe pass $commit
for variant in EMPTIES GATHER COPY; do safe pass $commit -D$variant; done
for rule in NEW_TOKEN ROLLBACK_IN_DOUBT CLEAN_FIRST REWIND_COMMITTED NO_LEASE LIT_ROLL "EMPTIES -DLIT_EMPTY" \
  "GATHER -DBY_NUMBER" "COPY -DNO_PREDECESSOR" "COPY -DBY_NUMBER" "COPY -DCLEAN_NOW"; do
  safe fail $commit -D$rule
done
# The ways out and what else may happen beside, with two rows. A word for an attempt takes many states.
few="-DNA=4 -DR=2 -DSTARTS=1 -DFAULTS=1"
for variant in PARTS FALL ADOPT; do safe pass $few -D$variant; done
safe pass -DNA=4 -DR=2 -DSTARTS=0 -DFAULTS=1 -DRESOLVE
for rule in "PARTS -DCLEAN_WHOLE" "FALL -DLAST_ONLY" "FALL -DTRUST_SEEN" "RESOLVE -DWORD_ABORTS" \
  "RESOLVE -DWORD_FORGETS" "ADOPT -DADOPT_AHEAD"; do
  safe fail $few -D$rule
done
if [ "$level" != quick ]; then
  for variant in PARTS FALL ADOPT; do safe pass $commit -D$variant; done
  safe pass $few -DRESOLVE
  safe pass $commit -DCLEAN_NOW # harmless while nobody copies the store
  check pass "-a -f" -DNFAIR=4 $commit -DLIVE
  safe fail $commit -DTOKEN_REUSED
  safe fail $commit -DCOPY -DNO_DIGEST
fi
[ "$level" = large ] && safe pass -DNA=4 -DR=3 -DSTARTS=2 -DFAULTS=1
exit $bad
