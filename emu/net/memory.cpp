#include "emu/net/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/net/run_context.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/error.hpp"

namespace numemu::net {

MemoryAccount& memory_account() { return RunScope::current().memory; }

std::int64_t MemoryAccount::left() const {
  return budget_ == kNoMemoryBound ? budget_ : std::max<std::int64_t>(0, budget_ - claimed_);
}

std::int64_t MemoryAccount::beside_held() const {
  if (budget_ == kNoMemoryBound || held_ == nullptr) return kNoMemoryBound;
  return std::max<std::int64_t>(0, budget_ - held());
}

void MemoryAccount::require(std::int64_t bytes, std::int64_t left, std::string_view what) const {
  if (bytes <= left) return;
  throw memory_error(
      fmt::format("{}: needs {}, but the memory budget of {} (--memory) has only {} left", what,
                  bytes_text(bytes), bytes_text(budget_), bytes_text(left)));
}

void require_beside_held(std::int64_t bytes, std::string_view what) {
  const MemoryAccount& account = memory_account();
  account.require(bytes, account.beside_held(), what);
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
  const std::int64_t threads = unit::threads_here();
  return element_count(samples) / samples[0] * std::min(threads, samples[0]);
}

MemoryClaim::MemoryClaim(std::int64_t elements, std::string_view what)
    : of_(memory_account()), bytes_(elements > kNoMemoryBound / 4 ? kNoMemoryBound : elements * 4) {
  of_.require(bytes_, of_.left(), what);
  of_.claimed_ += bytes_;
}

MemoryClaim::~MemoryClaim() { of_.claimed_ -= bytes_; }

}  // namespace numemu::net
