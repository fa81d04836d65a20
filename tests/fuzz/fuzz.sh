#!/usr/bin/env bash
# Builds fuzz targets, all or those named, with clang++ and its sanitizers and runs each: fuzz.sh SOURCE BUILD FLOORS LENGTH [TARGET...]
#
# LENGTH is a number of seconds, or of inputs with an x behind (1000000x), for each target. FLOORS is the folder of a finished build,
# whose libraries complete the targets; the readers themselves are compiled again.
# New inputs stay in BUILD/inputs, so that a later run goes on from them; an input that shows a fault is BUILD/findings/TARGET-*.
# Inputs of ONNX targets change by fields (mutate_onnx.cpp), those of the others by bytes.
set -euo pipefail

source=$1 build=$2 floors=$3 length=$4
shift 4
mkdir -p "$build/findings"
bound=-max_total_time=$length
if [[ $length == *x ]]; then bound=-runs=${length%x}; fi

if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -x c++ - -fopenmp -fsanitize=fuzzer,address,undefined -o "$build/probe" 2>"$build/probe.txt"; then
  echo "skipped: clang++ cannot link a fuzz target (Debian: clang libclang-rt-14-dev libomp-14-dev): $(head -n 1 "$build/probe.txt")"
  exit 0
fi

cmake -S "$source" -B "$build" -G Ninja -D CMAKE_CXX_COMPILER=clang++ -D CMAKE_BUILD_TYPE=Debug -D CMAKE_UNITY_BUILD=ON -D NUMEMU_FUZZ=ON \
  -D NUMEMU_FUZZ_FLOORS="$floors" >"$build/configure.txt"
programs=("${@/%/_fuzz}")
cmake --build "$build" --target "${programs[@]:-fuzz}" >"$build/build.txt" || { tail -n 50 "$build/build.txt"; exit 1; }

failed=0
for program in "$build"/tests/fuzz/*_fuzz; do
  target=$(basename "$program" _fuzz)
  if (($#)) && [[ " $* " != *" $target "* ]]; then continue; fi
  mkdir -p "$build/inputs/$target"
  # Short inputs without leak checks after each and without weighing seeds by rarity: thousands a second instead of hundreds. Files of
  # whole networks are longer.
  longest=1024
  if [[ $target == onnx* ]]; then longest=4096; fi
  if "$program" "$bound" -max_len=$longest -entropic=0 -detect_leaks=0 -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$build/inputs/$target" "$source/tests/fuzz/corpus/$target" 2>"$build/$target.txt"; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.txt") inputs, no finding"
  else
    failed=1
    echo "$target: a finding, kept as $(echo "$build/findings/$target"-*)"
    tail -n 60 "$build/$target.txt"
  fi
done
exit $failed
