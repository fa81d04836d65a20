#include "experiments/fractrain/gated_dense.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/math.hpp"
#include "emu/net/ops/bias.hpp"
#include "emu/net/ops/dense.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::fractrain {

using net::Tensor;

std::vector<double> gate_gradient(std::span<const double> p, std::span<const double> d) {
  double mean = 0;
  for (std::size_t k = 0; k < p.size(); ++k) mean += p[k] * d[k];
  std::vector<double> gradient(p.size());
  for (std::size_t k = 0; k < p.size(); ++k) gradient[k] = p[k] * (d[k] - mean);
  return gradient;
}

std::vector<double> gate_shares(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const float z : logits) sum += p.emplace_back(net::exp(z - most));
  for (double& share : p) share /= sum;
  return p;
}

GatedDense::GatedDense(std::int64_t in, std::int64_t out, std::vector<double> costs, double beta)
    : in_(in), out_(out), costs_(std::move(costs)), beta_(beta), taken_(costs_.size()) {
  parameters_.push_back({"weight", Tensor({out, in}), in});
  parameters_.push_back({"bias", Tensor({out}), 0});
}

std::vector<net::OpProduct> GatedDense::products() const {
  std::vector<net::OpProduct> all;
  for (std::size_t k = 0; k < choices(); ++k) all.push_back({fmt::format(".{}", k), 0});
  return all;
}

net::Shape GatedDense::output_shape(std::span<const net::Shape> inputs) const {
  const auto count = static_cast<std::int64_t>(choices());
  if (inputs.size() != 2 || inputs[0].size() != 2 || inputs[0][1] != in_ ||
      inputs[1] != net::Shape{inputs[0][0], count}) {
    throw Error(
        fmt::format("gated_dense: expected inputs [batch, {}] and [batch, {}]", in_, count));
  }
  return {inputs[0][0], out_};
}

std::vector<std::size_t> GatedDense::chosen(const Tensor& logits) const {
  std::vector<std::size_t> rows;
  for (std::int64_t row = 0; row < logits.dim(0); ++row) {
    const float* const z = logits.data.data() + row * logits.dim(1);
    rows.push_back(static_cast<std::size_t>(std::max_element(z, z + choices()) - z));
  }
  return rows;
}

void GatedDense::forward(const net::OpCall& call, std::span<const Tensor* const> inputs,
                         Tensor& output) const {
  const std::vector<std::size_t> rows = chosen(*inputs[1]);
  Tensor all({static_cast<std::int64_t>(choices()), output.dim(0), out_});
  Tensor y(output.shape);
  for (std::size_t k = 0; k < choices(); ++k) {
    const std::string layer = fmt::format("{}.{}", call.layer, k);
    net::dense_forward(call, {layer}, *inputs[0], parameters_[0].value, y);
    std::copy(y.data.begin(), y.data.end(),
              all.data.begin() + static_cast<std::ptrdiff_t>(k) * y.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * out_;
      if (rows[row] == k) std::copy_n(y.data.begin() + at, out_, output.data.begin() + at);
    }
  }
  net::add_bias(parameters_[1].value, output);
  if (call.phase != net::Phase::training) return;
  for (const std::size_t k : rows) ++taken_[k];
  if (call.context != nullptr) *call.context = std::move(all);
}

void GatedDense::backward(const net::OpCall& call, std::span<const Tensor* const> inputs,
                          const Tensor*, const Tensor& grad_output, std::span<Tensor> grad_inputs,
                          std::span<Tensor> grad_parameters, bool want_inputs) const {
  const std::vector<std::size_t> rows = chosen(*inputs[1]);
  const auto add = [](const Tensor& part, Tensor& sum) {
    for (std::size_t i = 0; i < part.data.size(); ++i)
      sum.data[i] = net::neutral(sum.data[i] + part.data[i]);
  };
  std::fill(grad_parameters[0].data.begin(), grad_parameters[0].data.end(), 0.0f);
  net::bias_gradient(grad_output, grad_parameters[1]);
  for (std::size_t k = 0; k < choices(); ++k) {
    const std::string layer = fmt::format("{}.{}", call.layer, k);
    Tensor g(grad_output.shape), grad_weight(parameters_[0].value.shape), grad_x(inputs[0]->shape);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * out_;
      if (rows[row] == k) std::copy_n(grad_output.data.begin() + at, out_, g.data.begin() + at);
    }
    net::dense_weight_gradient(call, {layer}, g, *inputs[0], grad_weight);
    add(grad_weight, grad_parameters[0]);
    if (!want_inputs) continue;
    net::dense_input_gradient(call, {layer}, g, parameters_[0].value, grad_x);
    add(grad_x, grad_inputs[0]);
  }
  if (!want_inputs) return;
  double cost = 0;
  for (const std::size_t k : rows) cost += costs_[k] / static_cast<double>(rows.size());
  const double toward = (cost < target ? -beta_ : beta_) / static_cast<double>(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const float* const g = grad_output.data.data() + static_cast<std::int64_t>(row) * out_;
    std::vector<double> d;
    for (std::size_t k = 0; k < choices(); ++k) {
      const float* const y =
          call.kept->data.data() + static_cast<std::int64_t>(k * rows.size() + row) * out_;
      double dot = toward * costs_[k];
      for (std::int64_t i = 0; i < out_; ++i) dot += double{g[i]} * y[i];
      d.push_back(dot);
    }
    const std::span z(inputs[1]->data.data() + row * choices(), choices());
    const std::vector<double> gradient = gate_gradient(gate_shares(z), d);
    for (std::size_t k = 0; k < choices(); ++k)
      grad_inputs[1].data[row * choices() + k] = static_cast<float>(gradient[k]);
  }
}

}  // namespace numemu::experiments::fractrain
