#!/usr/bin/env bash
# Every C++ program of docs/library.md: compiled against the built libraries and run; it prints what the page shows.
# usage: library_programs_test.sh ROOT BUILD COMPILER [FLAG...]     (BUILD: where the libraries of this tree are)
set -euo pipefail

root=$1 build=$2 compiler=$3
shift 3
scratch=$(mktemp -d)
export NUMEMU_DATA=$root/data
trap 'rm -rf "$scratch"' EXIT
# N.cpp is a fenced block of C++, N.txt the plain block behind it.
awk -v folder="$scratch/" '
  /^```cpp$/ { ++n; file = folder n ".cpp"; next }
  /^```$/ && file == "" && n > told { told = n; file = folder n ".txt"; printf "" > file; next }
  /^```/ { file = "" }
  file != "" { print > file }' "$root/docs/library.md"
flags=("$@")
if type -P ld.gold >/dev/null; then flags+=(-fuse-ld=gold); fi
libraries=(-lfmt -lcrypto -lhwy -lz -lzip -lpng -ljpeg -lsqlite3)
failed=0
for program in "$scratch"/*.cpp; do
  name=${program%.cpp}
  "$compiler" "${flags[@]}" -std=c++20 -fopenmp -Wall -Wextra -I"$root" -I"$build/generated" -o "$name" "$program" \
    -Wl,--start-group "$build"/api/lib*.a "$build"/experiments/lib*.a "$build"/policies/lib*.a "$build"/emu/*/lib*.a \
    "$build"/formats/lib*.a -Wl,--end-group "${libraries[@]}"
  (cd "$scratch" && "$name") >"$name.out"
  diff -u "$name.txt" "$name.out" || failed=1
done
[[ -f $scratch/2.cpp ]] || { echo "the page has no programs" && exit 1; }
exit "$failed"
