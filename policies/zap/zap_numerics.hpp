// Numerics that skip what predictors predict to be zero, on top of any other numerics.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/zap/bookkeeping.hpp"
#include "policies/zap/zap_network.hpp"

namespace numemu::policies {

/// Answers as `inner` does, and sets each activation of a layer of the ZapNetwork to zero that its
/// predictor says is zero: after the result's own rounding (vector_result), before its storage
/// format (edge). In training the gradient does not pass where it did, for ReLU looks at its
/// output. Predictors compute in float32 and do not change.
class ZapNumerics final : public net::Forwarding {
 public:
  /// Both must outlive it.
  ZapNumerics(const ZapNetwork&, net::Numerics& inner);

  const ZapNetwork& network() const { return network_; }

  /// Whether inference steps are counted (each batch once per run).
  void count(bool on) { counting_ = on; }
  /// Of everything counted so far, per layer of the network: the same bits for any number of
  /// threads, as long as no two batches begin with one sample.
  std::vector<ZapTally> tallies() const;
  void forget() { counted_.assign(network_.layers.size(), {}); }

  void edge(const net::Step&, const net::Edge&, net::Tensor&) override;

 private:
  const ZapNetwork& network_;
  bool counting_ = false;
  std::mutex mutex_;
  // By layer and first sample of the batch.
  std::vector<std::map<std::int64_t, ZapTally>> counted_;
};

}  // namespace numemu::policies
