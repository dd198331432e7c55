#!/bin/sh
# Keeps the headers and two plugins of an ABI version for good: tests/abi/freeze.sh 2. Run it once, when a
# version of WEIR_ABI_VERSION is first released; what is frozen is never edited.
set -eu
cd "$(dirname "$0")/../.."
case ${1:-} in "" | *[!0-9]*) echo "usage: tests/abi/freeze.sh VERSION" >&2; exit 2 ;; esac
to=tests/abi/$1
mkdir -p "$to/weir"
cc -M -Iinclude examples/sink-exactly-once/sqlite_lines.c examples/source-c/squares.c |
  tr ' \\' '\n\n' | grep '^include/weir/' | sort -u | xargs -I{} cp {} "$to/weir/"
cp examples/sink-exactly-once/sqlite_lines.c examples/source-c/squares.c "$to/"
