// The memory budget of a run: bytes that networks may hold at once, checked before allocation.
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "emu/net/tensor.hpp"

namespace numemu::net {

inline constexpr std::int64_t kNoMemoryBound = std::numeric_limits<std::int64_t>::max();

/// The budget: bytes for parameters, activations and what operators and numerics need beside them;
/// and what is claimed of it.
class MemoryAccount {
 public:
  /// Where `counted` gives what is allocated already (data sets, references and networks), further
  /// data fit the budget beside it.
  void set_budget(std::int64_t bytes, std::int64_t (*counted)() = nullptr) {
    budget_ = bytes;
    held_ = counted;
  }
  std::int64_t budget() const { return budget_; }
  std::int64_t claimed() const { return claimed_; }
  /// The budget less all claims; never negative.
  std::int64_t left() const;
  /// What is held now; 0 where nothing is counted.
  std::int64_t held() const { return held_ == nullptr ? 0 : held_(); }
  /// The budget less what is held; never negative. No bound where nothing is counted.
  std::int64_t beside_held() const;
  /// Throws Error "WHAT: needs ..." where so many bytes are more than `left`.
  void require(std::int64_t bytes, std::int64_t left, std::string_view what) const;

 private:
  friend class MemoryClaim;
  std::int64_t budget_ = kNoMemoryBound;
  std::int64_t (*held_)() = nullptr;
  std::atomic<std::int64_t> claimed_ = 0;
};

/// Of the run of this thread (run_context.hpp).
MemoryAccount& memory_account();
inline std::int64_t memory_left() { return memory_account().left(); }
/// Throws Error "WHAT: needs ..." where so many bytes more do not fit beside what is held.
void require_beside_held(std::int64_t bytes, std::string_view what);

/// "700 MiB", "1.5 GiB"
std::string bytes_text(std::int64_t bytes);

/// Counts float32 elements that stay against the budget of this thread's run for as long as it
/// lives. Throws Error "WHAT: ..." where they do not fit.
class MemoryClaim {
 public:
  MemoryClaim(std::int64_t elements, std::string_view what);
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

 private:
  MemoryAccount& of_;
  std::int64_t bytes_;
};

/// Elements of the samples that threads work on at the same time, one sample each.
std::int64_t images_at_once(const Shape& samples);

}  // namespace numemu::net
