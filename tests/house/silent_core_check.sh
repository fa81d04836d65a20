#!/usr/bin/env bash
# Only the program prints, exits or reads the clock; the floors below it return values or throw.
# shellcheck disable=SC2016
source "$(dirname "${BASH_SOURCE[0]}")/house.sh"

check() {
  sources '[^/]*\.(cpp|hpp)' formats emu policies experiments api | xargs -r -d '\n' awk '
    {
      code = $0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
      sub(/\/\/.*/, "", code)
      code = " " code
    }
    code ~ /std::(cout|cerr|clog|print)|fmt::print|[^a-zA-Z_0-9](v?f?printf|puts|putchar) *\(/ { print FILENAME ":" FNR ": prints" }
    code ~ /[^a-zA-Z_0-9.>](exit|_Exit|quick_exit|abort|terminate) *\(/ { print FILENAME ":" FNR ": exits" }
    code ~ /(system|steady|high_resolution|file|utc)_clock|(clock_gettime|gettimeofday|omp_get_wtime) *\(|std::(time|clock) *\(|[^a-zA-Z_0-9.>:]time *\( *(0|NULL|nullptr|&)/ {
      print FILENAME ":" FNR ": reads the clock"
    }
    code ~ /std::random_device|<random>|[^a-zA-Z_0-9.>:]s?rand *\(/ { print FILENAME ":" FNR ": draws unkeyed random bits" }'
}

good_core() {
  put formats/a.cpp '// printf("x") would print; exit(1) would end it' 'std::snprintf(buffer, n, "%a", x);' 'throw Error("exit (2) printf(");' \
    'auto runtime = time(step);' 'graph.exit(node);'
  put cli/a.cpp 'std::cout << 1; std::exit(2);'
}
bad_stream() { put formats/a.cpp 'std::cerr << x;'; }
bad_printf() { put emu/net/a.cpp 'std::printf("%d", x);'; }
bad_fprintf() { put emu/net/a.cpp '  fprintf(stderr, "x");'; }
bad_fmt() { put experiments/a.cpp 'fmt::print("x");'; }
bad_api() { put api/a.cpp 'fmt::print(text);'; }
bad_exit() { put policies/a.cpp 'if (bad) std::exit(2);'; }
bad_abort() { put emu/unit/a.hpp 'abort();'; }
bad_clock() { put experiments/engine/a.cpp 'auto t = std::chrono::steady_clock::now();'; }
bad_time() { put emu/net/a.cpp 'seed = time(nullptr);'; }
bad_random() { put emu/net/a.cpp 'std::random_device device;'; }

run_check "$@"
