#!/usr/bin/env bash
# Builds every fuzz target with clang++ and its sanitizers and runs each: fuzz.sh SOURCE BUILD FLOORS SECONDS [TARGET...]
#
# FLOORS is the folder of a finished build, whose libraries complete the targets; the readers themselves are compiled again.
# New inputs stay in BUILD/inputs, so that a later run goes on from them; an input that shows a fault is BUILD/findings/TARGET-*.
set -euo pipefail

source=$1 build=$2 floors=$3 seconds=$4
shift 4
mkdir -p "$build/findings"

if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -x c++ - -fopenmp -fsanitize=fuzzer,address,undefined -o "$build/probe" 2>"$build/probe.txt"; then
  echo "skipped: clang++ cannot link a fuzz target (Debian: clang libclang-rt-14-dev libomp-14-dev): $(head -n 1 "$build/probe.txt")"
  exit 0
fi

cmake -S "$source" -B "$build" -G Ninja -D CMAKE_CXX_COMPILER=clang++ -D CMAKE_BUILD_TYPE=Debug -D CMAKE_UNITY_BUILD=ON -D NUMEMU_FUZZ=ON \
  -D NUMEMU_FUZZ_FLOORS="$floors" >"$build/configure.txt"
cmake --build "$build" --target fuzz >"$build/build.txt" || { tail -n 50 "$build/build.txt"; exit 1; }

failed=0
for program in "$build"/tests/fuzz/*_fuzz; do
  target=$(basename "$program" _fuzz)
  if (($#)) && [[ " $* " != *" $target "* ]]; then continue; fi
  mkdir -p "$build/inputs/$target"
  # Short inputs without leak checks after each and without weighing seeds by rarity: thousands a second instead of hundreds.
  if "$program" -max_total_time="$seconds" -max_len=1024 -entropic=0 -detect_leaks=0 -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$build/inputs/$target" "$source/tests/fuzz/corpus/$target" 2>"$build/$target.txt"; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.txt") inputs, no finding"
  else
    failed=1
    echo "$target: a finding, kept as $(echo "$build/findings/$target"-*)"
    tail -n 60 "$build/$target.txt"
  fi
done
exit $failed
