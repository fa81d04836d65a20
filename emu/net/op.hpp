// An operator: forward and backward on tensors, with calls to the numerics that decides bits.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
};

/// A product of an operator: its layer is the operator's name with this suffix.
struct OpProduct {
  std::string suffix;  ///< "" or ".recurrent"
  int weight = -1;     ///< the parameter that is its right operand; -1: two activations
};

/// The new value of an untrained parameter, computed in a training step (running statistics).
struct BufferUpdate {
  std::size_t parameter = 0;  ///< its place in the operator's parameters()
  Tensor value;
};

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
/// rewrite), or the input's own elements under another shape (for which no moment is called again).
enum class ResultKind : std::uint8_t { product, vector, view };

/// One operator. It holds its shape parameters and its trained tensors, no state of a run.
class Op {
 public:
  virtual ~Op() = default;
  virtual std::string_view kind() const = 0;
  virtual ResultKind result() const { return ResultKind::vector; }
  virtual std::span<Parameter> parameters() { return {}; }
  std::span<const Parameter> parameters() const { return const_cast<Op*>(this)->parameters(); }
  /// Its products, in the order of forward.
  virtual std::vector<OpProduct> products() const { return {}; }
  /// Shape of the result; throws Error naming the operator when the inputs do not fit.
  virtual Shape output_shape(std::span<const Shape> inputs) const = 0;
  /// Whether forward may be given its first input as its output: element i of the result depends on
  /// elements i alone.
  virtual bool in_place() const { return false; }
  /// output has output_shape(), and any contents.
  virtual void forward(const OpCall&, std::span<const Tensor* const> inputs,
                       Tensor& output) const = 0;
  /// What backward reads input i and the output for; none: it does not read them.
  virtual std::optional<Use> input_use(std::size_t) const { return Use::linear; }
  virtual std::optional<Use> output_use() const { return std::nullopt; }
  /// Gradients of the inputs (allocated and zero where `want_inputs`, else empty) and of the
  /// parameters (allocated; empty for untrained ones), all written. Each inputs[i] and output is
  /// null where backward does not read it.
  virtual void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                        const Tensor& grad_output, std::span<Tensor> grad_inputs,
                        std::span<Tensor> grad_parameters, bool want_inputs) const = 0;
};

}  // namespace numemu::net
