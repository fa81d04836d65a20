// What exchange rules would take from 8 to 100,000 workers, in a report: a chart, a table and where
// each rule pays against the dense exchange of float32. Predicted by link_model.hpp alone.
//
// An experiment wraps its settings in with_links({...}) and calls
//   add_exchange_figure({gathered("topk", 0.01, 64), ...}, run.settings, conclusion);
#pragma once
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/workers/link_model.hpp"

namespace numemu::experiments {

/// The settings with those of a figure behind them: link_elements, link_node, link_inside,
/// link_between, link_coding.
std::vector<Setting> with_links(std::vector<Setting>);

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

}  // namespace numemu::experiments
