// A long short-term memory layer (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et
// al. 2000).
#pragma once
#include "emu/net/ops/recurrent.hpp"

namespace numemu::net {

/// i, f, g, o = (weight [4 hidden, in] x_t + bias [4 hidden]) + recurrent [4 hidden, hidden] h_t-1,
/// c_t = sigmoid(f) c_t-1 + sigmoid(i) tanh(g), h_t = sigmoid(o) tanh(c_t), every operation rounded
/// to float32. Gates and cells are the context.
class Lstm final : public Recurrent {
 public:
  /// With `cells` a row of the result holds h, then c. Throws Error when a size is not positive.
  explicit Lstm(const RecurrentOptions&, bool cells = false);
  Lstm(std::int64_t in, std::int64_t hidden) : Lstm(RecurrentOptions{.in = in, .hidden = hidden}) {}
  std::string_view kind() const override { return "lstm"; }
  bool cells() const { return form_.outputs == 2; }

 private:
  void advance(const StepOf&, const Forward&) const override;
  void retreat(const StepOf&, const Backward&) const override;
};

}  // namespace numemu::net
