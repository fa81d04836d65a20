#include "experiments/workers/exchange_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "experiments/report/number_text.hpp"
#include "experiments/workers/adacomp_law.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::experiments {
namespace {

constexpr double kMostLink = 1e15;  // seconds, bytes per second
constexpr std::int64_t kFirstWorkers = 8, kLastWorkers = 100'000;

Link link_of(const std::string& text) {
  Link link;
  const char* const end = text.data() + text.size();
  const auto [comma, latency] = std::from_chars(text.data(), end, link.latency);
  if (latency == std::errc() && comma != end && *comma == ',') {
    const auto [stop, bandwidth] = std::from_chars(comma + 1, end, link.bandwidth);
    if (bandwidth == std::errc() && stop == end && link.latency >= 0 && link.latency <= kMostLink &&
        link.bandwidth >= 1 && link.bandwidth <= kMostLink)
      return link;
  }
  throw Error("expected seconds and bytes per second (from 1), as in 5e-6,12.5e9, not '" + text +
              "'");
}
void check_link(const std::string& text) { link_of(text); }

/// Of a number within the bounds of link_node.
void check_node(const std::string& text) {
  const auto node = std::stoull(text);
  if (!std::has_single_bit(node)) throw Error("expected a power of two, not " + text);
}

std::string bytes_text(double bytes) { return decimal_text(bytes / 1e6, 4); }

std::string link_text(const Link& link) {
  return fmt::format("{:g} us and {:g} GB/s", link.latency * 1e6, link.bandwidth / 1e9);
}

std::string bandwidth_text(double bandwidth) {
  if (bandwidth == 0) return "none";
  return std::isfinite(bandwidth) ? decimal_text(bandwidth / 1e9, 3) : "any";
}

}  // namespace

SettingList with_links(SettingList settings) {
  settings.insert(
      settings.end(),
      {{"link_elements", "25000000", "25000000", "25000000",
        "on paper: elements of the gradient; 25 million are about a ResNet-50",
        whole(1, 1'000'000'000'000'000)},
       {"link_node", "8", "8", "8", "on paper: workers of a node, a power of two",
        whole(1, 4096).checked(check_node)},
       {"link_inside", "2e-6,300e9", "2e-6,300e9", "2e-6,300e9",
        "on paper: latency in seconds and bytes per second between two workers of a node",
        text_of(check_link)},
       {"link_between", "5e-6,12.5e9", "5e-6,12.5e9", "5e-6,12.5e9",
        "on paper: the same of the link that a node's workers share to the other nodes",
        text_of(check_link)},
       {"link_coding", "1e-11", "1e-11", "1e-11",
        "on paper: seconds of an element that a rule spends on coding and decoding, where it does "
        "not say itself; 1e-11 is about two passes over fast memory",
        real(0, 1)}});
  return settings;
}

LinkSetup link_setup(const Settings& settings) {
  LinkSetup setup;
  setup.elements = static_cast<double>(settings.integer("link_elements"));
  setup.cluster.node = settings.integer("link_node");
  setup.cluster.inside = link_of(settings.text("link_inside"));
  setup.cluster.between = link_of(settings.text("link_between"));
  setup.coding = settings.number("link_coding");
  return setup;
}

std::vector<std::int64_t> figure_workers(const Cluster& cluster) {
  std::vector<std::int64_t> all;
  for (std::int64_t workers = std::max(kFirstWorkers, cluster.node); workers < kLastWorkers;
       workers *= 2)
    all.push_back(workers);
  all.push_back(kLastWorkers / cluster.node * cluster.node);
  return all;
}

std::string pays_text(const std::vector<Crossover>& crossovers) {
  std::string text;
  for (std::size_t i = 0; i < crossovers.size(); ++i) {
    if (!crossovers[i].pays) continue;
    if (!text.empty()) text += ", ";
    // The last number of workers at which it pays is not known to one, but to a node.
    text += i + 1 < crossovers.size()
                ? fmt::format("{} to below {}", crossovers[i].workers, crossovers[i + 1].workers)
                : fmt::format("from {}", crossovers[i].workers);
  }
  return text.empty() ? "never" : text;
}

namespace {

/// Behind dense float32, which codes nothing.
std::vector<WireRule> compared(std::vector<WireRule> rules, const LinkSetup& setup) {
  for (WireRule& rule : rules)
    if (rule.coding == 0) rule.coding = setup.coding;
  rules.insert(rules.begin(), summed("float32", 32));
  return rules;
}

}  // namespace

void add_exchange_figure(std::vector<WireRule> rules, const Settings& settings,
                         Conclusion& conclusion) {
  const LinkSetup setup = link_setup(settings);
  rules = compared(std::move(rules), setup);
  const std::vector<std::int64_t> workers = figure_workers(setup.cluster);
  const auto of = [&](std::int64_t count) {
    Cluster cluster = setup.cluster;
    cluster.workers = count;
    return cluster;
  };
  Chart chart{
      .kind = Chart::Kind::points,
      .title = "Seconds of an exchange against the number of workers, on paper",
      .caption = fmt::format(
          "Predicted by the alpha-beta model, each rule at its fastest topology: a gradient of "
          "{:g} elements, {:g} seconds of coding each, nodes of {}, {} within them, {} between "
          "them. Named points: where a rule begins or ceases to be faster than dense float32.",
          setup.elements, setup.coding, setup.cluster.node, link_text(setup.cluster.inside),
          link_text(setup.cluster.between)),
      .x = "workers",
      .y = "seconds",
      .log_x = true,
      .log_y = true};
  ResultTable table{"Exchange on paper, each rule at its fastest topology",
                    {"rule", "workers", "topology", "ms", "MB sent by a worker",
                     "MB leaving a node", "times faster than float32"},
                    {}};
  ResultTable pays{"Where a rule is faster than dense float32, on paper",
                   {"rule", "bits of a message per element", "workers",
                    fmt::format("up to GB/s between nodes, {} workers", workers[1]),
                    fmt::format("up to GB/s between nodes, {} workers", workers.back())},
                   {}};
  ChartSeries crosses{"crossover", {}, false};
  std::map<std::string, std::vector<std::string>> at;  // rules by where they pay
  for (const WireRule& rule : rules) {
    ChartSeries series{rule.name, {}, true};
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const BestExchange best = best_exchange(rule, of(workers[i]), setup.elements);
      const double seconds = best.cost.seconds;
      series.points.push_back({.x = static_cast<double>(workers[i]), .y = seconds});
      if (i % 4 != 0 && i + 1 != workers.size()) continue;
      const double dense =
          best_exchange(rules.front(), of(workers[i]), setup.elements).cost.seconds;
      table.rows.push_back({rule.name, fmt::format("{}", workers[i]), to_string(best.topology),
                            decimal_text(1e3 * seconds, 4), bytes_text(best.cost.sent),
                            bytes_text(best.cost.leaves), fmt::format("{:.2f}", dense / seconds)});
    }
    chart.series.push_back(std::move(series));
    if (&rule == &rules.front()) continue;
    const std::vector<Crossover> found = crossovers(
        rule, rules.front(), setup.cluster, setup.elements, workers.front(), workers.back());
    for (std::size_t i = 1; i < found.size(); ++i)
      crosses.points.push_back(
          {.x = static_cast<double>(found[i].workers),
           .name = fmt::format("{} {}", rule.name, found[i].pays ? "pays" : "no longer"),
           .y = best_exchange(rule, of(found[i].workers), setup.elements).cost.seconds});
    const auto breakeven = [&](std::int64_t count) {
      return bandwidth_text(breakeven_bandwidth(rule, rules.front(), of(count), setup.elements));
    };
    at[pays_text(found)].push_back(rule.name);
    pays.rows.push_back({rule.name, fmt::format("{:.4g}", rule.bits(1)), pays_text(found),
                         breakeven(workers[1]), breakeven(workers.back())});
  }
  for (const auto& [where, names] : at)
    conclusion.sentences.push_back(
        fmt::format("Faster than dense float32 on paper, by the number of workers: {}: {}.", where,
                    joined(names, "; ")));
  if (!crosses.points.empty()) chart.series.push_back(std::move(crosses));
  conclusion.charts.push_back(std::move(chart));
  conclusion.tables.push_back(std::move(pays));
  conclusion.tables.push_back(std::move(table));
}

void add_topology_tables(std::vector<WireRule> rules, const Settings& settings,
                         Conclusion& conclusion) {
  const LinkSetup setup = link_setup(settings);
  rules = compared(std::move(rules), setup);
  std::vector<std::string> header = {"rule", "workers"};
  for (const Topology topology : kTopologies) header.emplace_back(to_string(topology));
  ResultTable seconds{"Milliseconds of an exchange on paper, by topology", header, {}},
      sent{"Megabytes that a worker sends, by topology", header, {}},
      leaves{"Megabytes that leave the busiest node, by topology", header, {}};
  const std::vector<std::int64_t> workers = figure_workers(setup.cluster);
  for (const WireRule& rule : rules) {
    for (const std::int64_t count :
         {workers.front(), workers[workers.size() / 2], workers.back()}) {
      Cluster cluster = setup.cluster;
      cluster.workers = count;
      for (ResultTable* const table : {&seconds, &sent, &leaves})
        table->rows.push_back({rule.name, fmt::format("{}", count)});
      for (const Topology topology : kTopologies) {
        const bool known = rule.knows(topology);
        const ExchangeCost cost =
            known ? exchange_cost(rule, cluster, setup.elements, topology) : ExchangeCost();
        const auto cell = [&](ResultTable& table, const std::string& text) {
          table.rows.back().push_back(known ? text : "-");
        };
        cell(seconds, decimal_text(1e3 * cost.seconds, 4));
        cell(sent, bytes_text(cost.sent));
        cell(leaves, bytes_text(cost.leaves));
      }
    }
  }
  for (ResultTable* const table : {&seconds, &sent, &leaves})
    conclusion.tables.push_back(std::move(*table));
}

namespace wire {
namespace {

constexpr double kFloat = 32;

/// What a share comes to, and a place among the elements.
struct Places {
  double share, bits;
};
Places places_of(double share, std::int64_t elements) {
  const auto n = static_cast<std::size_t>(elements);
  return {static_cast<double>(policies::sent_elements(share, n)) / static_cast<double>(n),
          policies::index_bits(n)};
}

}  // namespace

WireRule topk(double share, std::int64_t elements) {
  const Places places = places_of(share, elements);
  return gathered("topk", places.share, places.bits + kFloat);
}

WireRule randomk(double share, std::int64_t elements) {
  return summed("randomk", places_of(share, elements).share * kFloat);
}

WireRule scalecom(double share, std::int64_t elements) {
  const Places places = places_of(share, elements);
  WireRule rule = summed("scalecom", places.share * kFloat);
  rule.once = places.share * places.bits;
  return rule;
}

WireRule adacomp(std::int64_t bin, std::int64_t elements) {
  const double share = experiments::adacomp::steady_state(bin).sent / static_cast<double>(bin),
               code = static_cast<double>(experiments::adacomp::code_bits(bin)),
               place = policies::index_bits(static_cast<std::size_t>(elements));
  WireRule rule = gathered(fmt::format("adacomp, bins of {}", bin), share, place + kFloat);
  rule.bits = [message = share * code, combined = std::move(rule.bits)](std::int64_t workers) {
    return workers == 1 ? message : combined(workers);
  };
  return rule;
}

WireRule birder_flat() {
  WireRule rule = votes("birder, flat");
  rule.topologies = {Topology::ring, Topology::tree, Topology::server, Topology::direct};
  return rule;
}

WireRule birder_nodes() {
  WireRule rule = votes("birder, hierarchical");
  rule.topologies = {Topology::hierarchical};
  rule.inside = kFloat;
  return rule;
}

WireRule sign() {
  return {.name = "sign",
          .bits = [](std::int64_t workers) { return workers == 1 ? 1 : kFloat; },
          .whole = true};
}

WireRule learned(double share, std::int64_t window, std::int64_t elements) {
  const Places places = places_of(share, elements);
  WireRule rule = summed(fmt::format("learned, codes of {}", window),
                         places.share * kFloat / static_cast<double>(window));
  rule.once = places.share * places.bits;
  return rule;
}

}  // namespace wire

}  // namespace numemu::experiments
