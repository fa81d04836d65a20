#include "experiments/workers/link_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {
namespace {

constexpr double kDense = 32;  // bits of a float32
constexpr std::int64_t kMostOfCluster = 10'000'000, kLargestNode = 4096;
constexpr double kMostExchanged = 1e15;

void require(bool fine, const std::string& what) {
  if (!fine) throw usage_error("exchange between workers: " + what);
}

void check(const WireRule& rule, const Cluster& c, double elements, Topology topology) {
  require(c.workers >= 1 && c.workers <= kMostOfCluster,
          fmt::format("workers: expected from 1 to {}, not {}", kMostOfCluster, c.workers));
  require(c.node >= 1 && c.node <= kLargestNode && std::has_single_bit(std::uint64_t(c.node)),
          fmt::format("node: expected 1, 2, 4, ... {} workers, not {}", kLargestNode, c.node));
  require(
      c.workers <= c.node || c.workers % c.node == 0,
      fmt::format("workers: expected a multiple of the {} of a node, not {}", c.node, c.workers));
  for (const Link* const link : {&c.inside, &c.between}) {
    require(link->latency >= 0 && std::isfinite(link->latency),
            fmt::format("latency: expected seconds from 0, not {}", link->latency));
    require(link->bandwidth > 0 && std::isfinite(link->bandwidth),
            fmt::format("bandwidth: expected bytes per second above 0, not {}", link->bandwidth));
  }
  require(elements >= 1 && elements <= kMostExchanged,
          fmt::format("elements: expected from 1 to {}, not {}", kMostExchanged, elements));
  require(rule.knows(topology),
          fmt::format("{} knows no topology {}", rule.name, to_string(topology)));
}

/// An exchange in the making: rounds that follow each other.
class Exchange {
 public:
  Exchange(const WireRule& rule, const Cluster& cluster, double elements)
      : rule_(rule),
        workers_(cluster.workers),
        node_(std::min(cluster.node, cluster.workers)),
        inside_(cluster.inside),
        between_(cluster.between),
        byte_(elements / 8) {
    cost_.seconds = rule.coding * elements;
  }

  ExchangeCost by(Topology topology) {
    if (workers_ == 1) return cost_;
    switch (topology) {
      case Topology::ring:
        ring();
        break;
      case Topology::tree:
        tree();
        break;
      case Topology::hierarchical:
        hierarchical();
        break;
      case Topology::server:
        server();
        break;
      case Topology::direct:
        direct();
        break;
    }
    return cost_;
  }

 private:
  double message(std::int64_t workers) const { return byte_ * rule_.bits(workers); }
  double result() const { return rule_.result > 0 ? byte_ * rule_.result : message(workers_); }
  std::int64_t nodes() const { return workers_ / node_; }

  /// Rounds in each of which each worker sends `bytes` within its node.
  void within(std::int64_t rounds, double bytes) {
    cost_.seconds += static_cast<double>(rounds) * (inside_.latency + bytes / inside_.bandwidth);
    cost_.sent += static_cast<double>(rounds) * bytes;
  }
  /// Rounds in each of which `bytes` leave each node.
  void across(std::int64_t rounds, double bytes) {
    cost_.seconds += static_cast<double>(rounds) * (between_.latency + bytes / between_.bandwidth);
    cost_.leaves += static_cast<double>(rounds) * bytes;
  }
  /// Rounds in which each worker sends `bytes` to its neighbour in a ring through all nodes.
  void around(std::int64_t rounds, double bytes) {
    if (nodes() == 1) return within(rounds, bytes);
    across(rounds, bytes);
    cost_.sent += static_cast<double>(rounds) * bytes;
  }
  void hand_around(double bytes) { around(workers_ - 1, bytes / count(workers_)); }
  static double count(std::int64_t n) { return static_cast<double>(n); }

  void ring() {
    if (rule_.whole) {
      around(workers_ - 1, message(1));
    } else {
      for (std::int64_t c = 1; c < workers_; ++c) around(1, message(c) / count(workers_));
      hand_around(result());
    }
    if (rule_.once > 0) hand_around(byte_ * rule_.once);
  }

  /// Pairs of distance 2^level. Nodes are powers of two, so that from their size on one worker of a
  /// node sends.
  void tree() {
    const double down = result() + byte_ * rule_.once;
    double from_root = 0;
    for (std::int64_t apart = 1; apart < workers_; apart *= 2) {
      const std::int64_t senders = (workers_ + apart - 1) / (2 * apart);
      const std::int64_t rest = workers_ - apart - (senders - 1) * 2 * apart;  // from the last on
      const double most = message(std::min(apart, workers_ - apart));
      cost_.sent +=
          (count(senders - 1) * message(apart) + message(std::min(apart, rest))) / count(workers_);
      if (2 * apart <= node_) {
        cost_.seconds += 2 * inside_.latency + (most + down) / inside_.bandwidth;
        continue;
      }
      cost_.seconds += 2 * between_.latency + (most + down) / between_.bandwidth;
      from_root += down;
      double from_sender = most;  // of the most: it passes the result on to those below it
      for (std::int64_t below = node_; below < apart && apart + below < workers_; below *= 2)
        from_sender += down;
      cost_.leaves = std::max(cost_.leaves, from_sender);
    }
    cost_.leaves = std::max(cost_.leaves, from_root);
    cost_.sent += count(workers_ - 1) * down / count(workers_);
  }

  /// Every worker of a node has a shard of its own on the way between nodes.
  void hierarchical() {
    const std::int64_t n = nodes();
    const double own = count(node_), all = count(n);
    const double leaving = cost_.leaves;
    if (rule_.whole) {
      within(node_ - 1, message(1));
      across(n - 1, message(node_));
      within(node_ - 1, count(n - 1) * message(node_) / own);
    } else {
      for (std::int64_t c = 1; c < node_; ++c)
        within(1, (rule_.inside > 0 ? byte_ * rule_.inside : message(c)) / own);
      for (std::int64_t c = 1; c < n; ++c)
        across(1, message(rule_.inside > 0 ? 1 : node_ * c) / all);
      across(n - 1, result() / all);
      within(node_ - 1, result() / own);
    }
    if (rule_.once > 0) {
      across(n - 1, byte_ * rule_.once / all);
      within(node_ - 1, byte_ * rule_.once / own);
    }
    cost_.sent += (cost_.leaves - leaving) / own;
  }

  /// The links of the server's node bound both ways.
  void server() {
    const double down = result() + byte_ * rule_.once;
    const std::int64_t outside = workers_ - node_;
    const auto way = [&](double bytes, double extra) {
      const double near = inside_.latency + (bytes + extra) / inside_.bandwidth;
      const double far = between_.latency + (count(outside) * bytes + extra) / between_.bandwidth;
      return outside > 0 ? std::max(node_ > 1 ? near : 0, far) : near;
    };
    cost_.seconds += way(message(1), byte_ * rule_.once) + way(down, 0);
    cost_.sent += count(workers_ - 1) * (message(1) + down) / count(workers_) +
                  byte_ * rule_.once / count(workers_);
    if (outside > 0) cost_.leaves = std::max(count(outside) * down, count(node_) * message(1));
  }

  /// In a round between nodes each worker of a node sends through its one link.
  void direct() {
    const double shard = message(1) / count(workers_);
    within(node_ - 1, shard);
    if (nodes() > 1) {
      across(workers_ - node_, count(node_) * shard);
      cost_.sent += count(workers_ - node_) * shard;
    }
    hand_around(result());
    if (rule_.once > 0) hand_around(byte_ * rule_.once);
  }

  const WireRule& rule_;
  std::int64_t workers_, node_;
  Link inside_, between_;
  double byte_;  ///< of one bit per element
  ExchangeCost cost_;
};

bool faster(const WireRule& a, const WireRule& b, const Cluster& cluster, double elements) {
  return best_exchange(a, cluster, elements).cost.seconds <
         best_exchange(b, cluster, elements).cost.seconds;
}

}  // namespace

const char* to_string(Topology topology) {
  switch (topology) {
    case Topology::ring:
      return "ring";
    case Topology::tree:
      return "tree";
    case Topology::hierarchical:
      return "hierarchical";
    case Topology::server:
      return "server";
    case Topology::direct:
      break;
  }
  return "direct";
}

bool WireRule::knows(Topology topology) const {
  if (topologies.empty()) return !(whole && topology == Topology::direct);
  return std::find(topologies.begin(), topologies.end(), topology) != topologies.end();
}

WireRule summed(std::string name, double bits) {
  return {.name = std::move(name), .bits = [bits](std::int64_t) { return bits; }};
}

WireRule gathered(std::string name, double share, double bits,
                  std::function<double(std::int64_t workers)> grown) {
  if (!grown)
    grown = [share](std::int64_t workers) {
      return share < 1
                 ? -portable::expm1(static_cast<double>(workers) * portable::log1p(-share)) / share
                 : 1;
    };
  return {
      .name = std::move(name),
      .bits = [=](std::int64_t workers) { return std::min(kDense, share * bits * grown(workers)); },
      .whole = true};
}

WireRule votes(std::string name, double result) {
  return {.name = std::move(name),
          .bits =
              [](std::int64_t workers) {
                return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(workers)));
              },
          .result = result};
}

ExchangeCost exchange_cost(const WireRule& rule, const Cluster& cluster, double elements,
                           Topology topology) {
  check(rule, cluster, elements, topology);
  return Exchange(rule, cluster, elements).by(topology);
}

BestExchange best_exchange(const WireRule& rule, const Cluster& cluster, double elements) {
  BestExchange best;
  best.cost.seconds = HUGE_VAL;
  for (const Topology topology : kTopologies) {
    if (!rule.knows(topology)) continue;
    const ExchangeCost cost = exchange_cost(rule, cluster, elements, topology);
    if (cost.seconds < best.cost.seconds) best = {topology, cost};
  }
  return best;
}

std::vector<Crossover> crossovers(const WireRule& rule, const WireRule& other,
                                  const Cluster& cluster, double elements, std::int64_t least,
                                  std::int64_t most) {
  const auto pays = [&](std::int64_t nodes) {
    Cluster of = cluster;
    of.workers = nodes * cluster.node;
    return faster(rule, other, of, elements);
  };
  const std::int64_t first = std::max<std::int64_t>(1, least / cluster.node);
  const std::int64_t last = std::max(first, most / cluster.node);
  std::vector<Crossover> all = {{first * cluster.node, pays(first)}};
  std::int64_t below = first;
  for (int quarter = 1; below < last; ++quarter) {
    const std::int64_t next = std::min(
        last,
        static_cast<std::int64_t>(static_cast<double>(first) * portable::exp2(quarter / 4.0)));
    if (next <= below) continue;
    const bool before = all.back().pays;
    std::int64_t low = below, high = next;
    if (pays(next) != before) {
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (pays(middle) == before ? low : high) = middle;
      }
      all.push_back({high * cluster.node, !before});
    }
    below = next;
  }
  return all;
}

double breakeven_bandwidth(const WireRule& rule, const WireRule& other, Cluster cluster,
                           double elements) {
  const auto pays = [&](double logarithm) {
    cluster.between.bandwidth = portable::exp2(logarithm);
    return !faster(other, rule, cluster, elements);
  };
  double low = 0, high = 50;  // 2^50 is about 10^15
  if (pays(high)) return HUGE_VAL;
  if (!pays(low)) return 0;
  for (int step = 0; step < 50; ++step) {
    const double middle = (low + high) / 2;
    (pays(middle) ? low : high) = middle;
  }
  return portable::exp2(low);
}

}  // namespace numemu::experiments
