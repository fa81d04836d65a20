#!/usr/bin/env bash
# libnumemu.so from outside: what it exports, the header in the dialects of C and C++, the example, and the programs of docs/bindings.md.
# usage: library_test.sh ROOT LIBRARY CC CXX [FLAG...]
set -euo pipefail

root=$1 library=$2 cc=$3 cxx=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
header=$root/bindings/c/numemu.h
fail() { echo "$*" && exit 1; }

# The functions of the header, each with the version, and nothing else.
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort >"$scratch/exported"
awk '/^NUMEMU_API/' "$header" | grep -o 'numemu_[a-z_]*(' | sed 's/($/@@NUMEMU_0/' | sort -u >"$scratch/expected"
[[ $(wc -l <"$scratch/expected") -gt 40 ]] || fail "the header declares too few functions"
diff "$scratch/expected" "$scratch/exported" || fail "exported: other names than the header declares"

# A function that programs may call keeps its prototype; what is new joins the list.
awk '/^NUMEMU_API/ { on = 1 } on { line = line " " $0 } on && /;/ { print line; line = ""; on = 0 }' "$header" |
  sed -E 's/NUMEMU_API //; s/[ \t]+/ /g; s/^ //; s/;.*/;/' >"$scratch/functions"
diff "$root/tests/bindings/c/functions.txt" "$scratch/functions" || fail "the header has other functions than tests/bindings/c/functions.txt"

flags=(-Wall -Wextra -pedantic -Werror "-I$root/bindings/c")
printf '#include <numemu.h>\nint main(void) { return numemu_version()[0] == 0; }\n' >"$scratch/h.c"
cp "$scratch/h.c" "$scratch/h.cpp"
for standard in c99 c17; do "$cc" -std=$standard "${flags[@]}" -fsyntax-only "$scratch/h.c"; done
for standard in c++11 c++20; do "$cxx" -std=$standard "${flags[@]}" -fsyntax-only "$scratch/h.cpp"; done

run() { # run NAME: of NAME.c
  "$cc" -std=c99 -Wall -Wextra -Werror "-I$root/bindings/c" "$@" "$scratch/$name.c" -o "$scratch/$name" "$library"
  LD_LIBRARY_PATH=${library%/*} "$scratch/$name" >"$scratch/$name.out"
}
cp "$root/bindings/c/example.c" "$scratch/example.c"
name=example run "$@"
head -2 "$scratch/example.out" | diff - <(printf '%s\n' '-0.1875' \
  'D[0] of nvidia.h100.wgmma.e4m3.f32: float8_e4m3fn x float8_e4m3fn, K = 4') || fail "the example prints something else"

# N.c is a fenced block of C, N.txt the plain block behind it.
awk -v folder="$scratch/" '
  /^```c$/ { ++n; file = folder n ".c"; next }
  /^```$/ && file == "" && n > told { told = n; file = folder n ".txt"; printf "" > file; next }
  /^```/ { file = "" }
  file != "" { print > file }' "$root/docs/bindings.md"
[[ -f $scratch/1.txt ]] || fail "docs/bindings.md has no programs"
for text in "$scratch"/[0-9]*.txt; do
  name=$(basename "$text" .txt)
  name=$name run "$@"
  diff -u "$text" "$scratch/$name.out" || fail "docs/bindings.md: program $name prints something else"
done
