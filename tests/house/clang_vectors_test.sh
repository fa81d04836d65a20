#!/usr/bin/env bash
# The sources that draw test vectors give the same files compiled by clang and by the compiler of the build: their order of draws
# is written out. Compiles those sources alone and links them before the others of the program.
# usage: clang_vectors_test.sh SOURCE BUILD      exit status 77 where clang is not installed
set -euo pipefail

root=$1 build=$2
if ! type -P clang++ >/dev/null; then
  echo "skipped: clang vectors: clang++ is not installed"
  exit 77
fi
if ! type -P ninja >/dev/null || [[ ! -f $build/build.ninja ]]; then
  echo "skipped: clang vectors: the build folder is not one of ninja"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$build"

objects=()
for source in generator edge_codes input_draft proposer; do
  clang++ -std=c++20 -O0 -ffp-contract=off -I"$root" -Igenerated -c "$root/emu/oracle/$source.cpp" -o "$scratch/$source.o" &
  objects+=("$scratch/$source.o")
done
for job in $(jobs -p); do wait "$job"; done

# The first definition of a function counts: clang's.
link=$(ninja -t commands cli/numemu-vectors | tail -n 1)
program=$scratch/numemu-vectors
eval "${link/ -o cli\/numemu-vectors / -Wl,-z,muldefs ${objects[*]} -o $program }"

same() { # same OPTION...: both programs write the same file
  cli/numemu-vectors vectors --quiet "$@" >"$scratch/ours"
  "$program" vectors --quiet "$@" >"$scratch/clang"
  [[ $(wc -l <"$scratch/ours") -gt 20 ]] || { echo "no records: $*" && exit 1; }
  cmp "$scratch/ours" "$scratch/clang" || { echo "differs: vectors $*" && exit 1; }
}
for style in mixed random subnormal overflow cancel; do
  for operation in add fma dot; do same --op $operation --format float16 --style $style --n 50; done
done
for style in mixed random subnormal overflow ties; do
  same --op convert --from float32 --to float8_e4m3fn --style $style --n 50
done
same --unit nvidia.a2.mma.bf16.f32 --style alignment --n 50
same --unit nvidia.ada.mma.e4m3xe5m2.f32 --n 50
