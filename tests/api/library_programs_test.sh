#!/usr/bin/env bash
# Every C++ program of docs/library.md: compiled against the built libraries and run; it prints what the page shows.
# usage: library_programs_test.sh [--alone] ROOT BUILD COMPILER [FLAG...]     (BUILD: where the libraries of this tree are)
# They are compiled as one program, because most of the time goes into headers that they share; with --alone each by itself, which shows that
# its own headers suffice.
set -euo pipefail

alone=no
if [[ $1 == --alone ]]; then
  alone=yes
  shift
fi
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
compile() { # compile PROGRAM: of PROGRAM.cpp
  "$compiler" "${flags[@]}" -std=c++20 -fopenmp -Wall -Wextra -I"$root" -I"$build/generated" -o "$1" "$1.cpp" \
    -Wl,--start-group "$build"/api/lib*.a "$build"/experiments/lib*.a "$build"/policies/lib*.a "$build"/emu/*/lib*.a \
    "$build"/formats/lib*.a -Wl,--end-group "${libraries[@]}"
}
programs=("$scratch"/*.cpp)
[[ -f $scratch/2.cpp ]] || { echo "the page has no programs" && exit 1; }
if [[ $alone == no ]]; then
  # The headers of all, then program N as program_N::run(), which ends as main() does.
  {
    grep -h '^#include' "${programs[@]}" | sort -u
    for program in "${programs[@]}"; do
      name=${program##*/}
      echo "namespace program_${name%.cpp} {"
      sed -e '/^#include/d' -e 's/^int main() {$/int run() {/' -e '$s/^}$/  return 0;\n}/' "$program"
      echo "}  // namespace program_${name%.cpp}"
    done
    echo 'int main(int, char** words) {'
    for program in "${programs[@]}"; do
      name=${program##*/}
      echo "  if (*words[1] == '${name%.cpp}') return program_${name%.cpp}::run();"
    done
    echo '  return 1;'
    echo '}'
  } >"$scratch/all.cpp"
  compile "$scratch/all"
fi
failed=0
for program in "${programs[@]}"; do
  name=${program%.cpp}
  run=("$scratch/all" "${name##*/}")
  if [[ $alone == yes ]]; then
    compile "$name"
    run=("$name")
  fi
  (cd "$scratch" && "${run[@]}") >"$name.out" || failed=1
  diff -u "$name.txt" "$name.out" || failed=1
done
exit "$failed"
