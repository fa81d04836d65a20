// The predictor as a small graph, and what its predictions do to a map.
#include "policies/zap/predictor.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/sums.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/shuffle.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::policies {
namespace {

/// period x period characters, row by row: 1 computed, 0 predicted.
struct Tile {
  int period;
  std::string_view ones;
};

// Types 3 and 4 are the complements of 7 and 6.
constexpr Tile kTiles[] = {
    {3, "001010100"}, {5, "0010101010101000100110010"},
    {2, "1001"},      {5, "1101010101010111011001101"},
    {3, "110101011"}, {2, "1110"},
    {3, "111101011"}, {3, "111101111"},
};
static_assert(std::size(kTiles) == kLargestMaskType - kLeastMaskType + 1);

const Tile& tile_of(int type) {
  if (type < kLeastMaskType || type > kLargestMaskType) {
    throw Error("position mask: expected a type from " + std::to_string(kLeastMaskType) + " to " +
                std::to_string(kLargestMaskType) + ", got " + std::to_string(type));
  }
  return kTiles[type - kLeastMaskType];
}

}  // namespace

PositionMask position_mask(int type, std::int64_t height, std::int64_t width) {
  const Tile& tile = tile_of(type);
  if (height < 1 || width < 1) {
    throw Error("position mask: expected a map of at least one position, got " +
                std::to_string(height) + " x " + std::to_string(width));
  }
  PositionMask mask{type, height, width, {}};
  mask.computed.reserve(static_cast<std::size_t>(height * width));
  for (std::int64_t y = 0; y < height; ++y) {
    const std::string_view row =
        tile.ones.substr(static_cast<std::size_t>(y % tile.period * tile.period));
    for (std::int64_t x = 0; x < width; ++x)
      mask.computed.push_back(row[static_cast<std::size_t>(x % tile.period)] == '1');
  }
  return mask;
}

MaskShare mask_share(int type) {
  const Tile& tile = tile_of(type);
  return {std::count(tile.ones.begin(), tile.ones.end(), '1'),
          static_cast<std::int64_t>(tile.ones.size())};
}

namespace {

constexpr std::int64_t kTaps = 9;

struct Extents {
  explicit Extents(const net::Shape& shape)
      : images(shape[0]), rows(shape[1]), line(shape[2] * shape[3]), channels(shape[3]) {}
  std::int64_t images, rows, line, channels;  // line: elements of a row of pixels
  std::int64_t padded_line() const { return line + 2 * channels; }
  std::int64_t padded_size() const { return (rows + 2) * padded_line(); }
  /// From a padded pixel to the tap's, the window beginning at the first.
  std::int64_t tap(std::int64_t t) const { return t / 3 * padded_line() + t % 3 * channels; }
};

/// An image with its border of zeros.
void pad(const Extents& e, const float* image, std::vector<float>& padded) {
  padded.assign(static_cast<std::size_t>(e.padded_size()), 0);
  for (std::int64_t y = 0; y < e.rows; ++y)
    std::copy_n(image + y * e.line, e.line, padded.data() + (y + 1) * e.padded_line() + e.channels);
}

/// weight [channels, 9], in opposite order where `flipped`, as [9, line].
std::vector<float> repeated(const Extents& e, std::span<const float> weight, bool flipped) {
  std::vector<float> lines(static_cast<std::size_t>(kTaps * e.line));
  for (std::int64_t t = 0; t < kTaps; ++t) {
    const std::int64_t from = flipped ? kTaps - 1 - t : t;
    for (std::int64_t j = 0; j < e.line; ++j)
      lines[t * e.line + j] = weight[j % e.channels * kTaps + from];
  }
  return lines;
}

/// y = x * w, w [9, line].
void convolve(const Extents& e, const float* x, std::span<const float> weight, float* y) {
  net::for_each_row(e.images, kTaps * e.rows * e.line, [&](std::int64_t n) {
    std::vector<float> padded;
    pad(e, x + n * e.rows * e.line, padded);
    for (std::int64_t row = 0; row < e.rows; ++row) {
      const float* const from = padded.data() + row * e.padded_line();
      float* const to = y + (n * e.rows + row) * e.line;
      std::fill_n(to, e.line, 0.0f);
      for (std::int64_t t = 0; t < kTaps; t += 3) {
        const float* const a = from + e.tap(t);
        const float* const w = weight.data() + t * e.line;
        const std::int64_t line = e.line, step = e.channels;
#pragma omp simd
        for (std::int64_t j = 0; j < line; ++j) {
          to[j] = ((to[j] + w[j] * a[j]) + w[line + j] * a[step + j]) +
                  w[2 * line + j] * a[2 * step + j];
        }
      }
    }
  });
}

/// Adds one image's sums of g x to sums [channels, 9].
void add_image(const Extents& e, const float* x, const float* g, double* sums) {
  std::vector<float> padded, columns(static_cast<std::size_t>(kTaps * e.line));
  pad(e, x, padded);
  for (std::int64_t row = 0; row < e.rows; ++row) {
    const float* const slope = g + row * e.line;
    for (std::int64_t t = 0; t < kTaps; ++t) {
      const float* const a = padded.data() + row * e.padded_line() + e.tap(t);
      float* const to = columns.data() + t * e.line;
      const std::int64_t line = e.line;
#pragma omp simd
      for (std::int64_t j = 0; j < line; ++j) to[j] += slope[j] * a[j];
    }
  }
  for (std::int64_t t = 0; t < kTaps; ++t)
    for (std::int64_t j = 0; j < e.line; ++j)
      sums[j % e.channels * kTaps + t] += columns[t * e.line + j];
}

}  // namespace

Depthwise3x3::Depthwise3x3(std::int64_t channels)
    : Op({.kind = "depthwise3x3"}), channels_(channels) {
  if (channels < 1) {
    throw Error("depthwise3x3: expected a positive number of channels, got " +
                std::to_string(channels));
  }
  parameters_.push_back({"weight", net::Tensor({channels, 3, 3, 1}), kTaps});
  parameters_.push_back({"bias", net::Tensor({channels}), 0});
}

net::Shape Depthwise3x3::output_shape(net::Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 4 || inputs[0][3] != channels_) {
    throw Error("depthwise3x3: expected one input [batch, height, width, " +
                std::to_string(channels_) + "], got " +
                (inputs.empty() ? "none" : net::to_string(inputs[0])));
  }
  return inputs[0];
}

void Depthwise3x3::forward(const net::OpCall&, net::OpInputs inputs, net::Tensor& output) const {
  const Extents e(output.shape);
  convolve(e, inputs[0]->data.data(), repeated(e, parameters_[0].value.data, false),
           output.data.data());
  net::add_bias(parameters_[1].value, output);
}

void Depthwise3x3::backward(const net::OpCall&, const net::OpBackward& back) const {
  const Extents e(back.grad_output.shape);
  const float* const x = back.inputs[0]->data.data();
  const float* const g = back.grad_output.data.data();
  const std::vector<double> sums =
      net::column_tree(e.images, kTaps * channels_, [&](std::int64_t n, double* total) {
        add_image(e, x + n * e.rows * e.line, g + n * e.rows * e.line, total);
      });
  std::transform(sums.begin(), sums.end(), back.grad_parameters[0].data.begin(),
                 [](double sum) { return net::neutral(static_cast<float>(sum)); });
  net::bias_gradient(back.grad_output, back.grad_parameters[1]);
  if (back.want_inputs) {
    convolve(e, g, repeated(e, parameters_[0].value.data, true), back.grad_inputs[0].data.data());
    for (float& slope : back.grad_inputs[0].data) slope = net::neutral(slope);
  }
}

namespace {

void require_map(const net::Shape& map) {
  if (map.size() == 3 && map[0] > 0 && map[1] > 0 && map[2] > 0) return;
  throw Error("zero prediction: expected a map [height, width, channels], got " +
              net::to_string(map));
}

net::Graph predictor_graph(const std::string& layer, const net::Shape& map) {
  const std::int64_t channels = map[2];
  const net::BatchNormOptions norm{.channels = channels};
  net::Graph graph;
  graph.name = layer + ".zap";
  graph.inputs = {{"visible", map}};
  graph.add(graph.name + ".conv1", std::make_unique<Depthwise3x3>(channels));
  graph.add(graph.name + ".bn1", std::make_unique<net::BatchNorm>(norm));
  graph.add(graph.name + ".relu", std::make_unique<net::Pointwise>("relu"));
  graph.add(graph.name + ".conv2", std::make_unique<Depthwise3x3>(channels));
  graph.add(graph.name + ".bn2", std::make_unique<net::BatchNorm>(norm));
  return graph;
}

}  // namespace

ZapPredictor::ZapPredictor(const std::string& layer, const net::Shape& map, int mask_type,
                           std::uint64_t seed) {
  require_map(map);
  mask_ = position_mask(mask_type, map[0], map[1]);
  graph_ = predictor_graph(layer, map);
  net::initialize(graph_, seed);
}

net::Tensor ZapPredictor::visible(const net::Tensor& x) const {
  const net::Shape& expected = map();
  if (x.shape.size() != 4 || !std::equal(expected.begin(), expected.end(), x.shape.begin() + 1)) {
    throw Error(graph_.name + ": expected maps [batch, then " + net::to_string(expected) +
                "], got " + net::to_string(x.shape));
  }
  net::Tensor y(x.shape);
  const std::int64_t channels = expected[2];
  for (std::int64_t p = 0; p < x.size() / channels; ++p) {
    if (mask_.computed[static_cast<std::size_t>(p % mask_.positions())] == 0) continue;
    std::copy_n(x.data.begin() + p * channels, channels, y.data.begin() + p * channels);
  }
  return y;
}

net::Tensor ZapPredictor::predict(const net::Tensor& x) const {
  net::Numerics float32;
  return net::forward(graph_, visible(x), float32);
}

void skip_zeros(const PositionMask& mask, const net::Tensor& z, float threshold, net::Tensor& x) {
  const std::int64_t channels = x.dim(-1);
  const float* const guess = z.data.data();
  float* const value = x.data.data();
  net::for_each_row(x.size() / channels, channels, [=, &mask](std::int64_t p) {
    if (mask.computed[static_cast<std::size_t>(p % mask.positions())] != 0) return;
#pragma omp simd
    for (std::int64_t i = p * channels; i < (p + 1) * channels; ++i)
      value[i] = guess[i] > threshold ? value[i] : 0;
  });
}

namespace {

net::Tensor gather_maps(const net::Tensor& maps, const std::vector<std::int64_t>& order,
                        std::int64_t first, std::int64_t count) {
  net::Shape shape = maps.shape;
  shape[0] = count;
  net::Tensor batch(shape);
  const std::int64_t each = maps.size() / maps.dim(0);
  for (std::int64_t i = 0; i < count; ++i)
    std::copy_n(maps.data.begin() + order[first + i] * each, each, batch.data.begin() + i * each);
  return batch;
}

net::TrainOptions adam_options(const ZapTraining& training) {
  net::TrainOptions options;
  options.optimizer = "adam";
  options.schedule = "constant";
  options.learning_rate = training.learning_rate;
  options.weight_decay = 0;
  options.epochs = training.epochs;
  options.batch = training.batch;
  options.seed = training.seed;
  net::check(options);
  return options;
}

double step(ZapPredictor& predictor, const net::Tensor& x, double rate, net::Optimizer& optimizer) {
  net::Numerics float32;
  net::Graph& graph = predictor.graph();
  net::Tape tape = net::forward_training(graph, predictor.visible(x), float32);
  net::apply_buffers(graph, std::exchange(tape.buffers, {}));
  net::Tensor gradient;
  const double loss = zap_loss(predictor.mask(), x, tape.output, &gradient);
  const std::vector<net::Tensor> gradients =
      net::backward(graph, std::move(tape), std::move(gradient), float32);
  optimizer.begin_step(rate);
  const std::vector<net::Parameter*> parameters = graph.parameters();
  std::vector<float> delta;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p]->trained) continue;
    optimizer.step(p, *parameters[p], gradients[p], delta);
    float32.update({.phase = net::Phase::training},
                   {parameters[p]->name, &parameters[p]->value, &gradients[p], &delta});
  }
  return loss;
}

}  // namespace

double zap_loss(const PositionMask& mask, const net::Tensor& x, const net::Tensor& z,
                net::Tensor* gradient) {
  const FloatGuard guard;
  const std::int64_t channels = x.dim(-1), n = x.size();
  const auto predicted = [&](std::int64_t i) {
    return mask.computed[static_cast<std::size_t>(i / channels % mask.positions())] == 0;
  };
  const auto error = [&](std::int64_t i) {
    const double target = x.data[i] > 0 ? 1 : 0;
    return std::clamp(static_cast<double>(z.data[i]), 0.0, 1.0) - target;
  };
  if (gradient != nullptr) {
    *gradient = net::Tensor(x.shape);
    const double share = 2 / static_cast<double>(n);
    net::for_each_row(n / channels, channels, [&](std::int64_t p) {
      for (std::int64_t i = p * channels; i < (p + 1) * channels; ++i) {
        const float guess = z.data[i];
        if (predicted(i) && guess >= 0 && guess <= 1)
          gradient->data[i] = static_cast<float>(share * error(i));
      }
    });
  }
  return pairwise_sum(n,
                      [&](std::int64_t i) {
                        const double e = predicted(i) ? error(i) : 0;
                        return e * e;
                      }) /
         static_cast<double>(n);
}

std::vector<double> train_predictor(ZapPredictor& predictor, const net::Tensor& maps,
                                    const ZapTraining& training) {
  if (maps.empty()) throw Error(predictor.graph().name + ": expected maps to train on, got none");
  const net::TrainOptions options = adam_options(training);
  const FloatGuard guard;
  const std::vector<net::Parameter*> parameters = predictor.graph().parameters();
  const std::unique_ptr<net::Optimizer> optimizer = net::make_optimizer(
      options, std::vector<const net::Parameter*>(parameters.begin(), parameters.end()));
  const std::int64_t samples = maps.dim(0);
  std::vector<double> losses;
  for (std::int64_t epoch = 0; epoch < training.epochs; ++epoch) {
    const std::vector<std::int64_t> order = net::shuffled(samples, training.seed, epoch);
    double sum = 0;
    for (std::int64_t first = 0; first < samples; first += training.batch) {
      const std::int64_t count = std::min(training.batch, samples - first);
      sum += static_cast<double>(count) * step(predictor, gather_maps(maps, order, first, count),
                                               options.learning_rate, *optimizer);
    }
    losses.push_back(sum / static_cast<double>(samples));
  }
  return losses;
}

}  // namespace numemu::policies
