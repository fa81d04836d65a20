#include "policies/table/base/row_range.hpp"

#include <algorithm>
#include <cmath>

#include "formats/quantize.hpp"

namespace numemu::policies {
namespace {

float as_float16(float x) {
  static const Format& format = find_format("float16");
  Conversion conversion;
  conversion.format = &format;
  float rounded = 0;
  quantize_values(conversion, &x, 1, 1.0f, &rounded);
  return rounded;
}

}  // namespace

RowCodes::RowCodes(const RowRange& range, int bits)
    : bias_(as_float16(range.low)), largest_(static_cast<float>((1 << bits) - 1)) {
  const float reach = range.high - bias_;
  const bool constant = reach == 0 || range.high == range.low;
  scale_ = constant ? 1.0f : as_float16(reach / largest_);
  inverse_ = scale_ == 0 ? 1.0f : 1.0f / scale_;
}

int RowCodes::code(float x) const {
  const float rounded = std::nearbyint((x - bias_) * inverse_);
  if (!(rounded < largest_)) return static_cast<int>(largest_);
  return rounded > 0 ? static_cast<int>(rounded) : 0;
}

RowRange asymmetric_range(std::span<const float> row) {
  RowRange range;
  bool any = false;
  for (const float x : row) {
    if (!std::isfinite(x)) continue;
    range.low = any ? std::min(range.low, x) : x;
    range.high = any ? std::max(range.high, x) : x;
    any = true;
  }
  return range;
}

RowRange symmetric_range(std::span<const float> row) {
  const RowRange range = asymmetric_range(row);
  const float largest = std::max(-range.low, range.high);
  return {-largest, largest};
}

float row_loss(std::span<const float> row, const RowRange& range, int bits) {
  const RowCodes codes(range, bits);
  float sum = 0;
  for (const float x : row) {
    if (!std::isfinite(x)) continue;
    const float error = x - codes.value(codes.code(x));
    sum += error * error;
  }
  return std::sqrt(sum);
}

RowRange greedy_range(std::span<const float> row, int bits, const GreedySearch& search,
                      bool* local_optimum) {
  const RowRange whole = asymmetric_range(row);
  const float step = (whole.high - whole.low) / static_cast<float>(search.bins);
  // The share is a float32 and what remains of the bins a whole number, as in the reference.
  const auto left = static_cast<std::int64_t>(static_cast<double>(search.bins) *
                                              (1.0 - double{static_cast<float>(search.share)}));
  const float least = static_cast<float>(left) * step;
  RowRange now = whole, best = whole, seen = whole;
  float loss = row_loss(row, whole, bits), best_loss = loss, seen_loss = loss;
  bool found = false;
  while (now.low + least < now.high) {
    const RowRange up{now.low + step, now.high}, down{now.low, now.high - step};
    const float loss_up = row_loss(row, up, bits), loss_down = row_loss(row, down, bits);
    // The whole range is one too, though its loss is not below that of the optimum before.
    const bool optimum = loss < loss_up && loss < loss_down;
    found = found || optimum;
    if (optimum && loss < best_loss) {
      best = now;
      best_loss = loss;
    }
    const RowRange next = loss_up < loss_down ? up : down;
    if (next.low == now.low && next.high == now.high) break;  // the step is below an ulp
    now = next;
    loss = std::min(loss_up, loss_down);
    if (loss < seen_loss) {
      seen = now;
      seen_loss = loss;
    }
  }
  if (local_optimum != nullptr) *local_optimum = found;
  return search.best_seen ? seen : best;
}

}  // namespace numemu::policies
