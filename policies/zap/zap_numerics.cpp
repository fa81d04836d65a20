// The edge behind each ReLU that has a predictor.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/zap/zap_numerics.hpp"

namespace numemu::policies {

ZapNumerics::ZapNumerics(const ZapNetwork& network, net::Numerics& inner)
    : Forwarding(inner), network_(network), counted_(network.layers.size()) {}

void ZapNumerics::edge(const net::Step& step, const net::Edge& edge, net::Tensor& tensor) {
  const ZapLayer* const layer = edge.backward ? nullptr : network_.find(edge.layer);
  if (layer != nullptr) {
    const net::Tensor z = layer->predictor.predict(tensor);
    if (counting_ && step.phase == net::Phase::inference) {
      const ZapTally tally = tally_of(layer->predictor.mask(), tensor, z, layer->threshold);
      const std::lock_guard lock(mutex_);
      counted_[static_cast<std::size_t>(layer - network_.layers.data())][step.first_sample()] =
          tally;
    }
    skip_zeros(layer->predictor.mask(), z, layer->threshold, tensor);
  }
  Forwarding::edge(step, edge, tensor);
}

std::vector<ZapTally> ZapNumerics::tallies() const {
  std::vector<ZapTally> tallies;
  for (const auto& batches : counted_) {
    ZapTally total;
    for (const auto& [first, tally] : batches) total += tally;
    tallies.push_back(total);
  }
  return tallies;
}

}  // namespace numemu::policies
