// What exchange rules would take from 8 to 100,000 workers, in a report: a chart, a table and where
// each rule pays against the dense exchange of float32. Predicted by link_model.hpp alone.
//
// An experiment wraps its settings in with_links({...}) and calls
//   add_exchange_figure({gathered("topk", 0.01, 64), ...}, run.settings, conclusion);
#pragma once
#include <cstdint>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/workers/link_model.hpp"

namespace numemu::experiments {

/// The settings with those of a figure behind them: link_elements, link_node, link_inside,
/// link_between, link_coding.
SettingList with_links(SettingList);

/// The cluster of these settings, with one worker, and the gradient that it exchanges.
struct LinkSetup {
  Cluster cluster;
  double elements = 0;
  double coding = 0;  ///< seconds of an element, of rules that do not say
};
LinkSetup link_setup(const Settings&);

/// From 8 workers to 100,000 in powers of two, 100,000 the last; each a multiple of the node.
std::vector<std::int64_t> figure_workers(const Cluster&);

/// "64 to 4096", "from 8", "8 to 512, from 8192", "never".
std::string pays_text(const std::vector<Crossover>&);

/// Each rule at its best topology. Dense float32 is added in front.
void add_exchange_figure(std::vector<WireRule>, const Settings&, Conclusion&);

/// Milliseconds and megabytes of each rule by topology, of dense float32 in front.
void add_topology_tables(std::vector<WireRule>, const Settings&, Conclusion&);

// Rules of exchange as the link model has them: what each puts on the wire, for a gradient of so
// many elements in one tensor, by what its policy counts (policies/exchange/). Scales of 32 bits of
// a tensor are left out.

namespace wire {

/// A share of the elements, values and places of each worker's own.
WireRule topk(double share, std::int64_t elements);
/// Values without places, which are a function of seed and step.
WireRule randomk(double share, std::int64_t elements);
/// Values with the places of one worker for all.
WireRule scalecom(double share, std::int64_t elements);
/// Codes of 8 or 16 bits for as many elements as the mean field of noise sends; once combined,
/// places and float32 values, since scales are each worker's own.
WireRule adacomp(std::int64_t bin, std::int64_t elements);
/// One sign each way, from every worker or from every node, within which float32 is summed.
WireRule birder_flat();
WireRule birder_nodes();
/// Signs with a scale of each worker's own: their sums are float32.
WireRule sign();
/// Values at places of one worker for all, `window` of them as one float32 code.
WireRule learned(double share, std::int64_t window, std::int64_t elements);

}  // namespace wire

}  // namespace numemu::experiments
