// A network and numerics in which everything that can carry state from step to step does.
#pragma once
#include <cmath>
#include <cstring>
#include <memory>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/masks.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"
#include "emu/net/train/options.hpp"

namespace numemu::net::test {

/// Convolution, batch normalisation, dropout if wanted, and a classifier, initialised.
inline Graph stateful_net(const Dataset& data, bool dropout = true) {
  Graph graph;
  graph.name = "stateful";
  graph.inputs = {{"input", data.input_shape()}};
  Conv2dOptions conv;
  conv.in_channels = data.input_shape()[2];
  conv.out_channels = 4;
  conv.kernel_height = conv.kernel_width = 3;
  conv.stride = 2;
  graph.add("conv", std::make_unique<Conv2d>(conv));
  graph.add("norm", std::make_unique<BatchNorm>(BatchNormOptions{.channels = 4}));
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  graph.add("flatten", std::make_unique<Flatten>());
  if (dropout) graph.add("dropout", std::make_unique<Dropout>(0.25));
  graph.add("fc", std::make_unique<Linear>(4 * 3 * 3, data.classes()));
  initialize(graph, 0);
  return graph;
}

/// Dynamic loss scaling that skips some steps, updates and optimizer states that depend on all
/// steps before.
class StatefulNumerics final : public Numerics {
 public:
  float loss_scale(const Step&) override { return scale_; }
  bool accept_gradients(const Step&) override {
    const bool accepted = ++good_ % 5 != 0;
    scale_ = accepted ? scale_ * 2 : scale_ / 16;
    return accepted;
  }
  void update(const Step& step, const Update& u) override {
    Numerics::update(step, u);
    history_ = history_ * 0.5f + u.delta->at(0);
    u.value->data[0] += history_ * 0x1p-6f;
  }
  void optimizer_state(const Step&, std::string_view, std::string_view, Tensor& state) override {
    for (float& x : state.data) x = std::floor(x * 0x1p16f) * 0x1p-16f;
  }
  void save_state(std::vector<std::pair<std::string, std::string>>& state) const override {
    const float floats[2] = {scale_, history_};
    state.emplace_back("floats", std::string(reinterpret_cast<const char*>(floats), sizeof floats));
    state.emplace_back("good", std::to_string(good_));
  }
  void load_state(const std::vector<std::pair<std::string, std::string>>& state) override {
    float floats[2];
    std::memcpy(floats, state.at(0).second.data(), sizeof floats);
    scale_ = floats[0];
    history_ = floats[1];
    good_ = std::stoll(state.at(1).second);
  }

 private:
  float scale_ = 1024, history_ = 0;
  std::int64_t good_ = 0;
};

/// Every option that leaves a trace, on a data set of 640 images.
inline TrainOptions stateful_options(const std::string& optimizer) {
  TrainOptions options;
  options.optimizer = optimizer;
  options.nesterov = true;
  options.learning_rate = 0.01;
  options.warmup = 5;
  options.clip = 1;
  options.epochs = 3;
  options.patience = 2;
  options.batch = 48;  // the last one of an epoch is smaller
  options.augment.shift = 1;
  options.augment.flip = true;
  options.seed = 3;
  return options;
}

}  // namespace numemu::net::test
