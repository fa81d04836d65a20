// Dynamic precision: a dense layer with one weight and several precisions, of which a gate picks
// one for each row (dynamic fractional quantization of FracTrain, Fu et al., NeurIPS 2020), and
// networks with two of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/op.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/fractrain/precision.hpp"
#include "formats/storage/json.hpp"

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

  net::Shape output_shape(net::Shapes inputs) const override;
  void forward(const net::OpCall&, net::OpInputs inputs, net::Tensor& output) const override;
  void backward(const net::OpCall&, const net::OpBackward&) const override;

 private:
  std::size_t choices() const { return costs_.size(); }
  std::vector<std::size_t> chosen(const net::Tensor& logits) const;

  std::int64_t in_, out_;
  std::vector<double> costs_;
  double beta_;
  mutable std::vector<std::int64_t> taken_;
};

/// The published choices with weights of 4 bits, but for the one with gradients of 12 bits.
std::vector<Precision> gate_choices();

/// flatten, fc1, block1, block2, fc2, hidden layers of 128 units, ReLU between them. The gate of a
/// block reads what the block reads: gateI.in to 16 units, ReLU, gateI.out to a logit per choice.
struct GatedNet {
  net::Graph graph;
  std::vector<GatedDense*> blocks;  ///< in the graph
};
GatedNet gated_net(const net::Shape& image, std::int64_t classes,
                   const std::vector<Precision>& choices, double beta);

/// The blocks at their choices, all else at `rest`.
Json gated_recipe(const std::vector<Precision>& choices, const Precision& rest);

/// Static precision against precision that a gate chooses for each sample in two layers.
void add_dynamic(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::fractrain
