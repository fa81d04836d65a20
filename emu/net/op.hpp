// An operator: forward and backward on tensors, with calls to the numerics that decides bits.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// A tensor that belongs to an operator ("conv1.weight").
struct Parameter {
  std::string name;  ///< "weight" in the operator; Graph::add puts the layer's name before it
  Tensor value;
  std::int64_t fan_in = 1;  ///< products summed into one output: the scale of its initial values
                            ///< (0: see `initial`; negative: keeps the values it was made with)
  float initial = 0;        ///< where fan_in is 0: every element's first value
  bool trained = true;      ///< false: running statistics and constants, which no optimizer touches
  bool vector = false;      ///< a bias or a gain, however many axes it has: see decays()
  /// The parameter of the network whose elements these are (emu/net/tied.hpp), which is trained in
  /// its place; "" for most.
  std::string tied_to = {};
  /// Axis i of this value is axis tied_axes[i] of that one; empty: the elements in their order.
  std::vector<int> tied_axes = {};

  bool is_tied() const { return !tied_to.empty(); }
};

/// A product of an operator: its layer is the operator's name with this suffix.
struct OpProduct {
  std::string suffix;  ///< "" or ".recurrent"
  int weight = -1;     ///< the parameter that is its right operand; -1: two activations
};

/// What a training step makes of an untrained parameter, a running statistic: for each of
/// `statistics` in turn running' = (1 - momentum) running + momentum statistic, in float64, rounded
/// to float32 behind the last.
struct BufferUpdate {
  std::size_t parameter = 0;  ///< its place in the operator's parameters()
  double momentum = 0;
  std::vector<std::vector<double>> statistics;
};
void apply(const BufferUpdate&, Tensor& running);

/// The context of a call of an operator.
struct OpCall {
  std::string_view layer;
  Numerics& numerics;
  Phase phase = Phase::inference;  ///< training: forward keeps what backward needs
  std::uint64_t seed = 0;          ///< of the run, for dropout
  Step step = {};                  ///< of the run; its phase is that of the numerics
  /// Training, forward only: it may leave one tensor here, kept as a statistic.
  Tensor* context = nullptr;
  /// Training, forward only: where new values of untrained parameters go.
  std::vector<BufferUpdate>* buffers = nullptr;
  /// Backward only: the context that forward left; null without one.
  const Tensor* kept = nullptr;
};

/// What an operator's result is: of a product, of vector arithmetic (which the numerics may
/// rewrite), or the input's own elements under another shape (for which no hook is called again).
enum class ResultKind : std::uint8_t { product, vector, view };

/// What backward reads the inputs for: the first, the second, all behind it. None: it does not read
/// them.
using InputUses = std::array<std::optional<Use>, 3>;
constexpr InputUses every_input(std::optional<Use> use) { return {use, use, use}; }
inline constexpr InputUses kNoInput{};

/// What runtimes that keep tensors as codes of integers (policies/edges) do with an operator beside
/// products. Views of one input are their input, whatever they declare.
enum class OnCodes : std::uint8_t {
  never,       ///< its inputs and its result are float32 numbers
  computes,    ///< its inputs and its result are codes, or none of them is
  adds,        ///< so; a recipe may give its operands one scale
  normalises,  ///< so; the product before it may take it into its epilogue
  bounds,      ///< so, as ReLU does: it keeps a part of the range
  picks,       ///< elements of its result are elements of its first input: one tensor
  joins,       ///< elements of its result are those of its inputs, which may have one scale
};

/// What an operator is, whatever it is given: its constructor declares it.
struct OpTraits {
  std::string_view kind;
  ResultKind result = ResultKind::vector;
  InputUses inputs = every_input(Use::linear);
  std::optional<Use> output = std::nullopt;  ///< what backward reads the output for
  /// Whether forward may be given its first input as its output: element i of the result depends on
  /// elements i alone.
  bool in_place = false;
  OnCodes on_codes = OnCodes::never;
  std::vector<OpProduct> products = {};  ///< in the order of forward
};

/// Float32 elements beside inputs, outputs and their gradients.
struct OperatorMemory {
  std::int64_t forward = 0;   ///< while forward runs
  std::int64_t backward = 0;  ///< while backward runs
  std::int64_t context = 0;   ///< left by forward for backward
};

/// Null: one that backward does not read.
using OpInputs = std::span<const Tensor* const>;

/// What backward reads and writes.
struct OpBackward {
  OpInputs inputs;
  const Tensor* output;  ///< null where it is not read
  const Tensor& grad_output;
  /// Allocated and zero where `want_inputs`, else empty; all written.
  std::span<Tensor> grad_inputs;
  /// Allocated, empty for untrained ones; all written.
  std::span<Tensor> grad_parameters;
  bool want_inputs;
};

/// One operator. It holds its shape parameters and its trained tensors, no state of a run.
class Op {
 public:
  virtual ~Op() = default;
  const OpTraits& traits() const { return traits_; }
  std::string_view kind() const { return traits_.kind; }
  ResultKind result() const { return traits_.result; }
  bool in_place() const { return traits_.in_place; }
  OnCodes on_codes() const { return traits_.on_codes; }
  const std::vector<OpProduct>& products() const { return traits_.products; }
  std::optional<Use> input_use(std::size_t i) const {
    return traits_.inputs[std::min(i, traits_.inputs.size() - 1)];
  }
  std::optional<Use> output_use() const { return traits_.output; }
  virtual std::span<Parameter> parameters() { return parameters_; }
  std::span<const Parameter> parameters() const { return const_cast<Op*>(this)->parameters(); }

  /// Shape of the result; throws Error naming the operator when the inputs do not fit.
  virtual Shape output_shape(Shapes inputs) const = 0;
  /// What it needs in the order of its tensors.
  virtual OperatorMemory memory(Shapes) const { return {}; }
  /// output has output_shape(), and any contents.
  virtual void forward(const OpCall&, OpInputs inputs, Tensor& output) const = 0;
  virtual void backward(const OpCall&, const OpBackward&) const = 0;

 protected:
  explicit Op(OpTraits traits) : traits_(std::move(traits)) {}

  std::vector<Parameter> parameters_;

 private:
  OpTraits traits_;
};

}  // namespace numemu::net
