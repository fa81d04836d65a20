// Recurrent layers: the products of all cells, the walk over the steps there and back, the cells.
#pragma once
#include <string>
#include <vector>

#include "emu/net/memory.hpp"
#include "emu/net/op.hpp"
#include "emu/net/ops/elementwise.hpp"

namespace numemu::net {

struct RecurrentOptions {
  std::int64_t in = 1, hidden = 1;
  /// The states before the first step are inputs (h [batch, hidden], of an LSTM also c), else zero.
  bool initial = false;
};

/// x [batch, time, in] -> h [batch, time, hidden]. The product ".input" covers all steps at once:
/// weight [gates hidden, in] x_t + bias. ".recurrent" is one product a step, recurrent [rows,
/// hidden] h_t-1, from the second step on (from the first where the initial states are inputs).
/// Backward: ".recurrent" has one dgrad a step and one wgrad over all, ".input" has one of each.
/// What a cell needs again for backward is the context.
class Recurrent : public Op {
 public:
  const RecurrentOptions& options() const { return options_; }
  Shape output_shape(Shapes inputs) const override;
  OperatorMemory memory(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 protected:
  /// What the cells of one kind share.
  struct Form {
    std::int64_t gates = 1;    ///< rows of the weights for a unit
    std::int64_t kept = 1;     ///< numbers of the context for a unit and step
    std::int64_t states = 1;   ///< h, or h and c
    std::int64_t outputs = 1;  ///< numbers of the result for a unit: h, or h and c
    /// Recurrent sums have a bias and gradients of their own.
    bool own_sums = false;
    /// The last gate reads not h but r h, which a product of its own (".candidate") multiplies.
    bool candidate = false;
    std::int64_t recurrent_gates() const { return candidate ? gates - 1 : gates; }
  };
  /// `initial`: what backward reads initial states for. Throws Error when a size is not positive.
  Recurrent(std::string_view kind, const RecurrentOptions&, const Form&, Use initial = Use::linear);

  /// A step of all samples.
  struct StepOf {
    const OpCall& call;
    std::int64_t batch, time, t;
    bool from_zero;  ///< the states before it are zero
    std::int64_t repetition, repetitions;
  };
  struct Forward {
    const float* input_sums;  ///< [batch, time, gates hidden]
    const float* state_sums;  ///< [batch, recurrent gates hidden]
    Tensor& state;            ///< [batch, hidden]: h before the step, then after it
    float* cells;             ///< [batch, hidden]: c likewise
    float* kept;              ///< [batch, time, kept hidden], or null
    float* output;            ///< [batch, time, outputs hidden]
  };
  struct Backward {
    const float* kept;
    const float* initial_state;  ///< [batch, hidden] or null
    const float* initial_cells;
    const float* grad_output;
    const float* grad_state;   ///< [batch, hidden], of h after the step by the steps behind it
    float* grad_cells;         ///< [batch, hidden], of c after the step, then before it
    float* states;             ///< [batch, rows, hidden], of h after the step
    std::int64_t first, rows;  ///< the step's row of `states` is first + t
    float* grad_sums;          ///< [batch, time, gates hidden]
    float* grad_own_sums;      ///< [batch, time, recurrent gates hidden] where the cell has them
    float* grad_step;          ///< [batch, recurrent gates hidden]
    float* carry;              ///< [batch, hidden], of h before the step beside the products
    float* reset;              ///< [batch, time, hidden]: r h, where there is a candidate
    float* grad_candidate;     ///< [batch, time, hidden]
  };
  virtual void advance(const StepOf&, const Forward&) const = 0;
  virtual void retreat(const StepOf&, const Backward&) const = 0;

  /// f(sample, j) for every unit of a [batch, hidden] state.
  template <class F>
  void for_each_unit(std::int64_t batch, const F& f) const {
    const std::int64_t hidden = options_.hidden;
    for_each_row(batch, hidden * form_.kept, [&](std::int64_t sample) {
      for (std::int64_t j = 0; j < hidden; ++j) f(sample, j);
    });
  }
  /// The part of a product's name behind the layer's.
  static constexpr const char *kInput = ".input", *kRecurrent = ".recurrent",
                              *kCandidate = ".candidate";

  RecurrentOptions options_;
  Form form_;
};

/// h_t = tanh((weight x_t + bias) + recurrent h_t-1), every operation rounded to float32; or the
/// rectified sum. The context is h.
class Rnn final : public Recurrent {
 public:
  /// Throws Error when a size is not positive.
  explicit Rnn(const RecurrentOptions& options, bool rectified = false)
      : Recurrent("rnn", options, {.gates = 1, .kept = 1}), rectified_(rectified) {}
  bool rectified() const { return rectified_; }

 private:
  void advance(const StepOf&, const Forward&) const override;
  void retreat(const StepOf&, const Backward&) const override;

  bool rectified_;
};

/// i, f, g, o = (weight [4 hidden, in] x_t + bias [4 hidden]) + recurrent [4 hidden, hidden] h_t-1,
/// c_t = sigmoid(f) c_t-1 + sigmoid(i) tanh(g), h_t = sigmoid(o) tanh(c_t), every operation rounded
/// to float32. Gates and cells are the context.
class Lstm final : public Recurrent {
 public:
  /// With `cells` a row of the result holds h, then c. Throws Error when a size is not positive.
  explicit Lstm(const RecurrentOptions&, bool cells = false);
  Lstm(std::int64_t in, std::int64_t hidden) : Lstm(RecurrentOptions{.in = in, .hidden = hidden}) {}
  bool cells() const { return form_.outputs == 2; }

 private:
  void advance(const StepOf&, const Forward&) const override;
  void retreat(const StepOf&, const Backward&) const override;
};

/// z, r = sigmoid of weight x_t + bias + recurrent h_t-1, h_t = (1 - z) n + z h_t-1, every
/// operation rounded to float32. Gates are in the order z, r, n; z, r, n and h are the context.
/// Reset after the product (cuDNN, PyTorch; ONNX's linear_before_reset): n = tanh(a + r b), a of
/// the input, b = recurrent h_t-1 + recurrent_bias, which the other gates have, too; b is kept.
/// Before it: n = tanh(a + candidate [hidden, hidden] (r h_t-1)), a third product, ".candidate".
class Gru final : public Recurrent {
 public:
  /// Throws Error when a size is not positive.
  explicit Gru(const RecurrentOptions&, bool reset_after = true);
  bool reset_after() const { return !form_.candidate; }

 private:
  void advance(const StepOf&, const Forward&) const override;
  void retreat(const StepOf&, const Backward&) const override;
};

}  // namespace numemu::net
