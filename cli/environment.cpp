// Access to the environment of the program: folders, clock, threads.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/command.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

/// Allowed on a small machine too, to check that results do not depend on the number of threads.
constexpr int kFewThreads = 16;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Throws Error where the system refuses the threads that will be used; OpenMP would end the
/// program.
void require_threads() {
  // Also of OMP_NUM_THREADS.
  omp_set_num_threads(std::min(omp_get_max_threads(), std::max(omp_get_num_procs(), kFewThreads)));
  const int wanted = omp_get_max_threads() - 1;  // beside this one
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(wanted));
  std::atomic<bool> go = false;
  std::string error;
  try {
    for (int i = 0; i < wanted; ++i) threads.emplace_back([&go] { go.wait(false); });
  } catch (const std::system_error& failed) {
    error = failed.code().message();
  }
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) thread.join();
  if (error.empty()) return;
  throw usage_error(fmt::format("cannot start {} threads ({}), only {}; see --threads", wanted + 1,
                                error, threads.size() + 1));
}

}  // namespace

void add_threads(Command& command) {
  auto threads = std::make_shared<std::optional<std::int64_t>>();
  command.option("--threads T", *threads, "Number of threads (the results do not depend on it)")
      .whole(1, 1024);
  command.before_run([threads] {
    if (*threads) omp_set_num_threads(static_cast<int>(**threads));
    require_threads();
  });
}

std::string data_folder() {
  const std::string chosen = variable("NUMEMU_DATA");
  return chosen.empty() ? NUMEMU_DATA_DIR : chosen;
}

std::string cache_folder() {
  const std::string chosen = variable("NUMEMU_CACHE"), xdg = variable("XDG_CACHE_HOME"),
                    home = variable("HOME");
  if (!chosen.empty()) return chosen;
  if (!xdg.empty()) return xdg + "/numemu";
  if (!home.empty()) return home + "/.cache/numemu";
  return "/dev/null/numemu";  // no folder can be made there: everything goes on without a cache
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace numemu::cli
