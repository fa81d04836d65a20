// Splits of few bits into exponent and mantissa under a lognormal law, looks at gradients, and the
// questions of lognormal-gradients.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/analysis/cells.hpp"
#include "formats/format.hpp"
#include "formats/storage/fields.hpp"

namespace numemu::experiments::lognormal_gradients {

// Source: Chmiel et al., Neural gradients are near-lognormal, ICLR 2021.
// log2|x| has the mean `mean` and the standard deviation `sigma` after scaling: base 2 throughout.

/// One sign bit, and how the others are divided.
struct Split {
  int exponent = 1, mantissa = 0;
  int bits() const { return 1 + exponent + mantissa; }
  std::string name() const;    ///< "1-4-3"
  std::string format() const;  ///< "e4m3+finite": bias 2^(exponent-1) - 1, every code a number
};

/// Of the published recipe: how many binades below 1 it puts the mean of log2 |g|.
inline constexpr double kPublishedMargin = 3;

/// Every split of `bits` (3 or more) with an exponent bit, by ascending exponent bits.
std::vector<Split> splits_of(int bits);

/// The idealised format, in closed form: zero below 2^-E, saturation at 2^E, E = 2^(exponent-1),
/// between them the mean rounding error 2^-mantissa / (8 ln 2) of log-uniform numbers.
double idealised_error(const Split&, double sigma, double mean);
/// The idealised format's relative error of one number x > 0, which it rounds in its own binade.
double idealised_error_of(const Split&, double x);

/// The values of a real format.
class FormatGrid {
 public:
  explicit FormatGrid(const Format&);
  /// Of cells as cells() gives them, those below zero left out.
  explicit FormatGrid(const std::vector<Cell>&);
  /// The expected relative error to nearest with saturation, exact: cell by cell, by the partial
  /// moments of 1 and 1 / x.
  double expected(double sigma, double mean) const;
  /// Of one number x > 0.
  double error_of(double x) const;
  /// The mean with the least expected error, a multiple of 1/4.
  double best_mean(double sigma) const;

 private:
  std::vector<Cell> cells_;          ///< from zero on
  double lowest_ = 0, highest_ = 0;  ///< log2 of the least and the largest positive value
};

/// Where the split of least error changes as sigma grows from 0.1 to 25.
struct Switch {
  double sigma;
  Split from, to;
};
using ErrorOf = std::function<double(const Split&, double sigma)>;
std::vector<Switch> switches(int bits, const ErrorOf&);
/// The split of least error.
Split best_split(int bits, double sigma, const ErrorOf&);

// Looks at the gradients of float32 training: their laws, and what every split does to them.

/// One split of a width and the values it has.
struct Candidate {
  Split split;
  FormatGrid grid;
};

/// Every split of these widths.
std::vector<Candidate> candidates_of(const std::vector<int>& widths);

/// When the gradients are looked at: evenly, `looks` times an epoch, first of all at the first
/// step.
struct Looks {
  std::int64_t looks = 1, steps_per_epoch = 1;
  bool at(std::int64_t step) const {
    return step % steps_per_epoch == 0 ||
           step * looks / steps_per_epoch != (step - 1) * looks / steps_per_epoch;
  }
};

/// What a split does to gradients at the mean that is best for their sigma.
struct SplitError {
  double mean = 0, predicted = 0, measured = 0;

  static void fields(auto& self, const auto& visit) {
    visit("mean", self.mean);
    visit("predicted", self.predicted);
    visit("measured", self.measured);
  }
};

/// The gradients of a layer in one step.
struct Look {
  struct Law {
    double mean = 0, sigma = 0;

    static void fields(auto& self, const auto& visit) {
      visit("mean", self.mean);
      visit("sigma", self.sigma);
    }
  };
  std::size_t n = 0;
  double zeros = 0;
  Law ln = {}, log2 = {};
  Named<double> ks = {};  ///< distances of laws of the elements that are not zero, signs included
  std::vector<SplitError> errors = {};  ///< in the order of the candidates
  /// Of ln|g|, kBins of equal width over kBinSigmas deviations to either side of the mean; of a
  /// layer's last look alone.
  std::vector<std::int64_t> bins = {};
  std::string layer = {};
  std::int64_t step = 0, epoch = 0;

  static constexpr int kBins = 40;
  static constexpr double kBinSigmas = 5;

  static void fields(auto& self, const auto& visit) {
    visit("n", self.n);
    visit("zeros", self.zeros);
    visit("ln", self.ln);
    visit("log2", self.log2);
    visit("ks", self.ks);
    visit("errors", self.errors);
    visit("bins", self.bins, kIfAny);
    visit("layer", self.layer);
    visit("step", self.step);
    visit("epoch", self.epoch);
  }
};

/// Lognormal numbers: closed forms against draws, the best split over sigma, the published margin
/// (settings samples, sigmas, means, draw_widths, widths).
void add_draws(const ExperimentRun&, Conclusion&);

/// The lognormal law of a layer's gradients in one epoch of float32 training, mean over the seeds,
/// to base 2.
struct EpochFit {
  std::string layer;
  std::int64_t epoch = 0;
  double mean = 0, sigma = 0;
};

/// Gradients of float32 training: fits of layers over training, distances of three laws, and
/// relative errors of every split, predicted by the fits and measured (settings looks, widths,
/// seeds). Returns the fits, layers in the order of forward, each with its epochs in order.
std::vector<EpochFit> add_gradients(const ExperimentRun&, const std::string& net,
                                    const net::Dataset&, Conclusion&);

/// Networks trained with gradients of few bits at every split, beside what the fits predict
/// (settings net, train_widths, seeds).
void add_training(const ExperimentRun&, const net::Dataset&, const std::vector<EpochFit>&,
                  Conclusion&);

/// A list setting of widths in bits, 3 to 8.
std::vector<int> widths_of(const Settings&, const std::string& key);

}  // namespace numemu::experiments::lognormal_gradients
