#!/usr/bin/env bash
# What would change bits from one machine, compiler or C library to another appears nowhere outside bench/ and tests:
# flags, pragmas, functions that a library rounds as it likes (formats/portable/math.hpp has them), long double.
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  {
    sources '[^/]*\.cmake|CMakeLists\.txt' formats emu policies experiments api cli bindings tests cmake
    find . -maxdepth 2 \( -path ./CMakeLists.txt -o -path ./CMakePresets.json -o -path ./numemu -o -path ./.ci/run \)
  } | xargs -r -d '\n' grep -HnE -e '^[^#]*-(march=native|mtune=native|ffast-math|Ofast|funsafe-math-optimizations|ffp-contract=(fast|on))'
  sources '[^/]*\.(cpp|hpp)' formats emu policies experiments api cli bindings |
    xargs -r -d '\n' grep -HnE '^[[:space:]]*#[[:space:]]*pragma[[:space:]]+(GCC[[:space:]]+optimize|STDC[[:space:]]+FP_CONTRACT[[:space:]]+ON|clang[[:space:]]+fp)'
  local rounded='a?(sin|cos|tan|sinh|cosh|tanh)|atan2|exp|exp2|expm1|log|log2|log10|log1p|pow|hypot|cbrt|[lt]gamma|erfc?'
  sources '[^/]*\.(cpp|hpp)' formats emu policies experiments api cli bindings |
    xargs -r -d '\n' grep -HnE "^[^\"/]*(\bstd::($rounded|[a-z_]+_distribution|generate_canonical|beta|complex)\b|\blong double\b|#include <boost/math/(special_functions|distributions))" |
    grep -vE '^[^:]*:[0-9]+: *//'
}

good_flags() {
  put CMakeLists.txt 'set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")' '# never -ffast-math'
  put bench/CMakeLists.txt 'target_compile_options(eigen PRIVATE -march=native)'
}
bad_native() { put emu/unit/CMakeLists.txt 'target_compile_options(x PRIVATE -march=native)'; }
bad_fast() { put CMakePresets.json '{"CMAKE_CXX_FLAGS": "-ffast-math"}'; }
bad_script() { put numemu 'CXXFLAGS=-Ofast cmake'; }
bad_pragma() { put emu/net/a.cpp '#pragma GCC optimize("fast-math")'; }
good_functions() {
  put emu/a.cpp 'double x = portable::exp(std::sqrt(y)) + std::ldexp(z, 2);  // std::exp' '/// not std::exp' 'log("std::exp")'
}
bad_function() { put emu/a.cpp 'double x = 2 * std::log1p(y);'; }
bad_long() { put emu/a.cpp 'long double x = y;'; }
bad_normal() { put policies/a.hpp 'std::normal_distribution<double> normal;'; }
bad_boost() { put emu/a.cpp '#include <boost/math/distributions/beta.hpp>'; }

run_check "$@"
