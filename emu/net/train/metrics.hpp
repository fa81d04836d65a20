// The metrics of an epoch, and the sums behind them.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/net/exchange.hpp"
#include "formats/storage/fields.hpp"

namespace numemu::net {

struct StepResult;

struct EpochMetrics {
  std::int64_t epoch = 0;
  std::int64_t step = 0;     ///< steps of the run so far
  double learning_rate = 0;  ///< of the epoch's last step
  double train_loss = 0;     ///< mean over the targets, with the penalties of their steps
  double train_top1 = 0, validation_loss = 0, validation_top1 = 0;
  double gradient_norm = 0;  ///< mean global norm of the steps taken, before clipping
  std::int64_t skipped = 0;  ///< steps whose gradients the numerics did not accept
  double loss_scale = 1;     ///< of the epoch's last step
  Member<double> dropped;    ///< mean share of samples that took no part, if any
  /// By parameter, the mean over the steps taken; empty for one worker.
  std::vector<WireBits> wire;

  /// Of a stored run (run_state.hpp).
  template <class Self, class Visit>
  static void fields(Self& self, const Visit& visit) {
    visit("epoch", self.epoch);
    visit("step", self.step);
    visit("learning_rate", self.learning_rate);
    visit("train_loss", self.train_loss);
    visit("train_top1", self.train_top1);
    visit("validation_loss", self.validation_loss);
    visit("validation_top1", self.validation_top1);
    visit("gradient_norm", self.gradient_norm);
    visit("skipped", self.skipped);
    visit("loss_scale", self.loss_scale);
    visit("dropped", self.dropped);
    visit("wire", self.wire, kIfAny);
  }
};

/// The part of an epoch that is behind: plain sums in the order of the steps.
struct EpochSums {
  double loss = 0, gradient_norm = 0;
  std::int64_t targets = 0, right = 0, steps = 0, skipped = 0;
  double learning_rate = 0, loss_scale = 1;
  Member<double> dropped;
  std::vector<WireBits> wire;

  /// Returns the mean loss of the step with its penalty; 0 without the loss where no target took
  /// part.
  double add(const StepResult&, double rate);
  /// Means over the epoch; the validation is the caller's.
  EpochMetrics metrics(std::int64_t epoch, std::int64_t step) const;

  /// Of a stored run (run_state.hpp).
  template <class Self, class Visit>
  static void fields(Self& self, const Visit& visit) {
    visit("loss", self.loss);
    visit("gradient_norm", self.gradient_norm);
    visit("targets", self.targets);
    visit("right", self.right);
    visit("steps", self.steps);
    visit("skipped", self.skipped);
    visit("learning_rate", self.learning_rate);
    visit("loss_scale", self.loss_scale);
    visit("dropped", self.dropped);
    visit("wire", self.wire, kIfAny);
  }
};

/// exp(loss), within one ulp of float32: how many equally likely characters would be as hard.
double perplexity(double loss);
/// loss / ln 2
double bits_per_character(double loss);

}  // namespace numemu::net
