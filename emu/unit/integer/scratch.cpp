// Keeps released buffers per thread, up to a limit, and hands out the smallest that is enough.
#include "emu/unit/integer/scratch.hpp"

#include <utility>
#include <vector>

namespace numemu::unit {
namespace {

/// As much as two products of 1024 x 1024 digits need; more goes back to the system.
constexpr std::int64_t kKeptBytes = std::int64_t{16} << 20;

}  // namespace

struct Scratch::Kept {
  std::vector<std::pair<std::int64_t, Memory>> buffers;
  std::int64_t bytes = 0;
};

Scratch::Kept& Scratch::kept() {
  thread_local Kept buffers;
  return buffers;
}

Scratch::Scratch(std::int64_t bytes) : bytes_(bytes) {
  Kept& all = kept();
  auto best = all.buffers.end();
  for (auto buffer = all.buffers.begin(); buffer != all.buffers.end(); ++buffer) {
    if (buffer->first < bytes) continue;
    if (best == all.buffers.end() || buffer->first < best->first) best = buffer;
  }
  if (best == all.buffers.end()) {
    memory_ = hwy::AllocateAligned<std::uint8_t>(static_cast<std::size_t>(bytes));
    return;
  }
  std::swap(*best, all.buffers.back());
  bytes_ = all.buffers.back().first;
  memory_ = std::move(all.buffers.back().second);
  all.buffers.pop_back();
  all.bytes -= bytes_;
}

Scratch::~Scratch() {
  if (memory_ == nullptr) return;
  Kept& all = kept();
  if (all.bytes + bytes_ > kKeptBytes) return;
  all.bytes += bytes_;
  all.buffers.emplace_back(bytes_, std::move(memory_));
}

Scratch::Scratch(Scratch&& other) noexcept
    : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace numemu::unit
