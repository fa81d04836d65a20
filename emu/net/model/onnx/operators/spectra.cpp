// ONNX's windows and Fourier transforms: products with constant matrices of sines and cosines.
#include <fmt/format.h>

#include "emu/net/math.hpp"
#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p+2;
constexpr std::int64_t kLongest = 1 << 14;

std::int64_t whole(const NodeImport& node, std::size_t index) {
  return node.one_integer(index, fmt::format("expected one number as input {}", index));
}

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) for i = 0, 1, ..; n is one less where the window is
/// not periodic.
OnnxValues window(const NodeImport& node) {
  struct Row {
    std::string_view op;
    double a[3];
  };
  constexpr Row kWindows[] = {{"BlackmanWindow", {0.42, 0.5, 0.08}},
                              {"HammingWindow", {25.0 / 46, 21.0 / 46, 0}},
                              {"HannWindow", {0.5, 0.5, 0}}};
  const Row& row = *std::ranges::find(kWindows, node->op_type, &Row::op);
  const std::int64_t size = whole(node, 0);
  if (size < 1 || size > (1 << 24)) throw Error("expected a size from 1 to 2^24");
  const auto n = static_cast<double>(
      std::max<std::int64_t>(1, size - (node->integer_or("periodic", 1) != 0 ? 0 : 1)));
  node.hold(6 * size);
  return {value_of(real_numbers({size}, [&](std::int64_t i) {
    const auto angle = static_cast<float>(kTwoPi * static_cast<double>(i) / n);
    return static_cast<float>(row.a[0] - row.a[1] * cos(angle) + row.a[2] * cos(2 * angle));
  }))};
}

/// x [.., n, parts] with real numbers (1 part) or complex ones (2) -> [.., bins, 2]: the sums of
/// x[t] e^(-2 pi i t k / length), or with the opposite sign over length.
OnnxValue transformed(const NodeImport& node, const OnnxValue& x, std::int64_t length, bool inverse,
                      bool half) {
  const std::size_t rank = x.rank();
  const std::int64_t n = x.shapes[0][rank - 2], parts = x.shapes[0][rank - 1];
  const std::int64_t bins = half ? length / 2 + 1 : length;
  if ((parts != 1 && parts != 2) || n > kLongest || length < 1 || length > kLongest)
    throw Error("expected at most 2^14 real or complex numbers, two parts on the last axis");
  node.hold(bins * 2 * n * parts);
  Tensor weight({bins * 2, n * parts});
  for (std::int64_t k = 0; k < bins; ++k) {
    for (std::int64_t t = 0; t < std::min(n, length); ++t) {
      const auto angle = static_cast<float>(kTwoPi * static_cast<double>(t * k % length) /
                                            static_cast<double>(length));
      const double factor = inverse ? 1 / static_cast<double>(length) : 1;
      const auto c = static_cast<float>(factor * cos(angle)),
                 s = static_cast<float>((inverse ? factor : -factor) * sin(angle));
      float* const real = &weight.data[static_cast<std::size_t>(2 * k * n * parts + t * parts)];
      float* const imaginary = real + n * parts;
      real[0] = c;
      imaginary[0] = s;
      if (parts == 1) continue;
      real[1] = -s;
      imaginary[1] = c;
    }
  }
  std::vector<Extent> flat = x.extents();
  flat.resize(rank - 1);
  flat.back() = {n * parts};
  auto op = std::make_unique<Linear>(std::move(weight), false);
  const OnnxValue y = node.add(node.name(), std::move(op), {node.reshape_to(x, flat)}, false);
  flat.back() = {bins};
  flat.push_back({2});
  return node.reshape_to(y, flat);
}

OnnxValues fourier(const NodeImport& node) {
  OnnxValue x = node.plain();
  if (x.rank() < 2) throw Error("expected [.., n, parts]");
  const std::int64_t given = node.has_input(2) ? whole(node, 2) : node->integer_or("axis", 1);
  const bool inverse = node->integer_or("inverse", 0) != 0,
             half = node->integer_or("onesided", 0) != 0;
  if (inverse && half) throw Error("an inverse transform of half of the bins is not supported");
  const std::int64_t axis = axis_in(given, x.rank()), last = std::ssize(x.shapes[0]) - 2;
  if (axis > last) throw Error("expected an axis before that of the parts");
  refuse_batch(x, axis, "a transform over");
  const std::int64_t length = node.has_input(1) ? whole(node, 1) : x.extent(axis);
  Ints order = ascending(x.rank());
  std::swap(order[static_cast<std::size_t>(axis)], order[static_cast<std::size_t>(last)]);
  const auto turned = [&](const OnnxValue& value) {
    return axis == last ? value : node.add<Transpose>({value}, false, order);
  };
  return {turned(transformed(node, turned(x), length, inverse, half))};
}

/// Transforms of windows that begin every few steps of a signal [n, length, 1].
OnnxValues short_fourier(const NodeImport& node) {
  const OnnxValue x = node.plain();
  if (x.rank() != 3 || x.shapes[0][2] != 1) throw Error("expected a real signal [n, length, 1]");
  refuse_batch(x, 1, "windows of");
  const std::int64_t step = whole(node, 1), steps = x.shapes[0][1];
  std::int64_t length = 0;
  if (node.has_input(2)) {
    const std::vector<Extent> extents = node.input(2).extents();
    if (extents.size() != 1) throw Error("expected the window as a vector");
    length = extents[0].value;
  }
  if (node.has_input(3)) length = whole(node, 3);
  if (step < 1 || length < 1 || length > std::min(steps, kLongest))
    throw Error(
        "expected a step of at least 1 and windows of at most 2^14 steps, within the signal");
  const std::int64_t count = (steps - length) / step + 1;
  node.hold(2 * count * length);
  Ints places;
  for (std::int64_t i = 0; i < count * length; ++i)
    places.push_back(i / length * step + i % length);
  OnnxValue frames = node.add<Gather>({x}, false, 1, std::move(places), Shape{count, length});
  if (node.has_input(2)) {
    const OnnxValue weights = node.add<Reshape>({node.plain(2)}, false, Shape{length, 1});
    frames = node.binary("multiply", frames, weights);
  }
  return {transformed(node, frames, length, false, node->integer_or("onesided", 1) != 0)};
}

}  // namespace

const OnnxHandlers& onnx_spectra_handlers() {
  static const OnnxHandlers kHandlers = {
      {"BlackmanWindow", window}, {"DFT", fourier},        {"HammingWindow", window},
      {"HannWindow", window},     {"STFT", short_fourier},
  };
  return kHandlers;
}

}  // namespace numemu::net
