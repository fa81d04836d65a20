// Cold: a negligible share of any run (docs/build.md).
#include "policies/tuning/equalise.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "emu/net/math.hpp"
#include "formats/error.hpp"
#include "policies/tuning/channel_link.hpp"

namespace numemu::policies {
namespace {

constexpr double kEqual = 0.01;  // scales nearer to 1 change no rounding worth a further round

double stepped(double s, ScaleSteps steps) {
  if (!(s > 0) || !std::isfinite(s)) return 1;
  if (steps == ScaleSteps::real) return s;
  // The nearest power of two in ratio: sqrt(1/2) <= s / 2^e < sqrt(2).
  int exponent = 0;
  const double mantissa = std::frexp(s, &exponent);  // in [1/2, 1)
  return std::ldexp(1.0, mantissa * mantissa < 0.5 ? exponent - 1 : exponent);
}

std::string names_of(const net::Graph& graph, const std::vector<std::size_t>& nodes) {
  std::string names;
  for (const std::size_t node : nodes) names += (names.empty() ? "" : " ") + graph.nodes[node].name;
  return names;
}

bool multiplies(const net::Node& node) {
  return node.op->kind() == "linear" || node.op->kind().starts_with("conv");
}

/// Every element times that of `s`, and the range of the products.
void accumulate(std::vector<double>& total, const std::vector<double>& s, ScaledLink& done) {
  for (std::size_t c = 0; c < s.size(); ++c) total[c] *= s[c];
  const auto [least, most] = std::minmax_element(total.begin(), total.end());
  done.least = *least;
  done.most = *most;
}

}  // namespace

std::vector<double> equalising_scales(const std::vector<double>& r1, const std::vector<double>& r2,
                                      ScaleSteps steps) {
  std::vector<double> s(r1.size(), 1);
  for (std::size_t c = 0; c < s.size(); ++c)
    if (r1[c] > 0 && r2[c] > 0) s[c] = stepped(std::sqrt(r1[c] * r2[c]) / r2[c], steps);
  return s;
}

std::vector<double> smoothing_scales(const std::vector<double>& x, const std::vector<double>& w,
                                     double strength, ScaleSteps steps) {
  std::vector<double> s(x.size(), 1);
  const auto power = [](double base, double exponent) {
    return double{net::pow(static_cast<float>(base), static_cast<float>(exponent))};
  };
  for (std::size_t c = 0; c < s.size(); ++c)
    if (x[c] > 0 && w[c] > 0)
      s[c] = stepped(power(x[c], strength) / power(w[c], 1 - strength), steps);
  return s;
}

std::vector<ScaledLink> equalise_weights(std::span<net::Graph* const> graphs, std::int64_t rounds,
                                         ScaleSteps steps) {
  const net::Graph& graph = *graphs[0];
  std::vector<ScaledLink> report;
  std::vector<ChannelLink> links;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!multiplies(graph.nodes[i])) continue;
    ScaledLink& entry = report.emplace_back(ScaledLink{graph.nodes[i].name, ""});
    try {
      links.push_back(channel_link(graph, i));
      places.push_back(report.size() - 1);
      entry.consumers = names_of(graph, links.back().consumers);
    } catch (const Error& error) {
      entry.refused = error.what();
    }
  }
  std::vector<std::vector<double>> totals;
  for (const ChannelLink& link : links)
    totals.emplace_back(static_cast<std::size_t>(link.channels), 1.0);
  for (std::int64_t round = 0; round < rounds; ++round) {
    double off = 0;
    for (std::size_t l = 0; l < links.size(); ++l) {
      const std::vector<double> s = equalising_scales(output_magnitudes(graph, links[l]),
                                                      input_magnitudes(graph, links[l]), steps);
      for (net::Graph* const each : graphs) scale_channels(*each, links[l], s);
      accumulate(totals[l], s, report[places[l]]);
      for (const double by : s) off = std::max(off, std::abs(by - 1));
    }
    if (off <= kEqual) break;
  }
  return report;
}

std::vector<ScaledLink> smooth_activations(std::span<net::Graph* const> graphs,
                                           const std::vector<std::vector<double>>& magnitudes,
                                           double strength, ScaleSteps steps) {
  const net::Graph& graph = *graphs[0];
  std::vector<ScaledLink> report;
  std::set<std::size_t> done;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!multiplies(graph.nodes[i]) || magnitudes[i].empty()) continue;
    ScaledLink entry{"", graph.nodes[i].name};
    try {
      const std::size_t producer = channel_producer(graph, i);
      if (!done.insert(producer).second) continue;
      entry.producer = graph.nodes[producer].name;
      const ChannelLink link = channel_link(graph, producer);
      entry.consumers = names_of(graph, link.consumers);
      std::vector<double> x(static_cast<std::size_t>(link.channels));
      for (const std::size_t consumer : link.consumers)
        for (std::size_t c = 0; c < magnitudes[consumer].size(); ++c)
          x[c % x.size()] = std::max(x[c % x.size()], magnitudes[consumer][c]);
      const std::vector<double> s =
          smoothing_scales(x, input_magnitudes(graph, link), strength, steps);
      for (net::Graph* const each : graphs) scale_channels(*each, link, s);
      const auto [least, most] = std::minmax_element(s.begin(), s.end());
      entry.least = *least;
      entry.most = *most;
    } catch (const Error& error) {
      entry.refused = error.what();
    }
    report.push_back(std::move(entry));
  }
  return report;
}

}  // namespace numemu::policies
