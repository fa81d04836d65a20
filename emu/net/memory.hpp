// The memory budget: bytes that networks may hold at once, checked before allocation.
#pragma once
#include <cstdint>
#include <span>
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

/// Elements beside inputs, outputs and their gradients.
struct OperatorMemory {
  std::int64_t forward = 0;   ///< while forward runs
  std::int64_t backward = 0;  ///< while backward runs
  std::int64_t context = 0;   ///< left by forward for backward
};

/// Elements of the samples that threads work on at the same time, one sample each.
std::int64_t images_at_once(const Shape& samples);

/// An operator that needs such memory in the order of its tensors is one of these, too.
class HoldsMemory {
 public:
  virtual ~HoldsMemory() = default;
  virtual OperatorMemory memory(std::span<const Shape> inputs) const = 0;
};

}  // namespace numemu::net
