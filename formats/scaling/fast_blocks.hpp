// The vector path of quantize_blocks(): contiguous blocks with power-of-two or float32 scales, and
// those of NVFP4.
#pragma once
#include <cstdint>
#include <memory>

#include "formats/scaling/quantize_blocks.hpp"

namespace numemu::simd {
struct BlockRun;
struct Plan;
}  // namespace numemu::simd

namespace numemu {

/// Serves formats and conversions, or not; where it does, the bits are those of
/// quantize_blocks_reference(). Const functions may run in several threads at once.
class FastBlocks {
 public:
  explicit FastBlocks(const BlockQuantization&);
  ~FastBlocks();

  /// Whether the vector loops serve such tensors.
  bool serves(const BlockLayout&, float tensor_scale) const;

  /// The blocks [begin, end) of a tensor that serves() accepted; arrays and y as quantize_blocks(),
  /// of which codes or y must be there. `words`: random bits, one word for each element, instead of
  /// those of the conversion. Throws as quantize_blocks() does.
  BlockCounts quantize(const BlockLayout&, const float* x, float tensor_scale, std::int64_t begin,
                       std::int64_t end, const BlockArrays&, float* y,
                       const std::uint32_t* words = nullptr) const;

 private:
  struct Batch;
  void choose_powers(Batch&) const;
  void survey(Batch&) const;
  void choose_nvfp4(Batch&) const;
  void choose_float32(Batch&) const;
  bool has_exact_quotients(const Batch&) const;
  void convert(const Batch&) const;
  void convert_odd(const simd::BlockRun&) const;
  void replace(Batch&) const;

  BlockQuantization how_;
  std::unique_ptr<const simd::Plan> element_, scale_;
  bool float32_scales_ = false;
  /// Quotients are rounded to odd, then converted; else they have a loop of their own, which rounds
  /// to nearest and takes no scale far from 1.
  bool odd_ = false;
};

}  // namespace numemu

namespace numemu {

// The fast path of quantize_blocks() for contiguous blocks with real scales: those without a shift
// as arrays under one scale; with a minimum by quotients in float64, decided by the reference where
// one lies too near a boundary.

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
