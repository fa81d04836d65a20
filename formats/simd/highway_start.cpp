// Highway's shared library times its clock whenever a program that is linked with it starts: 2 ms
// of each command, for benchmarks that nothing here runs. A program's own function comes before
// that of a library.
#include <cstdint>

namespace hwy::platform {

// Seen from outside: the library looks for it in the program.
__attribute__((visibility("default"))) std::uint64_t TimerResolution();
std::uint64_t TimerResolution() { return 1; }

}  // namespace hwy::platform
