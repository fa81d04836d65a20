// Networks trained stage by stage: every update from the local gradients of all stages, or from
// backpropagation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/layer_parallel/stages.hpp"

namespace numemu::experiments::layer_parallel {

struct Method {
  std::string name = {};
  std::int64_t rounds = 0;        ///< steps of the variables before an update; 0: backpropagation
  bool augmented = false;         ///< multipliers follow each of them
  std::int64_t serial_every = 0;  ///< every so many updates one is backpropagation's; 0: none
  std::string format = "";        ///< of variables, with the scale of each tensor; "": float32
  bool filtered = false;          ///< means of 2 x 2 pixels are kept of images of even size
};

/// What is kept of a variable under a method.
void store(const Method&, net::Tensor& lambda);
/// Bytes of all variables of a sample, without scales.
double stored_bytes(const Method&, const StageVariables&);

struct Trained {
  double top1 = 0;                            ///< per cent
  std::optional<std::int64_t> diverged = {};  ///< the first update, from 1, of no finite loss
  double bytes = 0;                           ///< of the variables of a sample

  double score() const;  ///< top1, NaN where the training diverged
  static void fields(auto& self, const auto& visit) {
    visit("top1", self.top1);
    visit("diverged", self.diverged);
    visit("bytes", self.bytes);
  }
};

/// By the options and the recipe of the trial; every method has the same batches and updates.
Trained train_stages(const TrainTrial&, const net::Dataset&, const Method&, std::int64_t stages,
                     double beta);

}  // namespace numemu::experiments::layer_parallel
