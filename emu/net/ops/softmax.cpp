#include "emu/net/ops/softmax.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {

namespace {

/// A tensor [outer, length, inner]: lines of `length` elements, `inner` apart.
struct SoftmaxLines {
  std::int64_t outer = 1, length = 1, inner = 1;

  /// Throws Error naming `what` when `shape` has no such axis or no elements along it.
  static SoftmaxLines along(std::string_view what, const Shape& shape, std::int64_t axis);

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
void SoftmaxLines::for_each(const float* x, const float* y, float* out, const Body& body) const {
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

SoftmaxLines SoftmaxLines::along(std::string_view what, const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank || shape[place] == 0) {
    throw Error(std::string(what) + ": expected an input with elements along axis " +
                std::to_string(axis) + ", got " + to_string(shape));
  }
  SoftmaxLines lines;
  lines.length = shape[place];
  for (std::int64_t i = 0; i < place; ++i) lines.outer *= shape[i];
  for (std::int64_t i = place + 1; i < rank; ++i) lines.inner *= shape[i];
  return lines;
}

}  // namespace

Shape Softmax::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("softmax: expected one input, got " + std::to_string(inputs.size()));
  SoftmaxLines::along(kind(), inputs[0], axis_);
  return inputs[0];
}

void Softmax::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const SoftmaxLines lines = SoftmaxLines::along(kind(), output.shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(inputs[0]->data.data(), nullptr, output.data.data(),
                 [=](const float* a, const float*, float* b) {
                   const double maximum = line_maximum(n, a);
                   std::vector<double> powers(static_cast<std::size_t>(n));
                   double* const e = powers.data();
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i) e[i] = core::exp(a[i] - maximum);
                   const double sum = line_sum(n, [=](std::int64_t i) { return e[i]; });
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     b[i] = neutral(static_cast<float>(e[i] / sum));
                 });
}

void Softmax::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const SoftmaxLines lines = SoftmaxLines::along(kind(), back.output->shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(back.output->data.data(), back.grad_output.data.data(),
                 back.grad_inputs[0].data.data(), [=](const float* y, const float* g, float* dx) {
                   const double dot = line_sum(
                       n, [=](std::int64_t i) { return static_cast<double>(g[i]) * y[i]; });
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     dx[i] = neutral(static_cast<float>(y[i] * (g[i] - dot)));
                 });
}

Shape LogSoftmax::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("log_softmax: expected one input, got " + std::to_string(inputs.size()));
  SoftmaxLines::along(kind(), inputs[0], axis_);
  return inputs[0];
}

void LogSoftmax::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const SoftmaxLines lines = SoftmaxLines::along(kind(), output.shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(inputs[0]->data.data(), nullptr, output.data.data(),
                 [=](const float* a, const float*, float* b) {
                   const double maximum = line_maximum(n, a);
                   const double sum =
                       line_sum(n, [=](std::int64_t i) { return core::exp(a[i] - maximum); });
                   const double shift = core::log(sum);
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     b[i] = neutral(static_cast<float>((a[i] - maximum) - shift));
                 });
}

void LogSoftmax::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const SoftmaxLines lines = SoftmaxLines::along(kind(), back.output->shape, axis_);
  const std::int64_t n = lines.length;
  lines.for_each(back.output->data.data(), back.grad_output.data.data(),
                 back.grad_inputs[0].data.data(), [=](const float* y, const float* g, float* dx) {
                   const double sum = line_sum(n, [=](std::int64_t i) { return g[i]; });
#pragma omp simd
                   for (std::int64_t i = 0; i < n; ++i)
                     dx[i] = neutral(static_cast<float>(g[i] - core::exp(y[i]) * sum));
                 });
}

}  // namespace numemu::net
