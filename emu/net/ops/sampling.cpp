// Each place has neighbours with weights, there and back.
#include "emu/net/ops/sampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// The input seen as [outer, axis, inner].
struct View {
  std::int64_t outer = 1, extent = 1, inner = 1;
};

View view_of(const Shape& shape, std::int64_t axis) {
  View view{1, shape[static_cast<std::size_t>(axis)], 1};
  for (std::int64_t i = 0; i < axis; ++i) view.outer *= shape[static_cast<std::size_t>(i)];
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < shape.size(); ++i)
    view.inner *= shape[i];
  return view;
}

/// One axis forward, or with `back` the transposed map: `x` of the shape before the pass, or after
/// it. Replaces x and its shape.
void pass(const Resampling& axis, bool back, std::int64_t before, std::vector<double>& x,
          Shape& shape) {
  const View view = view_of(shape, axis.axis);
  const std::int64_t extent = back ? before : axis.extent(), inner = view.inner;
  std::vector<double> y(static_cast<std::size_t>(view.outer * extent * inner));
  const double* const from = x.data();
  double* const to = y.data();
  for_each_row(view.outer, extent * inner * axis.taps, [&](std::int64_t o) {
    for (std::int64_t i = 0; i < std::ssize(axis.places); ++i) {
      const std::int64_t result = i / axis.taps, place = axis.places[i];
      const double weight = axis.weights[i];
      const double* const source = from + (o * view.extent + (back ? result : place)) * inner;
      double* const target = to + (o * extent + (back ? place : result)) * inner;
      for (std::int64_t c = 0; c < inner; ++c) target[c] += weight * source[c];
    }
  });
  x = std::move(y);
  shape[static_cast<std::size_t>(axis.axis)] = extent;
}

}  // namespace

Resample::Resample(std::vector<Resampling> axes)
    : Op({.kind = "resample", .inputs = kNoInput, .on_codes = OnCodes::computes}),
      axes_(std::move(axes)) {
  for (const Resampling& axis : axes_) {
    const bool fits = axis.taps >= 1 && !axis.places.empty() &&
                      std::ssize(axis.places) % axis.taps == 0 &&
                      axis.weights.size() == axis.places.size();
    if (!fits || std::ranges::any_of(axis.places, [](std::int64_t place) { return place < 0; }))
      throw Error("resample: expected a place and a weight for every tap of every result");
  }
}

Shape Resample::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("resample: expected one input, got " + std::to_string(inputs.size()));
  Shape shape = inputs[0];
  for (const Resampling& axis : axes_) {
    const auto at = static_cast<std::size_t>(axis.axis);
    if (axis.axis < 0 || at >= shape.size() || *std::ranges::max_element(axis.places) >= shape[at])
      throw Error("resample: axis " + std::to_string(axis.axis) + " of " + to_string(inputs[0]) +
                  " lacks elements that are read");
    shape[at] = axis.extent();
  }
  return shape;
}

void Resample::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  std::vector<double> x(inputs[0]->data.begin(), inputs[0]->data.end());
  Shape shape = inputs[0]->shape;
  for (const Resampling& axis : axes_) pass(axis, false, 0, x, shape);
  for (std::size_t i = 0; i < x.size(); ++i) output.data[i] = neutral(static_cast<float>(x[i]));
}

void Resample::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  std::vector<double> g(back.grad_output.data.begin(), back.grad_output.data.end());
  Shape shape = back.grad_output.shape;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(axes_[i].axis);
    // What the axis had before this pass: an earlier pass may have changed it.
    std::int64_t before = back.grad_inputs[0].shape[axis];
    for (std::size_t k = 0; k < i; ++k) {
      if (axes_[k].axis == axes_[i].axis) before = axes_[k].extent();
    }
    pass(axes_[i], true, before, g, shape);
  }
  for (std::size_t i = 0; i < g.size(); ++i)
    back.grad_inputs[0].data[i] = neutral(static_cast<float>(g[i]));
}

// Two tensors of float64 at a time.
OperatorMemory Resample::memory(Shapes inputs) const {
  Shape shape = inputs[0];
  std::int64_t most = element_count(shape), last = most;
  for (const Resampling& axis : axes_) {
    shape[static_cast<std::size_t>(axis.axis)] = axis.extent();
    const std::int64_t next = element_count(shape);
    most = std::max(most, last + next);
    last = next;
  }
  return {.forward = 2 * most, .backward = 2 * most};
}

namespace {

using Options = GridSampleOptions;

// Where a place lies along an axis, in pixels, and its derivative by the grid.
struct Coordinate {
  double at = 0, slope = 0;
};

Coordinate clipped(Coordinate c, double size) {
  if (c.at <= 0) return {0, 0};
  if (c.at >= size - 1) return {size - 1, 0};
  return c;
}

// Mirrored at the outer pixels' centres or edges.
Coordinate reflected(Coordinate c, double size, bool align) {
  const double low = align ? 0 : -0.5, span = align ? size - 1 : size;
  if (span == 0) return {0, 0};
  const double beyond = std::abs(c.at - low), sign = c.at < low ? -1 : 1;
  const double rest = std::fmod(beyond, span);
  const bool mirrored = std::fmod(std::floor(beyond / span), 2) != 0;
  return {mirrored ? span - rest + low : rest + low, (mirrored ? -sign : sign) * c.slope};
}

Coordinate coordinate(const Options& o, double place, std::int64_t extent) {
  const auto size = static_cast<double>(extent);
  Coordinate c = o.align_corners ? Coordinate{(place + 1) / 2 * (size - 1), (size - 1) / 2}
                                 : Coordinate{((place + 1) * size - 1) / 2, size / 2};
  if (o.border == Options::Border::reflection) c = reflected(c, size, o.align_corners);
  if (o.border != Options::Border::zeros) c = clipped(c, size);
  if (o.mode == Options::Mode::nearest) c = {std::nearbyint(c.at), 0};
  return c;
}

// A pixel near a place: its number in the image, its weight, and the derivatives of that by the
// grid.
struct Neighbour {
  std::int64_t pixel = 0;
  double weight = 1;
  std::array<double, 3> slopes{};
};

struct Neighbours {
  std::array<Neighbour, 8> all;
  int count = 0;
  bool number = true;  // else the place is NaN or infinite where that has no meaning
};

// `place` holds the coordinates of a grid, the last axis first; `size` the image's axes.
Neighbours neighbours(const Options& o, const float* place, std::span<const std::int64_t> size) {
  const int axes = static_cast<int>(size.size());
  std::array<Coordinate, 3> c;
  for (int i = 0; i < axes; ++i) {
    c[i] = coordinate(o, place[axes - 1 - i], size[i]);
    // Outside the image by more than any pixel: of zeros alone.
    if (c[i].at > static_cast<double>(size[i]) + 1) c[i] = {static_cast<double>(size[i]) + 1, 0};
    if (c[i].at < -2) c[i] = {-2, 0};
    if (std::isnan(c[i].at)) return {{}, 0, false};
  }
  Neighbours found;
  const int corners = o.mode == Options::Mode::nearest ? 1 : 1 << axes;
  for (int corner = 0; corner < corners; ++corner) {
    Neighbour n;
    n.slopes.fill(1);
    bool inside = true;
    for (int i = 0; i < axes; ++i) {
      const double low = std::floor(c[i].at), fraction = c[i].at - low;
      const bool upper = (corner >> (axes - 1 - i) & 1) != 0;
      const std::int64_t index = static_cast<std::int64_t>(low) + (upper ? 1 : 0);
      inside = inside && index >= 0 && index < size[i];
      n.pixel = n.pixel * size[i] + index;
      n.weight *= upper ? fraction : 1 - fraction;
      for (int k = 0; k < axes; ++k)
        n.slopes[k] *=
            k == i ? (upper ? c[i].slope : -c[i].slope) : (upper ? fraction : 1 - fraction);
    }
    if (inside) found.all[found.count++] = n;
  }
  return found;
}

std::span<const std::int64_t> size_of(const Shape& image) {
  return {image.data() + 1, image.size() - 2};
}

}  // namespace

Shape GridSample::output_shape(Shapes inputs) const {
  const bool fits = inputs.size() == 2 && (inputs[0].size() == 4 || inputs[0].size() == 5) &&
                    inputs[1].size() == inputs[0].size() && inputs[1][0] == inputs[0][0] &&
                    inputs[1].back() == static_cast<std::int64_t>(inputs[0].size()) - 2;
  if (!fits) {
    throw Error(
        "grid_sample: expected an image [batch, (depth,) height, width, channels] and a grid "
        "[batch, .., 2 or 3], got " +
        (inputs.size() < 2 ? "no two inputs"
                           : to_string(inputs[0]) + " and " + to_string(inputs[1])));
  }
  Shape shape = inputs[1];
  shape.back() = inputs[0].back();
  return shape;
}

void GridSample::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Tensor &x = *inputs[0], &grid = *inputs[1];
  const auto size = size_of(x.shape);
  const std::int64_t axes = std::ssize(size), channels = x.shape.back();
  const std::int64_t image = x.size() / x.dim(0), places = grid.size() / grid.dim(0) / axes;
  for_each_row(x.dim(0) * places, channels * 8, [&](std::int64_t p) {
    const Neighbours near = neighbours(options_, grid.data.data() + p * axes, size);
    const float* const from = x.data.data() + p / places * image;
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = near.number ? 0 : std::nan("");
      for (int i = 0; i < near.count; ++i)
        sum += near.all[i].weight * double{from[near.all[i].pixel * channels + c]};
      output.data[p * channels + c] = neutral(static_cast<float>(sum));
    }
  });
}

OperatorMemory GridSample::memory(Shapes inputs) const {
  return {.backward = 2 * images_at_once(inputs[0])};  // sums in float64
}

void GridSample::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Tensor &x = *back.inputs[0], &grid = *back.inputs[1], &g = back.grad_output;
  const auto size = size_of(x.shape);
  const std::int64_t axes = std::ssize(size), channels = x.shape.back();
  const std::int64_t image = x.size() / x.dim(0), places = grid.size() / grid.dim(0) / axes;
  for_each_row(x.dim(0), places * channels * 8, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(image));
    const float* const from = x.data.data() + n * image;
    for (std::int64_t p = n * places; p < (n + 1) * places; ++p) {
      const Neighbours near = neighbours(options_, grid.data.data() + p * axes, size);
      std::array<double, 3> slopes{};
      for (int i = 0; i < near.count; ++i) {
        const std::int64_t first = near.all[i].pixel * channels;
        for (std::int64_t c = 0; c < channels; ++c) {
          const double gradient = g.data[p * channels + c];
          sums[first + c] += near.all[i].weight * gradient;
          for (int k = 0; k < axes; ++k)
            slopes[k] += near.all[i].slopes[k] * gradient * double{from[first + c]};
        }
      }
      for (int k = 0; k < axes; ++k)
        back.grad_inputs[1].data[p * axes + axes - 1 - k] = neutral(static_cast<float>(slopes[k]));
    }
    for (std::int64_t i = 0; i < image; ++i)
      back.grad_inputs[0].data[n * image + i] = neutral(static_cast<float>(sums[i]));
  });
}

}  // namespace numemu::net
