#!/bin/sh
# Keeps the one Python environment of the build and the tests, in the cache, and prints its path.
#   tools/venv.sh build    what the build needs (unearth, which fetches sdists unbuilt)
#   tools/venv.sh demo     build, and what the demo needs
#   tools/venv.sh test     demo, and all that the tests need (with tools/npm in its node_modules)
#   tools/venv.sh cmake    build, and cmake, where the system's is too old
# Quick when nothing is missing: a stamp per list holds the list as it was installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${WEIR_CACHE:-$HOME/.cache/weir}
venv=$cache/venv
case ${1:-build} in
build) lists="build" ;;
demo) lists="build demo" ;;
test) lists="build demo test" ;;
cmake) lists="build cmake" ;;
*) echo "venv.sh: unknown list '$1', expected build, demo, test or cmake" >&2; exit 2 ;;
esac

# A base interpreter that went away (an upgrade of the system) leaves a broken environment.
if [ -d "$venv" ] && ! "$venv/bin/python" -c '' 2>/dev/null; then rm -rf "$venv"; fi

# The npm packages of the tests, which npm would take away and lay anew.
npm_there() { cmp -s "$here/npm/package-lock.json" "$venv/node_modules/installed.json"; }

missing='' npm=''
for list in $lists; do
  cmp -s "$here/requirements-$list.txt" "$venv/requirements-$list.txt" || missing="$missing $list"
done
case " $lists " in *" test "*) npm_there || npm=missing ;; esac
if [ -n "$missing$npm" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/venv.lock"
  if command -v flock >/dev/null 2>&1; then flock 9; fi
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv" >&2
  for list in $missing; do
    echo "weir: installing tools/requirements-$list.txt into $venv" >&2
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
      -r "$here/requirements-$list.txt" >&2
    cp "$here/requirements-$list.txt" "$venv/requirements-$list.txt"
  done
  if [ -n "$npm" ] && ! npm_there; then
    echo "weir: installing tools/npm into $venv" >&2
    cp "$here/npm/package.json" "$here/npm/package-lock.json" "$venv"
    (cd "$venv" && bin/npm ci --silent --ignore-scripts --no-audit --no-fund --no-update-notifier >&2)
    cp "$here/npm/package-lock.json" "$venv/node_modules/installed.json"
  fi
fi
echo "$venv"
