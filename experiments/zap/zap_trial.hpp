// One set of predictors for one network: trained, swept over thresholds, optimised, recalibrated.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// What one trial depends on, beside network and data.
struct ZapTrial {
  int mask = 5;
  std::uint64_t seed = 0;            ///< of the predictors' weights and the order of training
  bool first = false;                ///< predictors behind the first convolution too
  std::int64_t train_samples = 0;    ///< training images whose maps the predictors learn from
  std::int64_t epochs = 5;           ///< of that
  std::int64_t images = 0;           ///< of the test split
  std::vector<double> thresholds;    ///< swept, the same in every layer
  std::vector<double> budgets;       ///< of error, summed over the layers: thresholds are optimised
  std::int64_t finetune_epochs = 0;  ///< of the network, predictors at work, at each budget
  std::string predictors = {};  ///< file for them, thresholds as for the first budget; "": none
};

/// Point of the trial: its settings but for the file, and the identity of network and data.
Json point_of(const ZapTrial&, const TrainedNet&, const net::Dataset&);

/// {"conv_macs", "layers": [...], "points": [...], "chosen": [...]}. A layer has its multiply-adds,
/// the losses of training, its curve on validation images with the logistic fits, and estimates on
/// float32 test maps beside those on validation maps. A point has the accuracy on test images, how
/// many images only the float32 network or only this one gets right, and the tally of every layer;
/// with batch normalisation also the accuracy after its statistics were re-estimated. The network
/// is left as it was.
Json run_zap_trial(const ZapTrial&, TrainedNet&, const net::Dataset&,
                   const net::Evaluation& baseline);

}  // namespace numemu::experiments
