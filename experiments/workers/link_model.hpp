// Bytes and seconds that an exchange of gradients between many workers takes, by the alpha-beta
// model: a message of b bytes takes latency + b / bandwidth (Thakur, Rabenseifner and Gropp, IJHPCA
// 19, 2005).
//
// An exchange rule is described by what it puts on the wire (WireRule):
//   summed("float32", 32), summed("bfloat16", 16);               // partial sums are as long
//   gathered("topk", 0.01, 32 + 32);                             // each worker its own places
//   votes("majority"), {.name = "birder", ..., .inside = 32};    // signs, which add to counts
//   exchange_cost(rule, {.workers = 1024, .node = 8}, elements, Topology::ring).seconds
// exchange_figure.hpp makes table, chart and crossovers of a report from a list of rules.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace numemu::experiments {

struct Link {
  double latency = 0;    ///< seconds of a message of no bytes
  double bandwidth = 1;  ///< bytes per second, in each direction at once
};

/// Nodes of `node` workers. Two workers of a node have a link of their own; what leaves or enters a
/// node goes through its one link to the network, which its workers share.
struct Cluster {
  std::int64_t workers = 1;
  std::int64_t node = 1;
  Link inside{2e-6, 300e9};
  Link between{5e-6, 12.5e9};

  std::int64_t nodes() const { return workers / node; }
};

/// Who sends what to whom.
enum class Topology : std::uint8_t {
  ring,          ///< shards are summed around a ring and handed around it; messages go around whole
  tree,          ///< sums go up a binomial tree, the result comes down
  hierarchical,  ///< shards are summed within nodes, then between them, and handed around in nodes
  server,        ///< all send to one worker that answers
  direct,        ///< each worker sums a shard that all others send to it, then hands it around
};
/// "ring", ...
const char* to_string(Topology);
inline constexpr Topology kTopologies[] = {Topology::ring, Topology::tree, Topology::hierarchical,
                                           Topology::server, Topology::direct};

/// What an exchange rule sends, in bits per element of the gradient.
struct WireRule {
  std::string name;
  /// What the messages of so many workers take once they are combined; bits(1) is a message.
  std::function<double(std::int64_t workers)> bits;
  /// Of the combination of all that comes back; 0: bits(workers).
  double result = 0;
  /// Ring, hierarchical and direct exchange hand messages around whole and combine them at the
  /// end, because their places differ. Otherwise they sum shards.
  bool whole = false;
  /// Of the hierarchical exchange within a node, where the rule codes only what leaves it, each
  /// shard anew; 0: as between nodes.
  double inside = 0;
  /// What one worker sends to all, beside its message: indices that all share, a common code.
  double once = 0;
  /// Seconds of coding and decoding a message, per element of the gradient.
  double coding = 0;
  /// Those that it knows; empty: all.
  std::vector<Topology> topologies = {};

  bool knows(Topology) const;
};

/// Messages that add up in place: dense exchange in any format, values at indices that all share.
WireRule summed(std::string name, double bits);
/// `share` of the elements at places of each worker's own, `bits` each with its index. Combined,
/// they are as many as independent places have, 1 - (1 - share)^workers, or `grown(workers)` times
/// `share`; dense float32 bounds their bits.
WireRule gathered(std::string name, double share, double bits,
                  std::function<double(std::int64_t workers)> grown = {});
/// One sign per element, whose sum over c workers is a count from 0 to c; `result` bits come back.
WireRule votes(std::string name, double result = 1);

/// Of one exchange.
struct ExchangeCost {
  double seconds = 0;
  double sent = 0;    ///< bytes that a worker sends, mean over the workers
  double leaves = 0;  ///< bytes that leave the busiest node through its link; 0 for one node
};

/// Of a gradient of `elements`. Latencies and bytes of the rounds add up; coding adds
/// `rule.coding` for what a worker codes and for each message that it decodes. Throws Error for a
/// cluster that is none: workers from 1 to 10^7, nodes of 1, 2, 4, ... 4096 workers that divide
/// their number (unless all are in one), latencies from 0, bandwidths above 0, elements from 1 to
/// 10^15; and for a topology that the rule does not know.
ExchangeCost exchange_cost(const WireRule&, const Cluster&, double elements, Topology);

/// The least seconds over the topologies that the rule knows, the first of equals.
struct BestExchange {
  Topology topology = Topology::ring;
  ExchangeCost cost;
};
BestExchange best_exchange(const WireRule&, const Cluster&, double elements);

/// A number of workers from which on a rule is faster than another, each at its best topology, or
/// no longer.
struct Crossover {
  std::int64_t workers = 0;
  bool pays = false;  ///< from here on
};
/// Along `nodes` full nodes from `least` to `most` workers, ascending; the first says what holds at
/// the least. Signs are compared at powers of 2^(1/4) and bisected between them to a node.
std::vector<Crossover> crossovers(const WireRule&, const WireRule& other, const Cluster&,
                                  double elements, std::int64_t least, std::int64_t most);

/// The largest bandwidth between nodes at which the rule is at least as fast as the other, each at
/// its best topology: infinite where it always is up to 10^15 bytes per second, 0 where it never is
/// down to 1.
double breakeven_bandwidth(const WireRule&, const WireRule& other, Cluster, double elements);

}  // namespace numemu::experiments
