// The edge behind each ReLU that has a predictor.
#include "policies/zap/zap_numerics.hpp"

#include "policies/thread_step.hpp"

namespace numemu::policies {

ZapNumerics::ZapNumerics(const ZapNetwork& network, net::Numerics& inner)
    : network_(network), inner_(inner), counted_(network.layers.size()) {}

void ZapNumerics::begin_step(const net::Step& step) {
  thread_step() = {step.phase,
                   step.samples == nullptr || step.samples->empty() ? 0 : step.samples->front()};
  inner_.begin_step(step);
}

void ZapNumerics::edge(const net::Edge& edge, net::Tensor& tensor) {
  const ZapLayer* const layer = edge.backward ? nullptr : network_.find(edge.layer);
  if (layer != nullptr) {
    const net::Tensor z = layer->predictor.predict(tensor);
    const ThreadStep& here = thread_step();
    if (counting_ && here.phase == net::Phase::inference) {
      const ZapTally tally = tally_of(layer->predictor.mask(), tensor, z, layer->threshold);
      const std::lock_guard lock(mutex_);
      counted_[static_cast<std::size_t>(layer - network_.layers.data())][here.first_sample] = tally;
    }
    skip_zeros(layer->predictor.mask(), z, layer->threshold, tensor);
  }
  inner_.edge(edge, tensor);
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
