// A plain recurrent layer (Elman 1990).
#pragma once
#include "emu/net/ops/recurrent.hpp"

namespace numemu::net {

/// h_t = tanh((weight x_t + bias) + recurrent h_t-1), every operation rounded to float32; or the
/// rectified sum. The context is h.
class Rnn final : public Recurrent {
 public:
  /// Throws Error when a size is not positive.
  explicit Rnn(const RecurrentOptions& options, bool rectified = false)
      : Recurrent(options, {.gates = 1, .kept = 1}), rectified_(rectified) {}
  std::string_view kind() const override { return "rnn"; }
  bool rectified() const { return rectified_; }

 private:
  void advance(const StepOf&, const Forward&) const override;
  void retreat(const StepOf&, const Backward&) const override;

  bool rectified_;
};

}  // namespace numemu::net
