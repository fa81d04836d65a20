// A long short-term memory layer (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et
// al. 2000).
#pragma once
#include <vector>

#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

/// x [batch, time, in] -> h [batch, time, hidden], states zero before the first step:
/// i, f, g, o = (weight [4 hidden, in] x_t + bias [4 hidden]) + recurrent [4 hidden, hidden] h_t-1,
/// c_t = sigmoid(f) c_t-1 + sigmoid(i) tanh(g), h_t = sigmoid(o) tanh(c_t), every operation rounded
/// to float32. The product ".input" covers all steps at once; ".recurrent" is one product a step
/// from the second on. Backward: ".recurrent" has one dgrad per step and one wgrad over all,
/// ".input" has one of each. Gates and cells are the context.
class Lstm final : public Op, public HoldsMemory {
 public:
  /// Throws Error when a size is not positive.
  Lstm(std::int64_t in, std::int64_t hidden);
  std::string_view kind() const override { return "lstm"; }
  ResultKind result() const override { return ResultKind::product; }
  using Op::parameters;
  std::span<Parameter> parameters() override { return parameters_; }
  std::vector<OpProduct> products() const override { return {{".input", 0}, {".recurrent", 1}}; }
  Shape output_shape(std::span<const Shape> inputs) const override;
  OperatorMemory memory(std::span<const Shape> inputs) const override;
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  std::int64_t in_, hidden_;
  std::vector<Parameter> parameters_;  // weight, recurrent, bias
};

}  // namespace numemu::net
