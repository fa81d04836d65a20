// The fast path of quantize_blocks() for contiguous blocks with real scales that fast_blocks.hpp
// does not serve: those without a shift as arrays under one scale; with a minimum by quotients in
// float64, decided by the reference where one lies too near a boundary.
#pragma once
#include <cstdint>

#include "formats/scaling/quantize_blocks.hpp"

namespace numemu {

/// Encodes elements of a block under a given scale, with the bits of encode_elements().
class FastReal {
 public:
  explicit FastReal(const BlockQuantization&);

  /// Whether it serves the block format and the conversion.
  bool serves() const { return serves_; }
  /// As encode_elements(), of a block of a layout that x belongs to.
  FlagCounts encode(const BlockScale&, const float* x, const BlockElements&, std::int64_t begin,
                    std::int64_t end, void* codes, float* y) const;

 private:
  FlagCounts encode_plain(float scale, const float* x, std::int64_t first, std::int64_t count,
                          void* codes, float* y) const;

  const BlockFormat& format_;
  Conversion element_;
  bool serves_ = false;
};

}  // namespace numemu
