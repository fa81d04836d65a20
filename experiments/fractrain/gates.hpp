// Dynamic precision: a dense layer with one weight and several precisions, of which a gate picks
// one for each row (dynamic fractional quantization of FracTrain, Fu et al., NeurIPS 2020), and
// networks with two of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/op.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::fractrain {

// Bits of the operands of training, what they cost in exact arithmetic, and the ways of choosing
// them over a training that fractrain compares.

/// Bits of the operands of a layer's products.
struct Precision {
  int weight = 0, activation = 0, gradient = 0;

  /// "3/6": weights and activations of 3 bits, gradients of 6, each from 2 to 8. Throws Error.
  static Precision parse(const std::string& text);
  std::string text() const;
  bool operator==(const Precision&) const = default;
};

/// Multiply-adds of the three products of a layer or network.
struct MultiplyAdds {
  double fprop = 0, dgrad = 0, wgrad = 0;
};

/// In multiply-adds of 32 x 32 bits: each counts as the product of its operands' bits over 32 x 32.
double cost(const Precision&, const MultiplyAdds&);
/// Of one multiply-add where the three products have equal shares, as published.
double published_cost(const Precision&);
/// The mean published cost of epochs at those precisions over that of `whole`.
double published_share(const std::vector<Precision>& epochs, const Precision& whole);

struct Method {
  /// tested: the second precision is that of the test alone.
  enum class Stages : std::uint8_t { one, tested, schedule, indicator } kind = Stages::one;
  std::string name;
  std::vector<Precision> precisions;  ///< by stage; float32: one of 32 bits
  std::int64_t epochs = 0;

  bool progressive() const { return kind == Stages::schedule || kind == Stages::indicator; }
};

/// When stages begin by the published indicator: eps of the first turning point, multiplied by
/// alpha after the first and after the second.
struct Indicator {
  double eps = 0, alpha = 0;
};

/// A network and which of its layers follow the stages.
struct Setup {
  std::string net;
  /// As published: the first and the last layer keep the precision `rest`, and weights have a range
  /// per output channel. Else all layers follow, and weights have a range per tensor.
  bool published = false;
  std::vector<std::string> ends = {};  ///< the first and the last layer; none unless published
  Precision rest = {};
};
Setup setup_of(const std::string& net, bool published, const net::Dataset&,
               const std::vector<Method>&);

/// Every operand by its smallest and largest element (group(uintK,tensor,float32,min), weights of
/// `channels` by those of output channels), gradients with stochastic rounding. {} for 32 bits.
Json roles_of(const Precision&, bool channels = false);
Json recipe_of(const Method&, const Indicator&, const Setup& = {});

/// The precision that all others are compared with: the last stage from the start, which is the
/// first method. Then float32, those of the setting `static`, the first stage tested at the last,
/// the stages by schedule and by the indicator, and the last stage for as many epochs as the
/// schedule's cost pays for.
std::vector<Method> methods_of(const Settings&);

/// Accuracy against the cost of static and of progressive precision, of `net` in the published
/// set-up and of `contrast_net` with all layers alike.
void add_progressive(const ExperimentRun&, const net::Dataset&, Conclusion&);

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
