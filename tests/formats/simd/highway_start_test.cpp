// Programs start without the clock measurement of Highway's library.
#include <dlfcn.h>

#include <cstdint>

#include "tests/catch.hpp"

namespace hwy::platform {
__attribute__((visibility("default"))) std::uint64_t TimerResolution();
}

TEST_CASE("highway: its library finds our function in the program before its own", "[fast]") {
  CHECK(hwy::platform::TimerResolution() == 1);
  // Exported: what the library's calls are bound to as well.
  void* const bound = dlsym(RTLD_DEFAULT, "_ZN3hwy8platform15TimerResolutionEv");
  CHECK(bound == reinterpret_cast<void*>(&hwy::platform::TimerResolution));
  // The library still has a function of that name, which ours replaces.
  CHECK(dlsym(RTLD_NEXT, "_ZN3hwy8platform15TimerResolutionEv") != nullptr);
}
