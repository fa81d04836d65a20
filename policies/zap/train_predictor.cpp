// The loop: shuffled batches, clamped squared error, Adam.
#include "policies/zap/train_predictor.hpp"

#include <algorithm>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/shuffle.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::policies {
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
