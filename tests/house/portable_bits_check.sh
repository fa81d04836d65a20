#!/usr/bin/env bash
# Flags that would change bits from one machine or compiler to another appear nowhere outside bench/.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  {
    sources '[^/]*\.cmake|CMakeLists\.txt' formats emu policies experiments cli bindings tests cmake
    find . -maxdepth 2 \( -path ./CMakeLists.txt -o -path ./CMakePresets.json -o -path ./numemu -o -path ./.ci/run \)
  } | xargs -r -d '\n' grep -HnE -e '^[^#]*-(march=native|mtune=native|ffast-math|Ofast|funsafe-math-optimizations|ffp-contract=(fast|on))'
  sources '[^/]*\.(cpp|hpp)' formats emu policies experiments cli bindings |
    xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*pragma[[:space:]]+(GCC[[:space:]]+optimize|STDC[[:space:]]+FP_CONTRACT[[:space:]]+ON|clang[[:space:]]+fp)'
}

good_flags() {
  put CMakeLists.txt 'set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")' '# never -ffast-math'
  put bench/CMakeLists.txt 'target_compile_options(eigen PRIVATE -march=native)'
}
bad_native() { put emu/unit/CMakeLists.txt 'target_compile_options(x PRIVATE -march=native)'; }
bad_fast() { put CMakePresets.json '{"CMAKE_CXX_FLAGS": "-ffast-math"}'; }
bad_script() { put numemu 'CXXFLAGS=-Ofast cmake'; }
bad_pragma() { put emu/net/a.cpp '#pragma GCC optimize("fast-math")'; }

run_check "$@"
