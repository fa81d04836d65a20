// Sampling: each place of the grid has up to eight neighbours with their weights, there and back.
#include "emu/net/ops/grid_sample.hpp"

#include <array>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
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

Shape GridSample::output_shape(std::span<const Shape> inputs) const {
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

void GridSample::forward(const OpCall&, std::span<const Tensor* const> inputs,
                         Tensor& output) const {
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

OperatorMemory GridSample::memory(std::span<const Shape> inputs) const {
  return {.backward = 2 * images_at_once(inputs[0])};  // sums in float64
}

void GridSample::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                          const Tensor& grad_output, std::span<Tensor> grad_inputs,
                          std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Tensor &x = *inputs[0], &grid = *inputs[1], &g = grad_output;
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
        grad_inputs[1].data[p * axes + axes - 1 - k] = neutral(static_cast<float>(slopes[k]));
    }
    for (std::int64_t i = 0; i < image; ++i)
      grad_inputs[0].data[n * image + i] = neutral(static_cast<float>(sums[i]));
  });
}

}  // namespace numemu::net
