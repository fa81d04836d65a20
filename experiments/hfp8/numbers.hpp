// Numbers of HFP8: closed forms of their noise and sums, updates that masters lose, and the
// questions.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/density.hpp"
#include "formats/format.hpp"

namespace numemu::experiments::hfp8 {

// Sources: docs/experiments/hfp8.md and docs/experiments/accumulator.md.

/// E[(err / x)^2] to nearest with m mantissa bits for log-uniform x: 3 / (8 ln 2) 4^-m / 12.
double relative_noise(int mantissa);

/// The mean and the variance of what one addition adds to a register whose last place is u.
struct Added {
  double mean = 0, variance = 0;
};
using AddedAt = std::function<Added(double ulp)>;
/// Of numbers p of that law: u round(p / u), the variance about p.
AddedAt added_by(std::shared_ptr<const Density>, double mean);
/// Of the same number v every time, ties to even.
AddedAt added_by(double v);

/// The sum of K positive-mean numbers, added one by one to a register of `mantissa` bits to
/// nearest: binade after binade, 2^n / g(2^(n-mantissa)) additions in each. Relative error of the
/// expectation.
double expected_sum(const AddedAt&, double mean, double count, int mantissa);
/// In chunks: sums of `chunk` numbers, then the sum of those. `deviation`: of one number.
double expected_chunked_sum(const AddedAt&, double mean, double deviation, double count,
                            double chunk, int mantissa);

/// The share of the noise of a normalised linear layer that statistics of the quantized layer leave
/// over those of the float32 layer: errors of weights shift a channel's mean where inputs have one,
/// and re-estimation takes that shift away. `of_weights` and `of_inputs`: noise to signal of the
/// operands; `mean_square`: E[x]^2 / E[x^2] of the inputs.
double retuned_share(double of_weights, double of_inputs, double mean_square);

// Updates that a low-precision master loses: what a float32 run predicts, and what happens.

/// The distance from |w| to the next value of the format: 2^(floor(log2|w|) - m), and that of
/// subnormals below them.
double ulp_of(const Format&, double w);

/// Shares of the weights of a layer.
struct UpdateLook {
  std::int64_t step = 0;
  std::string layer;
  double small = 0;  ///< whose change is below half an ulp of the master format, or none
  double unchanged = 0;

  static void fields(auto& self, const auto& visit) {
    visit("step", self.step);
    visit("layer", self.layer);
    visit("small", self.small);
    visit("unchanged", self.unchanged);
  }
};

/// Compares the weights of a network before and after a step, one weight matrix at a time.
class UpdateWatch {
 public:
  UpdateWatch(const Format& master, std::int64_t every) : master_(master), every_(every) {}
  /// After every step. Looks at the change that each `every`-th step made, from the second on.
  void see(const net::Graph&, std::int64_t step);
  const std::vector<UpdateLook>& looks() const { return looks_; }

 private:
  const Format& master_;
  std::int64_t every_;
  std::map<std::string, std::vector<float>> before_;
  std::vector<UpdateLook> looks_;
};

/// Rounding noise of normal numbers in the three formats (setting samples).
void add_rounding(const ExperimentRun&, Conclusion&);
/// Sums of `count` numbers, uniform with mean 1 and that deviation and rounded to 1-6-9, by a unit
/// over their exact sums: the mean over `repeats` of them.
MeanError measured_sums(const std::string& unit, double deviation, std::int64_t count,
                        std::int64_t repeats, std::uint64_t seed);
/// Sums in a 1-6-9 register by chunk length (settings lengths, chunks, repeats).
void add_sums(const ExperimentRun&, Conclusion&);
/// Training with 1-4-3 forward and 1-5-2 backward, by master and loss scale; lost updates (settings
/// net, seeds and those of training).
void add_training(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// Both kinds of 8 bits, no unit where `unit` is empty: float32 products.
Json recipe_of(const std::string& gradient, const std::string& loss_scale, const Json& update,
               const std::string& unit = "", const std::string& forward = "hfp8_e4m3");
/// Networks trained by workers in HFP8, in 1-5-2 alone, and with an exchange in 1-5-2 (settings of
/// workers::with_training).
void add_exchange(const ExperimentRun&, const net::Dataset&, Conclusion&);
/// How an operand is rounded.
struct Operand {
  std::string format;
  double scale = 1;
};
/// Noise of the results of a normalised layer.
struct LayerNoise {
  double stale = 0;  ///< by the statistics of the float32 layer
  double tuned = 0;  ///< by its own

  static void fields(auto& self, const auto& visit) {
    visit("stale", self.stale);
    visit("tuned", self.tuned);
  }
};
/// Of a linear layer of 64 inputs behind a ReLU and 32 outputs, `rows` samples, all numbers of
/// deviation 1 before the ReLU.
LayerNoise layer_noise(const Operand& weights, const Operand& inputs, std::int64_t rows,
                       std::uint64_t seed);
/// Statistics of batch normalisation re-estimated after quantization: a linear layer, then a
/// network (settings layer_rows, layers, norm_*).
void add_norms(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::hfp8
