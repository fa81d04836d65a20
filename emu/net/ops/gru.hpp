// A layer of gated recurrent units (Cho et al. 2014).
#pragma once
#include "emu/net/ops/recurrent.hpp"

namespace numemu::net {

/// z, r = sigmoid of weight x_t + bias + recurrent h_t-1, h_t = (1 - z) n + z h_t-1, every
/// operation rounded to float32. Gates are in the order z, r, n; z, r, n and h are the context.
/// Reset after the product (cuDNN, PyTorch; ONNX's linear_before_reset): n = tanh(a + r b), a of
/// the input, b = recurrent h_t-1 + recurrent_bias, which the other gates have, too; b is kept.
/// Before it: n = tanh(a + candidate [hidden, hidden] (r h_t-1)), a third product, ".candidate".
class Gru final : public Recurrent {
 public:
  /// Throws Error when a size is not positive.
  explicit Gru(const RecurrentOptions&, bool reset_after = true);
  std::string_view kind() const override { return "gru"; }
  bool reset_after() const { return !form_.candidate; }
  /// An initial state is a factor of the update gate's gradient and of what that multiplies.
  std::optional<Use> input_use(std::size_t i) const override {
    return i == 0 ? Use::linear : Use::statistic;
  }

 private:
  void advance(const StepOf&, const Forward&) const override;
  void retreat(const StepOf&, const Backward&) const override;
};

}  // namespace numemu::net
