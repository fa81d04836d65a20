#include "experiments/workers/link_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::link_model_test {
namespace {

using namespace numemu::experiments;

// Sums of a few hundred positive terms in another order.
constexpr double kRounding = 1e-12;
bool same(double a, double b) { return std::abs(a - b) <= kRounding * std::max(a, b); }

const Cluster kTwoNodes = {.workers = 8, .node = 4, .inside = {1, 1000}, .between = {10, 100}};

Cluster flat(std::int64_t workers, Link link) {
  return {.workers = workers, .node = 1, .inside = {1, 1e9}, .between = link};
}

/// An exchange message by message: in a round each link takes its latency and all that it carries.
class Network {
 public:
  explicit Network(const Cluster& cluster) : c_(cluster), left_(cluster.workers) {}
  void send(std::int64_t from, std::int64_t to, double bytes) {
    if (from == to) return;
    sent_ += bytes;
    if (from / c_.node == to / c_.node) {
      inside_[{from, to}] += bytes;
    } else {
      out_[from / c_.node] += bytes;
      in_[to / c_.node] += bytes;
      left_[static_cast<std::size_t>(from / c_.node)] += bytes;
    }
  }
  void end_round() {
    double longest = 0;
    for (const auto& [link, bytes] : inside_)
      longest = std::max(longest, c_.inside.latency + bytes / c_.inside.bandwidth);
    for (const auto* const links : {&out_, &in_})
      for (const auto& [node, bytes] : *links)
        longest = std::max(longest, c_.between.latency + bytes / c_.between.bandwidth);
    seconds_ += longest;
    inside_.clear();
    out_.clear();
    in_.clear();
  }
  ExchangeCost cost() const {
    return {seconds_, sent_ / static_cast<double>(c_.workers),
            *std::max_element(left_.begin(), left_.end())};
  }

 private:
  Cluster c_;
  std::map<std::pair<std::int64_t, std::int64_t>, double> inside_;
  std::map<std::int64_t, double> out_, in_;
  std::vector<double> left_;
  double seconds_ = 0, sent_ = 0;
};

/// The rules of the tests: bytes of a combination, and of what comes back, of 8 elements.
ExchangeCost simulated(const WireRule& rule, const Cluster& c, Topology topology) {
  Network net(c);
  const std::int64_t w = c.workers, g = c.node, n = w / g;
  const double result = rule.result > 0 ? rule.result : rule.bits(w);
  const auto hand_around = [&] {
    for (std::int64_t round = 1; round < w; ++round) {
      for (std::int64_t i = 0; i < w; ++i)
        net.send(i, (i + 1) % w, result / static_cast<double>(w));
      net.end_round();
    }
  };
  if (topology == Topology::ring) {
    for (std::int64_t round = 1; round < w; ++round) {
      for (std::int64_t i = 0; i < w; ++i)
        net.send(i, (i + 1) % w,
                 rule.whole ? rule.bits(1) : rule.bits(round) / static_cast<double>(w));
      net.end_round();
    }
    if (!rule.whole) hand_around();
  } else if (topology == Topology::tree) {
    std::vector<std::int64_t> held(static_cast<std::size_t>(w), 1);
    std::vector<std::int64_t> distances;
    for (std::int64_t apart = 1; apart < w; apart *= 2) {
      distances.push_back(apart);
      for (std::int64_t i = 0; i + apart < w; i += 2 * apart) {
        net.send(i + apart, i, rule.bits(held[static_cast<std::size_t>(i + apart)]));
        held[static_cast<std::size_t>(i)] += held[static_cast<std::size_t>(i + apart)];
      }
      net.end_round();
    }
    for (auto apart = distances.rbegin(); apart != distances.rend(); ++apart) {
      for (std::int64_t i = 0; i + *apart < w; i += 2 * *apart) net.send(i, i + *apart, result);
      net.end_round();
    }
  } else if (topology == Topology::server) {
    for (std::int64_t i = 1; i < w; ++i) net.send(i, 0, rule.bits(1));
    net.end_round();
    for (std::int64_t i = 1; i < w; ++i) net.send(0, i, result);
    net.end_round();
  } else if (topology == Topology::direct) {
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t b = a == 0 ? 1 : 0; b < g; ++b) {
        for (std::int64_t i = 0; i < w; ++i)
          net.send(i, (i / g + a) % n * g + (i % g + b) % g, rule.bits(1) / static_cast<double>(w));
        net.end_round();
      }
    }
    hand_around();
  } else {
    // Rounds around the rings of the nodes, then around the rings of workers with equal places.
    const auto within = [&](double bytes) {
      for (std::int64_t i = 0; i < w; ++i) net.send(i, i / g * g + (i % g + 1) % g, bytes);
      net.end_round();
    };
    const auto across = [&](double bytes, std::int64_t by = 1) {
      for (std::int64_t i = 0; i < w; ++i) net.send(i, (i + by * g) % w, bytes);
      net.end_round();
    };
    const double own = static_cast<double>(g), all = static_cast<double>(n);
    for (std::int64_t c1 = 1; c1 < g; ++c1)
      within(rule.whole ? rule.bits(1) : rule.inside > 0 ? rule.inside / own : rule.bits(c1) / own);
    for (std::int64_t c1 = 1; c1 < n; ++c1) {
      if (rule.whole) {
        across(rule.bits(g) / own);
      } else if (rule.inside > 0) {
        across(rule.bits(1) / own / all, c1);
      } else {
        across(rule.bits(g * c1) / own / all);
      }
    }
    for (std::int64_t c1 = 1; c1 < n && !rule.whole; ++c1) across(result / own / all);
    for (std::int64_t c1 = 1; c1 < g; ++c1)
      within(rule.whole ? (all - 1) * rule.bits(g) / own : result / own);
  }
  return net.cost();
}

std::vector<WireRule> rules() {
  WireRule birder = votes("birder");
  birder.inside = 32;
  WireRule rounded = summed("float32 up, bfloat16 down", 32);
  rounded.result = 16;
  return {summed("float32", 32), rounded, gathered("topk", 0.1, 64), votes("majority"), birder};
}

}  // namespace

TEST_CASE("Costs are those of the messages that each topology sends", "[fast][link_model_test]") {
  constexpr double kElements = 8;  // a bit of each is a byte
  for (const WireRule& rule : rules()) {
    for (const auto& [workers, node] : {std::pair<std::int64_t, std::int64_t>{2, 1},
                                        {2, 2},
                                        {3, 1},
                                        {4, 2},
                                        {5, 1},
                                        {7, 1},
                                        {8, 4},
                                        {8, 8},
                                        {12, 2},
                                        {12, 4},
                                        {16, 2},
                                        {24, 4},
                                        {32, 8}}) {
      Cluster cluster = kTwoNodes;
      cluster.workers = workers;
      cluster.node = node;
      for (const Topology topology : kTopologies) {
        if (!rule.knows(topology)) continue;
        const ExchangeCost cost = exchange_cost(rule, cluster, kElements, topology),
                           expected = simulated(rule, cluster, topology);
        INFO(rule.name << ", " << to_string(topology) << ", " << workers << " by " << node);
        CHECK(same(cost.seconds, expected.seconds));
        CHECK(same(cost.sent, expected.sent));
        CHECK(same(cost.leaves, expected.leaves));
      }
    }
  }
}

TEST_CASE("Equal links have the costs of the alpha-beta model", "[fast][link_model_test]") {
  // Thakur, Rabenseifner, Gropp 2005: ring reduce-scatter and allgather each (p - 1) alpha +
  // (p - 1)/p n beta, binomial tree ceil(lg p) (alpha + n beta), allgather of p messages around a
  // ring (p - 1) (alpha + m beta).
  const double alpha = 3, bytes = 400, elements = 100, beta = 1.0 / 50;
  for (const std::int64_t p : {2, 3, 8, 1000}) {
    const Cluster cluster = flat(p, {alpha, 50});
    const auto q = static_cast<double>(p);
    const double levels = std::ceil(std::log2(q));
    const WireRule dense = summed("float32", 32);
    const auto seconds = [&](const WireRule& rule, Topology topology) {
      return exchange_cost(rule, cluster, elements, topology).seconds;
    };
    CHECK(
        same(seconds(dense, Topology::ring), 2 * (q - 1) * alpha + 2 * (q - 1) / q * bytes * beta));
    CHECK(same(seconds(dense, Topology::tree), 2 * levels * (alpha + bytes * beta)));
    CHECK(same(seconds(dense, Topology::server), 2 * (alpha + (q - 1) * bytes * beta)));
    CHECK(same(seconds(gathered("topk", 0.01, 64), Topology::ring),
               (q - 1) * (alpha + 0.01 * elements * 8 * beta)));
  }
}

TEST_CASE("Two nodes of four, by hand", "[fast][link_model_test]") {
  // 8 elements: float32 is 32 bytes. Within nodes 3 rounds of 8 bytes, between them 1 of 16, and
  // the same back.
  const ExchangeCost dense =
      exchange_cost(summed("float32", 32), kTwoNodes, 8, Topology::hierarchical);
  CHECK(same(dense.seconds, 2 * (3 * (1 + 0.008) + 1 * (10 + 0.16))));
  CHECK(same(dense.sent, 2 * (3 * 8 + 16.0 / 4)));
  CHECK(same(dense.leaves, 2 * 16));
  // Birder: the same within nodes one way, a bit of each element elsewhere.
  WireRule birder = votes("birder");
  birder.inside = 32;
  const ExchangeCost signs = exchange_cost(birder, kTwoNodes, 8, Topology::hierarchical);
  CHECK(same(signs.seconds, 3 * (1 + 0.008) + 2 * (10 + 0.005) + 3 * (1 + 0.00025)));
  CHECK(same(signs.leaves, 2 * 0.5));
  // One worker exchanges nothing.
  CHECK(exchange_cost(birder, flat(1, {1, 1}), 8, Topology::ring).sent == 0);
}

TEST_CASE("Hierarchical one-bit exchange sends 2 d / n bits between nodes",
          "[fast][link_model_test]") {
  // Each worker of a node of n, for d elements; flat float32 rings send 2 32 d, flat signs 2 d.
  const double d = 1e6;
  const std::int64_t n = 8;
  WireRule birder = votes("birder");
  birder.inside = 32;
  const Cluster cluster = {.workers = 8 * 4096, .node = n};
  const double own =
      8 * exchange_cost(birder, cluster, d, Topology::hierarchical).leaves / static_cast<double>(n);
  CHECK(own == Approx(2 * d / static_cast<double>(n)).epsilon(1e-3));
  const ExchangeCost float32 = exchange_cost(summed("float32", 32), cluster, d, Topology::ring);
  CHECK(8 * float32.sent == Approx(2 * 32 * d).epsilon(1e-3));
  CHECK(8 * exchange_cost(votes("majority"), cluster, d, Topology::direct).sent ==
        Approx(2 * d).epsilon(1e-3));
}

TEST_CASE("Bits of combinations", "[fast][link_model_test]") {
  const WireRule topk = gathered("topk", 0.01, 64);
  CHECK(topk.bits(1) == Approx(0.64));
  CHECK(topk.bits(2) == Approx(0.64 * 1.99));
  CHECK(topk.bits(1'000'000) == 32);  // dense
  CHECK(gathered("all", 1, 32).bits(7) == 32);
  CHECK(gathered("alike", 0.01, 64, [](std::int64_t) { return 1; }).bits(8) == Approx(0.64));
  const WireRule majority = votes("majority");
  CHECK(majority.bits(1) == 1);
  CHECK(majority.bits(2) == 2);  // 0, 1 or 2
  CHECK(majority.bits(3) == 2);
  CHECK(majority.bits(4) == 3);
}

TEST_CASE("Costs rise with latency and bytes, and no topology beats the bounds",
          "[fast][link_model_test]") {
  const double elements = 1e6;
  for (const WireRule& rule : rules()) {
    for (const Topology topology : kTopologies) {
      if (!rule.knows(topology)) continue;
      double before = 0;
      for (std::int64_t workers = 8; workers <= 4096; workers *= 2) {
        const Cluster cluster = {.workers = workers, .node = 8};
        const double seconds = exchange_cost(rule, cluster, elements, topology).seconds;
        INFO(rule.name << ", " << to_string(topology) << ", " << workers);
        CHECK(seconds >= before);
        before = seconds;
        Cluster slow = cluster;
        slow.between.latency *= 2;
        CHECK(exchange_cost(rule, slow, elements, topology).seconds >= seconds);
        slow = cluster;
        slow.between.bandwidth /= 2;
        CHECK(exchange_cost(rule, slow, elements, topology).seconds >= seconds);
        CHECK(exchange_cost(rule, cluster, 2 * elements, topology).seconds > seconds);
        CHECK(best_exchange(rule, cluster, elements).cost.seconds <= seconds);
      }
    }
  }
}

TEST_CASE("Whole messages stop paying where they add up to the dense gradient",
          "[fast][link_model_test]") {
  // Around a ring without latency: (p - 1) 64 f against 2 (p - 1)/p 32: p < 1/f.
  WireRule dense = summed("float32", 32), topk = gathered("topk", 1 / 99.5, 64);
  dense.topologies = topk.topologies = {Topology::ring};
  const std::vector<Crossover> at = crossovers(topk, dense, flat(1, {0, 1e9}), 1e6, 8, 100'000);
  REQUIRE(at.size() == 2);
  CHECK(at[0].workers == 8);
  CHECK(at[0].pays);
  CHECK(at[1].workers == 100);
  CHECK_FALSE(at[1].pays);
}

TEST_CASE("The bandwidth up to which coding pays", "[fast][link_model_test]") {
  // Two workers, no latency: 32 bits against 8 and 1 ns per element: 3 bytes in 1 ns.
  const WireRule dense = summed("float32", 32);
  WireRule fp8 = summed("fp8", 8);
  CHECK(breakeven_bandwidth(fp8, dense, flat(2, {0, 1}), 1e6) == HUGE_VAL);
  fp8.coding = 1e-9;
  CHECK(breakeven_bandwidth(fp8, dense, flat(2, {0, 1}), 1e6) == Approx(3e9));
  WireRule wide = summed("float64", 64);
  CHECK(breakeven_bandwidth(wide, dense, flat(2, {0, 1}), 1e6) == 0);
}

TEST_CASE("Clusters and topologies that do not fit are refused", "[fast][link_model_test]") {
  const auto message = [](const Cluster& cluster, const WireRule& rule, Topology topology,
                          double elements = 1) -> std::string {
    try {
      exchange_cost(rule, cluster, elements, topology);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const WireRule dense = summed("float32", 32);
  const auto cluster = [](std::int64_t workers, std::int64_t node) {
    return Cluster{.workers = workers, .node = node};
  };
  CHECK(message(cluster(0, 1), dense, Topology::ring) ==
        "exchange between workers: workers: expected from 1 to 10000000, not 0");
  CHECK(message(cluster(9, 3), dense, Topology::ring) ==
        "exchange between workers: node: expected 1, 2, 4, ... 4096 workers, not 3");
  CHECK(message(cluster(10, 4), dense, Topology::ring) ==
        "exchange between workers: workers: expected a multiple of the 4 of a node, not 10");
  CHECK(message(cluster(3, 4), dense, Topology::ring).empty());
  CHECK(message(cluster(8, 4), gathered("topk", 0.1, 64), Topology::direct) ==
        "exchange between workers: topk knows no topology direct");
  CHECK(message(cluster(8, 4), dense, Topology::ring, 0) ==
        "exchange between workers: elements: expected from 1 to 1000000000000000, not 0");
  Cluster broken = cluster(8, 4);
  broken.between.bandwidth = 0;
  CHECK(message(broken, dense, Topology::ring) ==
        "exchange between workers: bandwidth: expected bytes per second above 0, not 0");
}

}  // namespace numemu::link_model_test
