// Shared by softmax and log_softmax: the axis, and lines along it.
#pragma once
#include <algorithm>
#include <limits>
#include <string_view>

#include "emu/net/ops/float64_sums.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// A tensor [outer, length, inner]: lines of `length` elements, `inner` apart.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;

  /// Throws Error naming `what` when `shape` has no such axis or no elements along it.
  static Lines along(std::string_view what, const Shape& shape, std::int64_t axis);

  /// body(x, y, out) for every line of up to two inputs (y may be null) and the output, each
  /// contiguous: lines that are not are copied.
  template <class Body>
  void for_each(const float* x, const float* y, float* out, const Body& body) const;
};

/// The largest element; NaN may give any element.
inline float line_maximum(std::int64_t n, const float* x) {
  float maximum = x[0];
#pragma omp simd reduction(max : maximum)
  for (std::int64_t i = 0; i < n; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  // clang's lanes start at the least finite number, so that a line of -infinity gives that.
  if (maximum == std::numeric_limits<float>::lowest()) return *std::max_element(x, x + n);
  return maximum;
}

template <class Body>
void Lines::for_each(const float* x, const float* y, float* out, const Body& body) const {
  for_each_row(outer * inner, length, [&](std::int64_t line) {
    if (inner == 1) {
      body(x + line * length, y == nullptr ? nullptr : y + line * length, out + line * length);
      return;
    }
    const std::int64_t corner = line / inner * length * inner + line % inner;
    std::vector<float> buffer(static_cast<std::size_t>(3 * length));
    float* const a = buffer.data();
    float* const b = a + length;
    float* const c = b + length;
    for (std::int64_t i = 0; i < length; ++i) {
      a[i] = x[corner + i * inner];
      if (y != nullptr) b[i] = y[corner + i * inner];
    }
    body(a, b, c);
    for (std::int64_t i = 0; i < length; ++i) out[corner + i * inner] = c[i];
  });
}

}  // namespace numemu::net
