// A linear layer without bias whose scales are learned, and the steps that it takes by hand.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/quantize.hpp"
#include "policies/learn/base/learned_range.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "tests/policies/one_layer.hpp"

namespace numemu::policies::test {

/// The loss is the sum of the outputs, so that the gradient of every output is 1.
class LearningLayer {
 public:
  LearningLayer(const std::string& format, const std::string& granularity, const std::string& learn,
                std::int64_t in, std::int64_t out = 1)
      : in_(in),
        out_(out),
        layer_(R"j("roles": {"weight": {"format": "int4", "granularity": ")j" + granularity +
                   R"j("}, "activation": {"format": ")j" + format + R"j("}}, )j" + learn,
               std::make_unique<net::Linear>(in, out), {in}),
        activation_(*layer_.numerics().roles().recipe("layer")[RolePart::activation]),
        weight_role_(*layer_.numerics().roles().recipe("layer")[RolePart::weight]) {}

  RecipeNumerics& numerics() { return layer_.numerics(); }
  void start(const std::vector<float>& weights) { weight() = weights; }
  void take_weights(LearningLayer& other) { weight() = other.weight(); }

  /// One sample through forward and backward; the weights stay.
  void step(const std::vector<float>& x, double rate) {
    RecipeNumerics& n = numerics();
    const net::Step step{net::Phase::training, index_++};
    net::Tensor source({1, in_}), y({1, out_}), g({1, out_}, 1.0f), of_w({out_, in_});
    source.data = x;
    before_ = scales();
    n.set_learning_rate(rate);
    n.begin_step(step);
    n.loss_scale(step);
    const unit::Gather rows = unit::Gather::matrix(1, in_), w = unit::Gather::matrix(out_, in_),
                       ga = unit::Gather::matrix(1, out_),
                       gw = unit::Gather::matrix(in_, out_, true),
                       gt = unit::Gather::matrix(out_, 1, true),
                       gx = unit::Gather::matrix(in_, 1, true);
    const net::Tensor& weights = net::weight_of(layer_.graph(), "layer");
    n.product(step, {"layer",
                     net::GemmKind::fprop,
                     1,
                     out_,
                     in_,
                     {&source, &rows, net::Role::activation, {.width = in_}},
                     {&weights, &w, net::Role::weight, {.width = in_}},
                     y.data.data(),
                     {.width = out_}});
    if (before_.activation == 0) before_ = scales();
    d_ = net::Tensor({1, in_});
    n.product(step, {"layer",
                     net::GemmKind::dgrad,
                     1,
                     in_,
                     out_,
                     {&g, &ga, net::Role::gradient, {.width = out_}},
                     {&weights, &gw, net::Role::weight, {.width = in_}, true},
                     d_.data.data(),
                     {.width = in_}});
    n.product(step, {"layer",
                     net::GemmKind::wgrad,
                     out_,
                     in_,
                     1,
                     {&g, &gt, net::Role::gradient, {.width = out_}, true},
                     {&source, &gx, net::Role::activation, {.width = in_}, true},
                     of_w.data.data(),
                     {.width = in_}});
    for (std::int64_t c = 0; c < out_; ++c)
      std::copy_n(x.begin(), in_, of_w.data.begin() + c * in_);
    n.accept_gradients(step);
    n.penalty(step, "layer.weight", weights, of_w);
    n.end_step(step);
  }

  /// That of an input before it passes the range: the sum of the quantized weights of its column.
  double gradient_of_input(std::size_t i) const {
    double sum = 0;
    const net::Tensor& w = net::weight_of(layer_.graph(), "layer");
    for (std::int64_t c = 0; c < out_; ++c) {
      const float scale = before_.weight.at(before_.weight.size() > 1 ? c : 0);
      sum += level_of(weight_role_, w.data[c * in_ + static_cast<std::int64_t>(i)], scale) * scale;
    }
    return sum;
  }
  std::vector<float> input_gradients() const { return {d_.data.begin(), d_.data.end()}; }

  /// What the code of a number means, in units of the scale.
  double level(float x, double scale) const {
    return level_of(activation_, x, static_cast<float>(scale));
  }
  LevelRange range() const {
    const double high = largest_element(RoleQuantizer(activation_).conversion());
    return {activation_.format->is_signed ? -high : 0, high};
  }
  double activation_scale() const { return scales().activation; }
  double activation_scale_before() const { return before_.activation; }
  std::vector<float> weight_scales() const { return scales().weight; }
  std::vector<float> weight_scales_before() const { return before_.weight; }

 private:
  struct Scales {
    double activation = 0;
    std::vector<float> weight;
  };
  static double level_of(const RolePolicy& role, float x, float scale) {
    QuantizedTensor codes;
    quantize_tensor(RoleQuantizer(role), &x, 1, {scale}, {}, codes);
    return double{codes.element(0)};
  }
  net::Elements& weight() { return layer_.op().parameters()[0].value.data; }
  /// As the ranges have them.
  Scales scales() const {
    Scales out;
    const FixedRanges learned = layer_.numerics().learned_ranges();
    if (!learned.contains("layer")) {
      out.weight = choose_scales(weight_role_, net::weight_of(layer_.graph(), "layer"));
      return out;
    }
    const LayerRanges& of = learned.at("layer");
    if (of.activation) out.activation = double{of.activation->high} / range().high;
    for (const ValueRange& range : of.weight) out.weight.push_back(range.high / 7);
    if (of.weight.empty())
      out.weight = choose_scales(weight_role_, net::weight_of(layer_.graph(), "layer"));
    return out;
  }

  std::int64_t in_, out_, index_ = 0;
  mutable OneLayer layer_;
  RolePolicy activation_, weight_role_;
  Scales before_;
  net::Tensor d_;
};

}  // namespace numemu::policies::test
