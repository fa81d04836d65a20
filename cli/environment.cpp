// What the program takes from its surroundings: folders, clock, threads.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/command.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

/// That a small machine may be asked for, too, to see that results do not depend on them.
constexpr int kFewThreads = 16;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

void add_threads(CLI::App& command) {
  command
      .add_option_function<int>(
          "--threads", [](int threads) { omp_set_num_threads(threads); },
          "Number of threads (the results do not depend on it)")
      ->check(whole_number(1, 1024))
      ->type_name("T");
}

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
  throw Error(fmt::format("{} threads cannot be started ({}): {} can, see --threads", wanted + 1,
                          error, threads.size() + 1));
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  constexpr std::size_t kShown = 40;  // characters of a wrong value
  return {[least, most](const std::string& text) {
            std::int64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [at, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && at == end && value >= least && value <= most)
              return std::string();
            return fmt::format("expected a whole number from {} to {}, not '{}{}'", least, most,
                               text.substr(0, kShown), text.size() > kShown ? "..." : "");
          },
          ""};
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
  throw Error("no cache folder: set NUMEMU_CACHE, XDG_CACHE_HOME or HOME");
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace numemu::cli
