// Aligned buffers that a thread keeps for its next product: fresh pages cost as much as packing.
#pragma once
#include <hwy/aligned_allocator.h>

#include <cstdint>

namespace numemu::unit {

/// Uninitialised bytes, aligned for vectors. Release them on the thread that allocated them.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t bytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;

  std::uint8_t* get() const { return memory_.get(); }

 private:
  using Memory = hwy::AlignedFreeUniquePtr<std::uint8_t[]>;
  struct Kept;
  static Kept& kept();

  Memory memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace numemu::unit
