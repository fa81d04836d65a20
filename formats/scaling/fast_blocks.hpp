// The vector path of quantize_blocks(): contiguous blocks of elements of at most 8 bits without a
// shift, under powers of two, or under real scales that follow from the largest magnitude.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/scaling/quantize_blocks.hpp"

namespace numemu::simd {
struct BlockRun;
struct Plan;
}  // namespace numemu::simd

namespace numemu {

class ElementTable;

/// Serves formats and conversions, or not; where it does, the bits are those of
/// quantize_blocks_reference(). Const functions may run in several threads at once.
class FastBlocks {
 public:
  explicit FastBlocks(const BlockQuantization&);
  ~FastBlocks();

  /// Whether the vector loops serve such tensors.
  bool serves(const BlockLayout&, float tensor_scale) const;

  /// The blocks [begin, end) of a tensor that serves() accepted; arrays and y as quantize_blocks(),
  /// which may all be null where no flags are counted. `words`: random bits, one word for each
  /// element, instead of those of the conversion. Throws as quantize_blocks() does.
  BlockCounts quantize(const BlockLayout&, const float* x, float tensor_scale, std::int64_t begin,
                       std::int64_t end, const BlockArrays&, float* y,
                       const std::uint32_t* words = nullptr) const;

 private:
  struct Batch;
  bool plan_elements();
  bool plan_scales();
  void survey(Batch&) const;
  void choose_powers(Batch&) const;
  void choose_real(Batch&) const;
  ScaleRequest request(const Batch&, std::int64_t block) const;
  /// The scales under which the largest magnitudes land on that element.
  void scales_for(const Batch&, double element, float* scales) const;
  bool round_scales(const Batch&, double element, float* scales) const;
  void set_scales(Batch&, const float* scales) const;
  /// The squared errors of blocks under the scales of the batch, and how far they may be off.
  void errors(const Batch&, double* sums, double* bounds) const;
  bool has_exact_quotients(const Batch&) const;
  void convert(Batch&) const;
  void run(const Batch&, const simd::BlockRun&) const;
  void run_odd(const simd::BlockRun&) const;
  void run_table(const Batch&, const simd::BlockRun&) const;
  void replace(Batch&) const;

  BlockQuantization how_;
  /// Elements are converted by vector loops, or by a table: one of the two is there.
  std::unique_ptr<const simd::Plan> element_;
  const ElementTable* table_ = nullptr;
  std::unique_ptr<const simd::Plan> scale_;  ///< of real scales other than float32
  std::vector<double> lands_on_;  ///< the rule's; none: it is asked for the scale of each block
  float empty_ = 1;               ///< the scale of blocks of zeros
  std::uint8_t zero_ = 0;         ///< the code of elements of NaN blocks
  /// Quotients are rounded to odd, then converted; else they have a loop of their own, which rounds
  /// to nearest and takes no scale far from 1.
  bool odd_ = false;
  bool narrow_ = false;  ///< no scale of a tensor that serves() accepts is far from 1
  bool served_ = false;
};

}  // namespace numemu
