// Uniform codes for a row of a table: the range between two ends, and how the ends are chosen
// (Guan et al., "Post-training 4-bit quantization on embedding tables", 2019).
#pragma once
#include <cstdint>
#include <span>

namespace numemu::policies {

/// The ends of the codes of a row, before the lower one is rounded to float16.
struct RowRange {
  float low = 0, high = 0;
};

/// Codes 0 .. 2^bits - 1 of a row: element = code * scale + bias, in float32. Bias and scale are
/// float16 numbers, saturated; the scale is 1 where both ends are one number.
class RowCodes {
 public:
  /// The lower end is rounded to float16 first; the scale reaches from there to the upper end.
  RowCodes(const RowRange&, int bits);
  float scale() const { return scale_; }
  float bias() const { return bias_; }
  /// round((x - bias) * (1 / scale)), ties to even, inside the codes; NaN gets the largest code.
  int code(float x) const;
  float value(int code) const { return static_cast<float>(code) * scale_ + bias_; }

 private:
  float scale_ = 1, inverse_ = 1, bias_ = 0, largest_;
};

/// [min, max] of the finite elements, [0, 0] without any.
RowRange asymmetric_range(std::span<const float> row);
/// [-max|x|, max|x|] of the finite elements.
RowRange symmetric_range(std::span<const float> row);

/// The square root of the sum of squared errors, added in order in float32.
float row_loss(std::span<const float> row, const RowRange&, int bits);

/// The greedy search for a range with less loss than [min, max].
struct GreedySearch {
  std::int64_t bins = 200;  ///< steps of (max - min) / bins
  double share = 0.16;      ///< of the range, that may be cut off on both sides together
  /// Of all ranges that were tried, the one with the least loss; else the best local optimum,
  /// [min, max] where the search met none.
  bool best_seen = false;
};

/// Cuts a step off the end where the loss is then less, the upper one on ties, until `share` is cut
/// off. A range whose loss is strictly less than both its successors' and than that of the optimum
/// before is a local optimum. In float32, in the order of PyTorch's choose_qparams_optimized, whose
/// bits it has. `local_optimum` tells whether there was one.
RowRange greedy_range(std::span<const float> row, int bits, const GreedySearch&,
                      bool* local_optimum = nullptr);

}  // namespace numemu::policies
