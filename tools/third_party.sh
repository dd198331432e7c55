#!/bin/sh
# Fetches nanoarrow (with flatcc), yyjson and the header of ADBC as sdists, checks their SHA-256, builds them once per
# compiler into the cache, and prints the folder that holds include/ and lib/.
#   tools/third_party.sh CC
# All presets share the result: the objects are small, position independent, and hidden.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cc=${1:-cc}
cache=${WEIR_CACHE:-$HOME/.cache/weir}

nanoarrow_version=0.9.0
nanoarrow_sha256=1ce15bbed8532839347faa78824c5dbd3769bff60661003e34c6fba5dd881bd3
adbc_version=1.13.0
adbc_sha256=72d616e43d03b735e4000b653307531a2d1820f1f7e0ce949656f0ab939bd53e
yyjson_version=4.0.6
yyjson_sha256=fcd4dc15c1e39a30bf9fa85d56903029111506860fc3080ab0d81c6c6dacaa8c

key=$({ cat "$here/third_party.sh"; "$cc" --version; "$cc" -dumpmachine; } | sha256sum | cut -c1-16)
out=$cache/third_party/$key
if [ -f "$out/complete" ]; then echo "$out"; exit 0; fi

mkdir -p "$cache/sdist" "$cache/third_party"
work=$(mktemp -d "$cache/third_party/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# sdist NAME VERSION SHA256: leaves the unpacked folder in $work/NAME-VERSION.
sdist() {
  file=$cache/sdist/$1-$2.tar.gz
  if ! [ -f "$file" ]; then
    echo "weir: fetching $1 $2" >&2
    venv=$("$here/venv.sh" build)
    mkdir "$work/fetch-$1"
    "$venv/bin/unearth" --no-binary -d "$work/fetch-$1" "$1==$2" >"$work/fetch-$1.log" || {
      cat "$work/fetch-$1.log" >&2
      echo "third_party.sh: cannot fetch $1 $2; is the package index reachable?" >&2
      exit 1
    }
    mv "$work/fetch-$1/$1-$2.tar.gz" "$file"
  fi
  echo "$3  $file" | sha256sum -c --status || {
    echo "third_party.sh: $file is not what was pinned (SHA-256 differs); delete it and try again" >&2
    exit 1
  }
  tar -xzf "$file" -C "$work"
}

sdist nanoarrow $nanoarrow_version $nanoarrow_sha256
sdist adbc_driver_manager $adbc_version $adbc_sha256
sdist yyjson $yyjson_version $yyjson_sha256

# The sdist has flatcc as a meson subproject; bundle.py looks for it under thirdparty/.
na=$work/nanoarrow-$nanoarrow_version/subprojects/arrow-nanoarrow
mkdir "$na/thirdparty"
ln -s "$(echo "$work/nanoarrow-$nanoarrow_version"/subprojects/flatcc-*)" "$na/thirdparty/flatcc"
mkdir -p "$work/out/include" "$work/out/lib" "$work/obj"
inc=$work/out/include
python3 "$na/ci/scripts/bundle.py" --include-output-dir "$inc" --source-output-dir "$work/src" \
  --symbol-namespace Weir --header-namespace nanoarrow/ --with-ipc --with-flatcc
mkdir -p "$inc/nanoarrow/ipc"
cp "$na/src/nanoarrow/ipc/flatcc_generated.h" "$inc/nanoarrow/ipc/"
# Of ADBC the header of its ABI alone, which drivers are loaded by.
cp -r "$work/adbc_driver_manager-$adbc_version/adbc_driver_manager/arrow-adbc" "$inc/"
rm "$inc/arrow-adbc/adbc_driver_manager.h"
cp "$work/yyjson-$yyjson_version/yyjson/yyjson.c" "$work/src/"
cp "$work/yyjson-$yyjson_version/yyjson/yyjson.h" "$inc/"

cd "$work" # the debug information names the folder of the compiler run
for name in nanoarrow nanoarrow_ipc flatcc yyjson; do
  set --
  # nanoarrow's own IPC reader is a second opinion in tests; it gets both codecs.
  [ $name != nanoarrow_ipc ] || set -- -DNANOARROW_IPC_WITH_ZSTD -DNANOARROW_IPC_WITH_LZ4
  "$cc" -std=gnu11 -O3 -g1 -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections -w \
    -ffile-prefix-map="$work"=third_party "$@" -I"$inc" -c "$work/src/$name.c" -o "$work/obj/$name.o" || {
    echo "third_party.sh: $cc cannot compile $name.c" >&2
    exit 1
  }
  ar crs "$work/out/lib/lib$name.a" "$work/obj/$name.o"
done
mkdir "$work/out/licenses"
cp "$work/adbc_driver_manager-$adbc_version/LICENSE.txt" "$work/out/licenses/adbc"
cp "$work/yyjson-$yyjson_version/LICENSE" "$work/out/licenses/yyjson"
cp "$na/thirdparty/flatcc/LICENSE" "$work/out/licenses/flatcc"
cp "$work/nanoarrow-$nanoarrow_version/LICENSE" "$work/out/licenses/nanoarrow" 2>/dev/null || :
: >"$work/out/complete"
# Two builds may race: the first to rename wins, both results are the same.
mv -T "$work/out" "$out" 2>/dev/null || [ -f "$out/complete" ]
echo "$out"
