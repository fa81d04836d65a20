// A dense layer with one weight and several precisions, of which a gate picks one for each row
// (dynamic fractional quantization of FracTrain, Fu et al., NeurIPS 2020).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::experiments::fractrain {

/// The gradient of the logits z where the output is that of the largest one and p = softmax(z)
/// takes its place in backward: p_j (d_j - sum of p_k d_k), d_k the derivative of the loss by the
/// weight of choice k.
std::vector<double> gate_gradient(std::span<const double> p, std::span<const double> d);
/// softmax
std::vector<double> gate_shares(std::span<const float> logits);

/// y [rows, out] = x [rows, in] * weight^T + bias, computed once for every choice: recipes name
/// their products LAYER.0, LAYER.1, ... The second input has a logit per choice; a row takes the
/// result of the largest, the first of equal ones.
///
/// The loss gets beta times the mean cost of the rows' choices where that is at or above `target`,
/// else minus that: gates settle near it.
class GatedDense final : public net::Op {
 public:
  /// `costs`: of the choices, in per cent of a multiply-add of 32 x 32 bits.
  GatedDense(std::int64_t in, std::int64_t out, std::vector<double> costs, double beta);

  double target = 0;  ///< of the mean cost, in per cent
  /// How many rows of training took each choice.
  const std::vector<std::int64_t>& taken() const { return taken_; }

  std::string_view kind() const override { return "gated_dense"; }
  net::ResultKind result() const override { return net::ResultKind::product; }
  using net::Op::parameters;
  std::span<net::Parameter> parameters() override { return parameters_; }
  std::vector<net::OpProduct> products() const override;
  net::Shape output_shape(std::span<const net::Shape> inputs) const override;
  void forward(const net::OpCall&, std::span<const net::Tensor* const> inputs,
               net::Tensor& output) const override;
  std::optional<net::Use> input_use(std::size_t i) const override {
    return i == 0 ? net::Use::linear : net::Use::statistic;
  }
  void backward(const net::OpCall&, std::span<const net::Tensor* const> inputs,
                const net::Tensor* output, const net::Tensor& grad_output,
                std::span<net::Tensor> grad_inputs, std::span<net::Tensor> grad_parameters,
                bool want_inputs) const override;

 private:
  std::size_t choices() const { return costs_.size(); }
  std::vector<std::size_t> chosen(const net::Tensor& logits) const;

  std::int64_t in_, out_;
  std::vector<double> costs_;
  double beta_;
  std::vector<net::Parameter> parameters_;  ///< weight, bias
  mutable std::vector<std::int64_t> taken_;
};

}  // namespace numemu::experiments::fractrain
