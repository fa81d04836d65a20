// The main of every benchmark: what it throws becomes one line and status 1.
#pragma once
#include <cstdio>
#include <exception>

namespace numemu::bench {

inline int run_main(const char* name, int (*run)(int, char**), int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace numemu::bench
