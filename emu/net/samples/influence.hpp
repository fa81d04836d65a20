// TracIn: the influence of training samples on themselves and on test samples, summed over
// checkpoints, in float32 and with operands in formats (Pruthi et al., NeurIPS 2020, arXiv
// 2002.08484).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/samples/gradients.hpp"
#include "emu/net/samples/laws.hpp"

namespace numemu::net::samples {

/// Influences of one way to store operands.
struct Scores {
  std::vector<double> self;                  ///< [sample]
  std::vector<std::vector<double>> targets;  ///< [target][ranked sample]; empty: not ranked
};
/// Their laws.
struct ScoreLaws {
  std::vector<Moments> self;
  std::vector<std::vector<Moments>> targets;
};

/// The ways are float32 and of every format: to nearest, drawn once, drawn twice. Drawn once, both
/// sides of a self-influence have the same draw; influences on targets have one on each side.
class Influences {
 public:
  /// `ranked`: the training samples, from the first on, whose influence on each target is summed;
  /// `drawn`: the stochastic rounding; `seed`: of its random bits.
  Influences(std::vector<const Format*> formats, const Rounding& drawn, Batch training,
             Batch targets, std::int64_t ranked, std::uint64_t seed);

  /// A checkpoint at which the rate is `rate`.
  void add(const Graph&, double rate);
  /// Whether all self-influences in float32 are.
  bool finite() const;
  const std::vector<Scores>& scores() const { return scores_; }  ///< [way]
  /// [way], empty where there is no closed form: to nearest, and on targets but of fully connected
  /// networks drawn once.
  const std::vector<ScoreLaws>& laws() const { return laws_; }

 private:
  void add_scores(double rate, const SampleGradients& a, const SampleGradients& b,
                  const std::optional<SampleGradients>& targets, Scores&) const;
  void add_laws(double rate, const std::vector<LayerOperands>& operands,
                const std::vector<LayerOperands>& targets, const Format&, std::size_t nearest);

  std::vector<const Format*> formats_;
  Rounding drawn_;
  Batch training_, targets_;
  std::int64_t ranked_;
  std::uint64_t seed_;
  std::uint32_t checkpoint_ = 0;
  std::vector<Scores> scores_;
  std::vector<ScoreLaws> laws_;
};

}  // namespace numemu::net::samples
