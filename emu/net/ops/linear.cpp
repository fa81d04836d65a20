// Three products of plain matrices, transposed by their gathers.
#include "emu/net/ops/linear.hpp"

#include <bit>
#include <cmath>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"

namespace numemu::net {

void add_bias(const Tensor& bias, Tensor& y) {
  const std::int64_t channels = bias.size();
  const float* const b = bias.data.data();
  float* const data = y.data.data();
  for_each_row(channels == 0 ? 0 : y.size() / channels, channels, [=](std::int64_t row) {
    float* const out = data + row * channels;
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) out[c] = neutral(out[c] + b[c]);
  });
}

void add_bias(const OpCall& call, const Tensor& bias, Tensor& y) {
  const SharedTensor read = call.numerics.table(call.step, call.layer, bias);
  if (read == nullptr) return add_bias(bias, y);
  if (!read->empty()) add_bias(*read, y);
}

void bias_gradient(const Tensor& grad_output, Tensor& gradient) {
  if (gradient.empty()) return;
  const std::int64_t channels = gradient.size();
  const std::vector<double> sums =
      column_sums(grad_output.data.data(), grad_output.size() / channels, channels);
  for (std::int64_t c = 0; c < channels; ++c)
    gradient.data[c] = neutral(static_cast<float>(sums[c]));
}

void dense_forward(const OpCall& call, const Repeated& product, const Tensor& x,
                   const Tensor& weight, Tensor& y) {
  const std::int64_t out = weight.dim(0), in = weight.dim(1), rows = x.size() / in;
  const unit::Gather a = unit::Gather::matrix(rows, in), b = unit::Gather::matrix(out, in);
  call.numerics.product(call.step, {product.layer,
                                    GemmKind::fprop,
                                    rows,
                                    out,
                                    in,
                                    {&x, &a, Role::activation, {.width = in}},
                                    {&weight, &b, Role::weight, {.width = in}},
                                    y.data.data(),
                                    {.width = out},
                                    product.repetition,
                                    product.repetitions});
}

void dense_input_gradient(const OpCall& call, const Repeated& product, const Tensor& grad_y,
                          const Tensor& weight, Tensor& grad_x) {
  const std::int64_t out = weight.dim(0), in = weight.dim(1), rows = grad_y.size() / out;
  const unit::Gather a = unit::Gather::matrix(rows, out), b = unit::Gather::matrix(in, out, true);
  call.numerics.product(call.step, {product.layer,
                                    GemmKind::dgrad,
                                    rows,
                                    in,
                                    out,
                                    {&grad_y, &a, Role::gradient, {.width = out}},
                                    {&weight, &b, Role::weight, {.width = in}, true},
                                    grad_x.data.data(),
                                    {.width = in},
                                    product.repetition,
                                    product.repetitions});
}

void dense_weight_gradient(const OpCall& call, const Repeated& product, const Tensor& grad_y,
                           const Tensor& x, Tensor& grad_weight) {
  if (grad_weight.empty()) return;
  const std::int64_t out = grad_weight.dim(0), in = grad_weight.dim(1), rows = x.size() / in;
  const unit::Gather a = unit::Gather::matrix(out, rows, true),
                     b = unit::Gather::matrix(in, rows, true);
  call.numerics.product(call.step, {product.layer,
                                    GemmKind::wgrad,
                                    out,
                                    in,
                                    rows,
                                    {&grad_y, &a, Role::gradient, {.width = out}, true},
                                    {&x, &b, Role::activation, {.width = in}, true},
                                    grad_weight.data.data(),
                                    {.width = in},
                                    product.repetition,
                                    product.repetitions});
}

Linear::Linear(std::int64_t in, std::int64_t out, bool bias)
    : Op({.kind = "linear", .result = ResultKind::product, .products = {{"", 0}}}),
      in_(in),
      out_(out) {
  if (in < 1 || out < 1) throw Error("linear: the numbers of inputs and outputs must be positive");
  parameters_.push_back({"weight", Tensor({out, in}), in});
  if (bias) parameters_.push_back({"bias", Tensor({out}), 0});
}

Linear::Linear(Tensor weight, bool bias)
    : Op({.kind = "linear", .result = ResultKind::product, .products = {{"", 0}}}),
      in_(weight.dim(1)),
      out_(weight.dim(0)) {
  if (weight.empty()) throw Error("linear: the numbers of inputs and outputs must be positive");
  parameters_.push_back({"weight", std::move(weight), in_});
  if (bias) parameters_.push_back({"bias", Tensor({out_}), 0});
}

Shape Linear::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0].back() != in_) {
    throw Error("linear: expected one input [batch, ..., " + std::to_string(in_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  shape.back() = out_;
  return shape;
}

void Linear::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
  dense_forward(call, {call.layer}, *inputs[0], parameters_[0].value, output);
  if (parameters_.size() > 1) add_bias(call, parameters_[1].value, output);
}

void Linear::backward(const OpCall& call, const OpBackward& back) const {
  if (parameters_.size() > 1) bias_gradient(back.grad_output, back.grad_parameters[1]);
  dense_weight_gradient(call, {call.layer}, back.grad_output, *back.inputs[0],
                        back.grad_parameters[0]);
  if (!back.want_inputs) return;
  dense_input_gradient(call, {call.layer}, back.grad_output, parameters_[0].value,
                       back.grad_inputs[0]);
}

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
    : Op({.kind = "hadamard_classifier",
          .result = ResultKind::product,
          .inputs = every_input(Use::statistic),
          .products = {{"", 0}}}),
      features_(features),
      classes_(classes) {
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

Shape HadamardClassifier::output_shape(Shapes inputs) const {
  if (inputs.size() != 1 || inputs[0].size() < 2 || inputs[0].back() != features_) {
    throw Error("hadamard_classifier: expected one input [batch, ..., " +
                std::to_string(features_) + "], got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  Shape shape = inputs[0];
  shape.back() = classes_;
  return shape;
}

void HadamardClassifier::forward(const OpCall& call, OpInputs inputs, Tensor& output) const {
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

void HadamardClassifier::backward(const OpCall& call, const OpBackward& back) const {
  if (call.kept == nullptr || call.kept->shape != back.grad_output.shape) {
    throw Error("hadamard_classifier " + std::string(call.layer) +
                ": backward needs the product that forward leaves in training");
  }
  const float* const g = back.grad_output.data.data();
  const float* const product = call.kept->data.data();
  if (!back.grad_parameters[1].empty()) {
    const double along = line_sum(back.grad_output.size(),
                                  [=](std::int64_t i) { return double{g[i]} * product[i]; });
    back.grad_parameters[1].data[0] = neutral(static_cast<float>(-along));
  }
  if (!back.grad_parameters[2].empty()) bias_gradient(back.grad_output, back.grad_parameters[2]);
  if (!back.want_inputs) return;
  const float scale = parameters_[1].value.data[0];
  Tensor scaled = back.grad_output;
  for (float& value : scaled.data) value = neutral(-(scale * value));
  Tensor& grad = back.grad_inputs[0];  // first that of x / length
  dense_input_gradient(call, {call.layer}, scaled, parameters_[0].value, grad);
  const std::int64_t features = features_;
  const float* const all = back.inputs[0]->data.data();
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
