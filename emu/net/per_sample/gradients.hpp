// Gradients of single samples in the form that their dot products need, from operands as they are
// or rounded to a format, and the influence of samples on each other that these give.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/per_sample/laws.hpp"
#include "emu/net/per_sample/operands.hpp"
#include "formats/conversion.hpp"

namespace numemu::net::per_sample {

/// How operands are stored: every tensor under one scale for all its samples.
struct Stored {
  const Format* format = nullptr;  ///< null: as they are
  Rounding rounding = {};
  std::uint64_t seed = 0;
  std::uint32_t first_tensor = 0;  ///< of the random bits: the operands have numbers from it on
  std::uint16_t draw = 0;
};
/// The scale at which the largest magnitude is the largest of the format.
float scale_of(const SampleOperand&, const Format&);

/// The gradients of samples in the form that their dot products need.
class SampleGradients {
 public:
  /// Of the first `count` samples, 0: all.
  SampleGradients(const std::vector<LayerOperands>&, const Stored&, std::int64_t count = 0);
  std::int64_t samples() const { return samples_; }
  /// The dot product of sample i and sample j of the other gradients, which are of the same
  /// network: (g . g')(x . x') where a layer's are factored, with + 1 behind x . x' for its bias.
  double dot(std::int64_t i, const SampleGradients&, std::int64_t j) const;

 private:
  struct Layer {
    bool factored = true, bias = false;
    std::int64_t channels = 0, depth = 0;
    std::vector<float> g, x;    ///< [samples, channels], [samples, depth]
    std::vector<double> whole;  ///< [samples, channels, depth], behind it [samples, channels]
  };
  std::int64_t samples_ = 0;
  std::vector<Layer> layers_;
};

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

}  // namespace numemu::net::per_sample
