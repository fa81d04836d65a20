// A small convolutional network and images for it, for tests of zero activation prediction.
#pragma once
#include "emu/net/build/builder.hpp"
#include "experiments/zap/zap_trial.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace numemu::experiments::testing {

/// Untrained; two sites, one behind the first convolution, with or without batch normalisation.
inline TrainedNet small_zap_net(bool norm) {
  net::Builder net("small", {8, 8, 1}, 10);
  net.conv3x3("conv1", 3).relu("relu1").conv3x3("conv2", 4);
  if (norm) net.batch_norm("bn2");
  net.relu("relu2").max_pool("pool", 2).flatten("flatten").classifier("fc");
  TrainedNet trained{net.take(), "", "0123456789abcdef"};
  net::initialize(trained.graph, 3);
  return trained;
}

inline ZapTrial small_zap_trial() {
  ZapTrial trial;
  trial.train_samples = 128;
  trial.epochs = 1;
  trial.images = 200;
  trial.thresholds = {-0.5, 0, 0.5};
  trial.budgets = {0.05, 0.2};
  return trial;
}

}  // namespace numemu::experiments::testing
