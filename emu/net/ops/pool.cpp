// Channels of a window are worked on line by line, one pixel after the other; images go to threads.
#include "emu/net/ops/pool.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Pixels from the first to the last of a window.
std::int64_t reach(std::int64_t kernel, std::int64_t dilation) {
  return (kernel - 1) * dilation + 1;
}

std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                     std::int64_t dilation, std::int64_t before, std::int64_t after,
                     bool ceil_mode) {
  const std::int64_t room = size + before + after - reach(kernel, dilation);
  if (room < 0) return 0;
  std::int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if ((count - 1) * stride >= size + before) --count;  // it would begin in the border behind
  return count;
}

}  // namespace

PoolOptions checked(std::string_view op, PoolOptions o) {
  if (o.stride_depth == 0) o.stride_depth = o.kernel_depth;
  if (o.stride_height == 0) o.stride_height = o.kernel_height;
  if (o.stride_width == 0) o.stride_width = o.kernel_width;
  const auto refuse = [&](const std::string& what) {
    const auto sizes = [&](std::int64_t depth, std::int64_t height, std::int64_t width) {
      return (o.kernel_depth == 1 ? "" : std::to_string(depth) + "x") + std::to_string(height) +
             "x" + std::to_string(width);
    };
    std::string message = std::string(op) + ": " + what + ", got kernel " +
                          sizes(o.kernel_depth, o.kernel_height, o.kernel_width) + ", stride " +
                          sizes(o.stride_depth, o.stride_height, o.stride_width) + ", pads";
    const std::pair<const char*, std::int64_t> pads[] = {
        {" front ", o.pad_front}, {", back ", o.pad_back},     {", top ", o.pad_top},
        {", left ", o.pad_left},  {", bottom ", o.pad_bottom}, {", right ", o.pad_right}};
    for (const auto& [name, pad] : pads) message += name + std::to_string(pad);
    throw Error(message);
  };
  if (std::min({o.kernel_depth, o.kernel_height, o.kernel_width, o.stride_depth, o.stride_height,
                o.stride_width, o.dilation_depth, o.dilation_height, o.dilation_width}) < 1)
    refuse("kernel and stride must be positive");
  const bool fits = std::max(o.pad_front, o.pad_back) < reach(o.kernel_depth, o.dilation_depth) &&
                    std::max(o.pad_top, o.pad_bottom) < reach(o.kernel_height, o.dilation_height) &&
                    std::max(o.pad_left, o.pad_right) < reach(o.kernel_width, o.dilation_width);
  if (std::min({o.pad_front, o.pad_back, o.pad_top, o.pad_left, o.pad_bottom, o.pad_right}) < 0 ||
      !fits)
    refuse("pads must be from 0 to the kernel's size - 1");
  return o;
}

Shape as_volume(const Shape& image) {
  Shape volume = image;
  volume.insert(volume.begin() + 1, 5 - image.size(), 1);
  return volume;
}

Shape pooled_shape(std::string_view op, const PoolOptions& o, Shapes inputs) {
  const std::size_t rank = inputs.size() == 1 ? inputs[0].size() : 0;
  // A kernel along an axis needs that axis.
  const std::size_t least = o.kernel_depth > 1 ? 5 : o.kernel_height > 1 ? 4 : 3;
  if (rank < least || rank > 5) {
    throw Error(std::string(op) + ": expected one input [batch" + (least == 5 ? ", depth" : "") +
                (least >= 4 ? ", height" : "") + ", width, channels], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  const Shape x = as_volume(inputs[0]);
  Shape y{x[0],
          windows(x[1], o.kernel_depth, o.stride_depth, o.dilation_depth, o.pad_front, o.pad_back,
                  o.ceil_mode),
          windows(x[2], o.kernel_height, o.stride_height, o.dilation_height, o.pad_top,
                  o.pad_bottom, o.ceil_mode),
          windows(x[3], o.kernel_width, o.stride_width, o.dilation_width, o.pad_left, o.pad_right,
                  o.ceil_mode),
          x[4]};
  if (std::min({y[1], y[2], y[3]}) < 1) {
    throw Error(std::string(op) + ": expected with its border an image of at least " +
                (rank == 5 ? std::to_string(o.kernel_depth) + "x" : "") +
                (rank >= 4 ? std::to_string(o.kernel_height) + "x" : "") +
                std::to_string(o.kernel_width) + ", got " + to_string(inputs[0]));
  }
  y.erase(y.begin() + 1, y.begin() + 1 + static_cast<std::ptrdiff_t>(5 - rank));
  return y;
}

PoolSpan pool_span(std::int64_t index, std::int64_t kernel, std::int64_t stride,
                   std::int64_t dilation, std::int64_t pad_before, std::int64_t pad_after,
                   std::int64_t size, bool count_include_pad) {
  const std::int64_t first = index * stride - pad_before, end = first + reach(kernel, dilation);
  const auto steps = [&](std::int64_t pixels) { return (pixels + dilation - 1) / dilation; };
  PoolSpan span{.to = std::min(end, size), .step = dilation};
  span.from = first < 0 ? first + steps(-first) * dilation : first;
  span.divisor = count_include_pad ? steps(std::min(end, size + pad_after) - first)
                                   : steps(span.to - span.from);
  return span;
}

namespace {

// The larger of each channel so far and the next pixel, where a NaN wins. Without branches: which
// one it is is as good as random.
void take_larger(const float* pixel, std::int64_t channels, float* largest) {
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) {
    const float candidate = pixel[c], old = largest[c];
    const float larger = candidate > old ? candidate : old;
    largest[c] = candidate == candidate ? larger : neutral(candidate);
  }
}

// take_larger() with the number of the first pixel that has it.
void take_larger(const float* pixel, std::int64_t channels, std::int32_t number, float* largest,
                 std::int32_t* winner) {
#pragma omp simd
  for (std::int64_t c = 0; c < channels; ++c) {
    const float candidate = pixel[c], old = largest[c];
    const std::int32_t before = winner[c];
    const int nan = candidate != candidate, was_nan = old != old, larger = candidate > old;
    const int wins = larger | (nan & ~was_nan);
    winner[c] = wins ? number : before;
    largest[c] = wins ? candidate : old;
  }
}

}  // namespace

MaxPool::MaxPool(const PoolOptions& options)
    : Op({.kind = "max_pool", .inputs = every_input(Use::index), .on_codes = OnCodes::picks}),
      options_(checked("max_pool", options)) {}

MaxPool::MaxPool(std::int64_t size, std::int64_t stride)
    : MaxPool(PoolOptions{.kernel_height = size,
                          .kernel_width = size,
                          .stride_height = stride,
                          .stride_width = stride}) {}

Shape MaxPool::output_shape(Shapes inputs) const {
  return pooled_shape("max_pool", options_, inputs);
}

void MaxPool::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Shape x = as_volume(inputs[0]->shape), y = as_volume(output.shape);
  const float* const in = inputs[0]->data.data();
  const std::int64_t channels = x[4];
  for_each_row(x[0], x[1] * x[2] * x[3] * channels, [&](std::int64_t n) {
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      float* const largest = output.data.data() + window.out;
      window.for_each_pixel(x, [&](std::int64_t tap, std::int64_t offset) {
        const float* const pixel = in + window.first + offset;
        if (tap == 0) {
          for (std::int64_t c = 0; c < channels; ++c) largest[c] = neutral(pixel[c]);
        } else {
          take_larger(pixel, channels, largest);
        }
      });
    });
  });
}

void MaxPool::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Shape x = as_volume(back.inputs[0]->shape), y = as_volume(back.grad_output.shape);
  const float* const in = back.inputs[0]->data.data();
  float* const grad = back.grad_inputs[0].data.data();  // zero on entry; windows may overlap
  const std::int64_t channels = x[4];
  for_each_row(x[0], x[1] * x[2] * x[3] * channels, [&](std::int64_t n) {
    std::vector<float> largest(static_cast<std::size_t>(channels));
    std::vector<std::int32_t> winner(largest.size());
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(
        options_.kernel_depth * options_.kernel_height * options_.kernel_width));
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      window.for_each_pixel(x, [&](std::int64_t tap, std::int64_t offset) {
        offsets[tap] = offset;
        const float* const pixel = in + window.first + offset;
        if (tap == 0) {
          std::copy_n(pixel, channels, largest.data());
          std::fill(winner.begin(), winner.end(), 0);
        } else {
          take_larger(pixel, channels, static_cast<std::int32_t>(tap), largest.data(),
                      winner.data());
        }
      });
      const float* const g = back.grad_output.data.data() + window.out;
      for (std::int64_t c = 0; c < channels; ++c) {
        float& target = grad[window.first + offsets[winner[c]] + c];
        target = neutral(target + g[c]);
      }
    });
  });
}

MaxPoolPlaces::MaxPoolPlaces(const PoolOptions& options, bool column_major)
    : Op({.kind = "max_pool_places", .inputs = kNoInput}),
      options_(checked("max_pool_places", options)),
      column_major_(column_major) {}

Shape MaxPoolPlaces::output_shape(Shapes inputs) const {
  return pooled_shape("max_pool_places", options_, inputs);
}

void MaxPoolPlaces::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Shape x = as_volume(inputs[0]->shape), y = as_volume(output.shape);
  const float* const in = inputs[0]->data.data();
  const std::int64_t channels = x[4], map = x[1] * x[2] * x[3];
  for_each_row(x[0], map * channels, [&](std::int64_t n) {
    std::vector<float> largest(static_cast<std::size_t>(channels));
    std::vector<std::int64_t> winner(largest.size());
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      window.for_each_pixel(x, [&](std::int64_t tap, std::int64_t offset) {
        const float* const pixel = in + window.first + offset;
        for (std::int64_t c = 0; c < channels; ++c) {
          const bool nan = pixel[c] != pixel[c] && largest[c] == largest[c];
          if (tap > 0 && !(pixel[c] > largest[c]) && !nan) continue;
          largest[c] = pixel[c];
          winner[c] = (window.first + offset) / channels - n * map;
        }
      });
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int64_t place = winner[c];
        if (column_major_)
          place = place / (x[2] * x[3]) + x[1] * (place / x[3] % x[2] + x[2] * (place % x[3]));
        output.data[window.out + c] = static_cast<float>((n * channels + c) * map + place);
      }
    });
  });
}

void MaxPoolPlaces::backward(const OpCall&, const OpBackward& back) const {
  if (back.want_inputs) std::ranges::fill(back.grad_inputs[0].data, 0.0f);
}

AveragePool::AveragePool(const PoolOptions& options)
    : Op({.kind = "average_pool", .inputs = kNoInput, .on_codes = OnCodes::computes}),
      options_(checked("average_pool", options)) {}

Shape AveragePool::output_shape(Shapes inputs) const {
  return pooled_shape("average_pool", options_, inputs);
}

void AveragePool::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Shape x = as_volume(inputs[0]->shape), y = as_volume(output.shape);
  const float* const in = inputs[0]->data.data();
  float* const out = output.data.data();
  const std::int64_t channels = x[4];
  for_each_row(x[0], x[1] * x[2] * x[3] * channels, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(channels));
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      std::fill(sums.begin(), sums.end(), 0.0);
      window.for_each_pixel(x, [&](std::int64_t, std::int64_t offset) {
        const float* const pixel = in + window.first + offset;
        for (std::int64_t c = 0; c < channels; ++c) sums[c] += pixel[c];
      });
      for (std::int64_t c = 0; c < channels; ++c)
        out[window.out + c] = neutral(static_cast<float>(sums[c] / window.divisor()));
    });
  });
}

OperatorMemory AveragePool::memory(Shapes inputs) const {
  return {.backward = 2 * images_at_once(inputs[0])};  // sums in float64
}

void AveragePool::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Shape x = as_volume(back.grad_inputs[0].shape), y = as_volume(back.grad_output.shape);
  const float* const g = back.grad_output.data.data();
  float* const grad = back.grad_inputs[0].data.data();
  const std::int64_t channels = x[4], image = x[1] * x[2] * x[3] * channels;
  for_each_row(x[0], image, [&](std::int64_t n) {
    std::vector<double> sums(static_cast<std::size_t>(image));
    for_each_window(options_, x, y, n, [&](const PoolWindow& window) {
      const float* const from = g + window.out;
      window.for_each_pixel(x, [&](std::int64_t, std::int64_t offset) {
        double* const pixel = sums.data() + window.first - n * image + offset;
        for (std::int64_t c = 0; c < channels; ++c) pixel[c] += double{from[c]} / window.divisor();
      });
    });
    for (std::int64_t i = 0; i < image; ++i)
      grad[n * image + i] = neutral(static_cast<float>(sums[i]));
  });
}

namespace {

std::int64_t pixels_of(const Shape& image) {
  return element_count({image.begin() + 1, image.end() - 1});
}

}  // namespace

Shape GlobalAveragePool::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 3 || pixels_of(inputs[0]) < 1) {
    throw Error("global_average_pool: expected one input [batch, .., width, channels], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape(inputs[0].size(), 1);
  shape.front() = inputs[0].front();
  shape.back() = inputs[0].back();
  return shape;
}

void GlobalAveragePool::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Shape& x = inputs[0]->shape;  // [n, .., c]
  const std::int64_t pixels = pixels_of(x), channels = x.back();
  for (std::int64_t n = 0; n < x[0]; ++n) {
    const std::vector<double> sums =
        column_sums(inputs[0]->data.data() + n * pixels * channels, pixels, channels);
    for (std::int64_t c = 0; c < channels; ++c) {
      output.data[n * channels + c] =
          neutral(static_cast<float>(sums[c] / static_cast<double>(pixels)));
    }
  }
}

void GlobalAveragePool::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Shape& x = back.grad_inputs[0].shape;  // [n, .., c]
  const std::int64_t pixels = pixels_of(x), channels = x.back();
  const float* const g = back.grad_output.data.data();  // [n, 1.., c]
  float* const grad = back.grad_inputs[0].data.data();
  for_each_row(x[0] * pixels, channels, [=](std::int64_t row) {
    const float* const from = g + row / pixels * channels;
    for (std::int64_t c = 0; c < channels; ++c)
      grad[row * channels + c] = neutral(from[c] / static_cast<float>(pixels));
  });
}

}  // namespace numemu::net
