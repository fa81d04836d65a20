#include "emu/net/ops/hadamard_classifier.hpp"

#include <bit>
#include <cmath>

#include "emu/net/ops/bias.hpp"
#include "emu/net/ops/dense.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/float64_sums.hpp"
#include "emu/net/sums.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr double kEpsilon = 1e-8;  // of the published code

double length_of(const float* x, std::int64_t n) {
  return std::sqrt(line_sum(n, [=](std::int64_t i) { return double{x[i]} * x[i]; }));
}

}  // namespace

float hadamard_element(std::int64_t row, std::int64_t column) {
  return std::popcount(static_cast<std::uint64_t>(row & column)) % 2 == 0 ? 1.0f : -1.0f;
}

HadamardClassifier::HadamardClassifier(std::int64_t features, std::int64_t classes)
    : features_(features), classes_(classes) {
  if (features < 1 || classes < 1)
    throw Error("hadamard_classifier: the numbers of features and classes must be positive");
  Tensor signs({classes, features});
  for (std::int64_t i = 0; i < signs.size(); ++i)
    signs.data[i] = hadamard_element(i / features, i % features);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(classes)));
  parameters_.push_back(
      {.name = "weight", .value = std::move(signs), .fan_in = -1, .trained = false});
  parameters_.push_back({"scale", Tensor({1}, scale), 0, scale});
  parameters_.push_back({"bias", Tensor({classes}), 0});
}

Shape HadamardClassifier::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0].back() != features_) {
    throw Error("hadamard_classifier: expected one input [batch, ..., " +
                std::to_string(features_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  shape.back() = classes_;
  return shape;
}

void HadamardClassifier::forward(const OpCall& call, std::span<const Tensor* const> inputs,
                                 Tensor& output) const {
  Tensor unit = *inputs[0];  // [.., features]
  const std::int64_t features = features_, classes = classes_;
  float* const x = unit.data.data();
  for_each_row(unit.size() / features, features, [=](std::int64_t r) {
    const double length = length_of(x + r * features, features) + kEpsilon;
    for (std::int64_t i = r * features; i < (r + 1) * features; ++i)
      x[i] = neutral(static_cast<float>(x[i] / length));
  });
  dense_forward(call, {call.layer}, unit, parameters_[0].value, output);
  if (call.context != nullptr) *call.context = output;
  const float scale = parameters_[1].value.data[0];
  const float* const bias = parameters_[2].value.data.data();
  float* const y = output.data.data();
  for_each_element(output.size(),
                   [=](std::int64_t i) { y[i] = neutral(-(scale * y[i]) + bias[i % classes]); });
}

void HadamardClassifier::backward(const OpCall& call, std::span<const Tensor* const> inputs,
                                  const Tensor*, const Tensor& grad_output,
                                  std::span<Tensor> grad_inputs, std::span<Tensor> grad_parameters,
                                  bool want_inputs) const {
  if (call.kept == nullptr || call.kept->shape != grad_output.shape) {
    throw Error("hadamard_classifier " + std::string(call.layer) +
                ": backward needs the product that forward leaves in training");
  }
  const float* const g = grad_output.data.data();
  const float* const product = call.kept->data.data();
  if (!grad_parameters[1].empty()) {
    const double along =
        line_sum(grad_output.size(), [=](std::int64_t i) { return double{g[i]} * product[i]; });
    grad_parameters[1].data[0] = neutral(static_cast<float>(-along));
  }
  if (!grad_parameters[2].empty()) bias_gradient(grad_output, grad_parameters[2]);
  if (!want_inputs) return;
  const float scale = parameters_[1].value.data[0];
  Tensor scaled = grad_output;
  for (float& value : scaled.data) value = neutral(-(scale * value));
  Tensor& grad = grad_inputs[0];  // first that of x / length
  dense_input_gradient(call, {call.layer}, scaled, parameters_[0].value, grad);
  const std::int64_t features = features_;
  const float* const all = inputs[0]->data.data();
  float* const d = grad.data.data();
  for_each_row(grad.size() / features, features, [=](std::int64_t r) {
    const float* const x = all + r * features;
    float* const dx = d + r * features;
    const double size = length_of(x, features), length = size + kEpsilon;
    const double inner = line_sum(features, [=](std::int64_t i) { return double{x[i]} * dx[i]; });
    const double share = size == 0 ? 0 : inner / (size * length);
    for (std::int64_t i = 0; i < features; ++i)
      dx[i] = neutral(static_cast<float>((dx[i] - x[i] * share) / length));
  });
}

}  // namespace numemu::net
