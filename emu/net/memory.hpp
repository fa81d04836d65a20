// The memory budget: bytes that networks may hold at once, checked before allocation.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Bytes for parameters, activations and what operators and numerics need beside them. There is no
/// bound until it is set.
void set_memory_budget(std::int64_t bytes);
std::int64_t memory_budget();
/// The budget less all claims; never negative.
std::int64_t memory_left();

/// "700 MiB", "1.5 GiB"
std::string bytes_text(std::int64_t bytes);

/// Counts float32 elements that stay against the budget for as long as it lives. Throws Error
/// "WHAT: ..." where they do not fit.
class MemoryClaim {
 public:
  MemoryClaim(std::int64_t elements, std::string_view what);
  ~MemoryClaim();
  MemoryClaim(const MemoryClaim&) = delete;
  MemoryClaim& operator=(const MemoryClaim&) = delete;

 private:
  std::int64_t bytes_;
};

/// Elements of the samples that threads work on at the same time, one sample each.
std::int64_t images_at_once(const Shape& samples);

/// From now on what is allocated fits the memory budget beside the bytes that `held` counts: data
/// sets, references and networks. Null, as at first: they are not counted.
void count_held_memory(std::int64_t (*held)());

/// The sum of all claims (memory.hpp).
std::int64_t memory_claimed();

/// What is held now; 0 where nothing is counted.
std::int64_t memory_held();

/// The budget less what is held; never negative. No bound where none is set or nothing is counted.
std::int64_t memory_beside_held();

/// Throws Error "WHAT: needs ..." where so many bytes more do not fit.
void require_beside_held(std::int64_t bytes, std::string_view what);

}  // namespace numemu::net
