// The memory budget of the process and what is claimed of it.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/memory.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

std::atomic<std::int64_t> budget = kNoBound, claimed = 0;
std::atomic<std::int64_t (*)()> held = nullptr;

void require(std::int64_t bytes, std::int64_t left, std::string_view what) {
  if (bytes <= left) return;
  throw Error(fmt::format("{}: needs {}, but the memory budget of {} (--memory) has only {} left",
                          what, bytes_text(bytes), bytes_text(memory_budget()), bytes_text(left)));
}

}  // namespace

void set_memory_budget(std::int64_t bytes) { budget = bytes; }

std::int64_t memory_budget() { return budget; }

std::int64_t memory_claimed() { return claimed; }

std::int64_t memory_left() {
  const std::int64_t bytes = budget;
  return bytes == kNoBound ? kNoBound : std::max<std::int64_t>(0, bytes - claimed);
}

std::string bytes_text(std::int64_t bytes) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  const auto count = static_cast<double>(bytes);
  return count >= kGiB   ? fmt::format("{:.1f} GiB", count / kGiB)
         : count >= kMiB ? fmt::format("{:.1f} MiB", count / kMiB)
                         : fmt::format("{} bytes", bytes);
}

std::int64_t images_at_once(const Shape& samples) {
  if (samples.empty() || samples[0] < 1) return 0;
  const std::int64_t threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  return element_count(samples) / samples[0] * std::min(threads, samples[0]);
}

MemoryClaim::MemoryClaim(std::int64_t elements, std::string_view what)
    : bytes_(elements > kNoBound / 4 ? kNoBound : elements * 4) {
  require(bytes_, memory_left(), what);
  claimed += bytes_;
}

MemoryClaim::~MemoryClaim() { claimed -= bytes_; }

void count_held_memory(std::int64_t (*counted)()) { held = counted; }

std::int64_t memory_held() {
  std::int64_t (*const counted)() = held;
  return counted == nullptr ? 0 : counted();
}

std::int64_t memory_beside_held() {
  const std::int64_t bytes = budget;
  if (bytes == kNoBound || held.load() == nullptr) return kNoBound;
  return std::max<std::int64_t>(0, bytes - memory_held());
}

void require_beside_held(std::int64_t bytes, std::string_view what) {
  require(bytes, memory_beside_held(), what);
}

}  // namespace numemu::net
