#include "policies/tune/base/equalise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "emu/net/math.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/tied.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "policies/tune/base/rotation_links.hpp"

namespace numemu::policies {
namespace {

bool multiplies(std::string_view kind) { return kind == "linear" || kind.starts_with("conv"); }

bool normalises(std::string_view kind) {
  return kind == "layer_norm" || kind == "rms_norm" || kind == "batch_norm";
}

/// f(x / s) = f(x) / s for every channel of the last axis; flattening repeats the channels.
bool passes(std::string_view kind) {
  constexpr std::array<std::string_view, 8> kKinds = {
      "relu",     "leaky_relu",   "dropout", "identity",
      "max_pool", "average_pool", "flatten", "global_average_pool"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

const net::Tensor& weight_of(const net::Node& node) {
  return std::as_const(*node.op).parameters()[0].value;
}

/// The node of the constant, a number for each channel, that the node multiplies ("multiply") or
/// adds ("add") to its other input and that nothing else reads.
std::optional<std::size_t> channel_constant(const net::Graph& graph, const net::Node& node,
                                            std::string_view kind) {
  if (node.op->kind() != kind || node.inputs.size() != 2) return std::nullopt;
  const auto inputs = static_cast<int>(graph.inputs.size());
  for (const int value : node.inputs) {
    if (value < inputs) continue;
    const auto at = static_cast<std::size_t>(value - inputs);
    const net::Node& constant = graph.nodes[at];
    if (constant.op->kind() != "constant") continue;
    const net::Tensor& numbers = weight_of(constant);
    const auto reads = [&](const net::Node& reader) {
      return std::ranges::find(reader.inputs, value) != reader.inputs.end();
    };
    if (numbers.size() > 1 && numbers.size() == numbers.dim(-1) &&
        std::ranges::count_if(graph.nodes, reads) == 1)
      return at;
  }
  return std::nullopt;
}

/// The other input of such a node.
int other_input(const net::Graph& graph, const net::Node& node, std::size_t constant) {
  return node.inputs[node.inputs[0] == graph.value_of(constant) ? 1 : 0];
}

/// Which operand of a product of two values is what a layer gives: the other is its gate.
std::optional<int> multiplied_layer(const net::Graph& graph, const net::Node& node) {
  if (node.op->kind() != "multiply") return std::nullopt;
  const auto inputs = static_cast<int>(graph.inputs.size());
  for (const int value : node.inputs)
    if (value >= inputs &&
        multiplies(graph.nodes[static_cast<std::size_t>(value - inputs)].op->kind()))
      return value;
  return std::nullopt;
}

/// The node with the weight or gain that scales the channels of `producer`; none where nothing
/// does.
std::optional<std::size_t> scaled_node(const net::Graph& graph, std::size_t producer) {
  const net::Node& node = graph.nodes[producer];
  if (multiplies(node.op->kind()) || normalises(node.op->kind())) return producer;
  return channel_constant(graph, node, "multiply");
}

/// The rows of a weight, or the elements of a gain.
std::int64_t channels_of(const net::Tensor& weight, bool constant) {
  return constant ? weight.size() : weight.dim(0);
}

std::int64_t groups_of(const net::Node& node) {
  const auto* const conv = dynamic_cast<const net::Conv*>(node.op.get());
  return conv == nullptr ? 1 : conv->options().groups;
}

/// body(element of the weight, its input channel) of a consumer.
template <class Body>
void for_each_input(const net::Node& node, const ChannelLink& link, const Body& body) {
  const net::Tensor& weight = weight_of(node);
  const std::int64_t rows = weight.dim(0), each = weight.size() / rows, in = weight.dim(-1),
                     groups = groups_of(node);
  for (std::int64_t i = 0; i < weight.size(); ++i)
    body(i, link.channel_of(i / each / (rows / groups) * in + i % in));
}

std::string describe(const net::Node& node) {
  return fmt::format("layer {} ({})", node.name, node.op->kind());
}

/// The values of attention between two linear layers (rotation_links.hpp), where all channels of
/// the first are such; by its node, or by the second's with `consumer`.
std::optional<ChannelLink> attention_link(const net::Graph& graph, std::size_t node,
                                          bool consumer) {
  if (graph.nodes[node].op->kind() != "linear") return std::nullopt;
  for (const RotationLink& link : rotation_links(graph).links) {
    const std::set<std::int64_t> mixed(link.from.begin(), link.from.end());
    if ((consumer ? link.consumer : link.producer) == node && std::ssize(mixed) == link.channels)
      return ChannelLink{link.producer, link.biases, {link.consumer}, link.channels, link.from};
  }
  return std::nullopt;
}

ChannelLink plain_link(const net::Graph& graph, std::size_t producer) {
  const net::Node& first = graph.nodes[producer];
  const std::optional<std::size_t> scaled = scaled_node(graph, producer);
  if (!scaled) throw Error(describe(first) + " has no weight or gain that scales its channels");
  ChannelLink link{
      producer, {}, {}, channels_of(weight_of(graph.nodes[*scaled]), *scaled != producer)};
  std::vector<bool> carries(graph.value_count());
  carries[graph.value_of(producer)] = true;
  for (std::size_t i = producer + 1; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const auto reads = [&](int value) { return carries[value]; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), reads)) continue;
    if (multiplies(node.op->kind())) {
      const std::int64_t in = weight_of(node).dim(-1) * groups_of(node);
      if (in % link.channels != 0)
        throw Error(fmt::format("{} has {} channels, {} reads {}", describe(first), link.channels,
                                describe(node), in));
      link.consumers.push_back(i);
    } else if (passes(node.op->kind())) {
      carries[graph.value_of(i)] = true;
    } else if (const auto shift = channel_constant(graph, node, "add");
               shift && weight_of(graph.nodes[*shift]).size() == link.channels) {
      link.shifts.push_back(*shift);
      carries[graph.value_of(i)] = true;
    } else if (node.op->kind() == "multiply" && std::ranges::count_if(node.inputs, reads) == 1) {
      carries[graph.value_of(i)] = true;  // gates and constants: (x / s) g = (x g) / s
    } else {
      throw Error(fmt::format("the channels of {} go to {}, through which their scales do not pass",
                              describe(first), describe(node)));
    }
  }
  if (carries.back() || link.consumers.empty())
    throw Error(fmt::format("the channels of {} go to the network's output", describe(first)));
  return link;
}

std::size_t plain_producer(const net::Graph& graph, std::size_t consumer) {
  const auto inputs = static_cast<int>(graph.inputs.size());
  int value = graph.nodes[consumer].inputs.at(0);
  while (true) {
    if (value < inputs) {
      throw Error(fmt::format("{} reads the network's input, which no layer can scale",
                              describe(graph.nodes[consumer])));
    }
    const auto at = static_cast<std::size_t>(value - inputs);
    const net::Node& node = graph.nodes[at];
    if (scaled_node(graph, at)) return at;
    if (const auto shift = channel_constant(graph, node, "add")) {
      value = other_input(graph, node, *shift);
      continue;
    }
    if (const std::optional<int> factor = multiplied_layer(graph, node)) {
      value = *factor;
      continue;
    }
    value = node.inputs.empty() ? value : node.inputs[0];
    if (!passes(node.op->kind())) {
      throw Error(fmt::format("{} reads {}, through which scales do not pass",
                              describe(graph.nodes[consumer]), describe(node)));
    }
  }
}

ChannelLink any_link(const net::Graph& graph, std::size_t producer) {
  try {
    return plain_link(graph, producer);
  } catch (const Error&) {
    if (std::optional<ChannelLink> link = attention_link(graph, producer, false)) return *link;
    throw;
  }
}

}  // namespace

ChannelLink channel_link(const net::Graph& graph, std::size_t producer) {
  ChannelLink link = any_link(graph, producer);
  std::vector<std::size_t> nodes = link.shifts;
  nodes.insert(nodes.end(), link.consumers.begin(), link.consumers.end());
  nodes.push_back(scaled_node(graph, producer).value());
  for (const std::size_t at : nodes) {
    if (const std::string shared = net::sharing(graph, graph.nodes[at]); !shared.empty())
      throw Error(fmt::format("{}: {}", describe(graph.nodes[at]), shared));
  }
  return link;
}

std::size_t channel_producer(const net::Graph& graph, std::size_t consumer) {
  try {
    return plain_producer(graph, consumer);
  } catch (const Error&) {
    if (const auto link = attention_link(graph, consumer, true)) return link->producer;
    throw;
  }
}

void scale_channels(net::Graph& graph, const ChannelLink& link, const std::vector<double>& s) {
  const auto scaled = [](float x, double by) { return static_cast<float>(double{x} * by); };
  std::vector<std::size_t> nodes = link.shifts;
  nodes.push_back(scaled_node(graph, link.producer).value());
  for (const std::size_t at : nodes) {
    const std::span<net::Parameter> parameters = graph.nodes[at].op->parameters();
    // Weight or gain, and bias; running statistics of a batch normalisation stay.
    for (std::size_t p = 0; p < std::min<std::size_t>(2, parameters.size()); ++p) {
      net::Tensor& x = parameters[p].value;
      const std::int64_t each = x.size() / link.channels;
      for (std::int64_t i = 0; i < x.size(); ++i) x.data[i] = scaled(x.data[i], 1 / s[i / each]);
    }
  }
  for (const std::size_t consumer : link.consumers) {
    net::Node& node = graph.nodes[consumer];
    float* const w = node.op->parameters()[0].value.data.data();
    for_each_input(node, link, [&](std::int64_t i, std::int64_t c) { w[i] = scaled(w[i], s[c]); });
  }
}

std::vector<double> output_magnitudes(const net::Graph& graph, const ChannelLink& link) {
  const net::Tensor& weight = weight_of(graph.nodes[scaled_node(graph, link.producer).value()]);
  std::vector<double> largest(static_cast<std::size_t>(link.channels));
  const std::int64_t each = weight.size() / link.channels;
  for (std::int64_t i = 0; i < weight.size(); ++i)
    largest[i / each] = std::max(largest[i / each], std::abs(double{weight.data[i]}));
  return largest;
}

std::vector<double> input_magnitudes(const net::Graph& graph, const ChannelLink& link) {
  std::vector<double> largest(static_cast<std::size_t>(link.channels));
  for (const std::size_t consumer : link.consumers) {
    const net::Node& node = graph.nodes[consumer];
    const float* const w = weight_of(node).data.data();
    for_each_input(node, link, [&](std::int64_t i, std::int64_t c) {
      largest[c] = std::max(largest[c], std::abs(double{w[i]}));
    });
  }
  return largest;
}

namespace {

constexpr double kEqual = 0.01;  // scales nearer to 1 change no rounding worth a further round

void keep_largest(double& most, double x) { most = std::max(most, x); }

std::string names_of(const net::Graph& graph, const std::vector<std::size_t>& nodes) {
  std::string names;
  for (const std::size_t node : nodes) names += (names.empty() ? "" : " ") + graph.nodes[node].name;
  return names;
}

/// Every element times that of `s`, and the range of the products.
void accumulate(std::vector<double>& total, const std::vector<double>& s, ScaledLink& done) {
  for (std::size_t c = 0; c < s.size(); ++c) total[c] *= s[c];
  const auto [least, most] = std::minmax_element(total.begin(), total.end());
  done.least = *least;
  done.most = *most;
}

}  // namespace

double stepped_scale(double s, ScaleSteps steps) {
  if (!(s > 0) || !std::isfinite(s)) return 1;
  if (steps == ScaleSteps::real) return s;
  // The nearest power of two in ratio: sqrt(1/2) <= s / 2^e < sqrt(2).
  int exponent = 0;
  const double mantissa = std::frexp(s, &exponent);  // in [1/2, 1)
  return std::ldexp(1.0, mantissa * mantissa < 0.5 ? exponent - 1 : exponent);
}

std::vector<double> equalising_scales(const std::vector<double>& r1, const std::vector<double>& r2,
                                      ScaleSteps steps) {
  std::vector<double> s(r1.size(), 1);
  for (std::size_t c = 0; c < s.size(); ++c)
    if (r1[c] > 0 && r2[c] > 0) s[c] = stepped_scale(std::sqrt(r1[c] * r2[c]) / r2[c], steps);
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
      s[c] = stepped_scale(power(x[c], strength) / power(w[c], 1 - strength), steps);
  return s;
}

std::vector<ScaledLink> equalise_weights(std::span<net::Graph* const> graphs, std::int64_t rounds,
                                         ScaleSteps steps) {
  const net::Graph& graph = *graphs[0];
  std::vector<ScaledLink> report;
  std::vector<ChannelLink> links;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!multiplies(graph.nodes[i].op->kind())) continue;
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
    if (!multiplies(graph.nodes[i].op->kind()) || magnitudes[i].empty()) continue;
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
          keep_largest(x[static_cast<std::size_t>(link.channel_of(static_cast<std::int64_t>(c)))],
                       magnitudes[consumer][c]);
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

namespace {

constexpr char kReal[] = "real", kPowersOfTwo[] = "powers_of_two";

constexpr std::size_t kReasons = 2;  // that a line names

/// Why links stay, each reason once: the first ones, and how many more there are.
std::string reasons(const std::vector<ScaledLink>& links) {
  std::vector<std::string> all;
  for (const ScaledLink& link : links)
    if (!link.refused.empty() && std::find(all.begin(), all.end(), link.refused) == all.end())
      all.push_back(link.refused);
  return joined_first(all, "; ", kReasons, "; and {} more such links");
}

bool in(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

}  // namespace

Option scale_steps_option(std::string& scales) {
  return {"scales", "powers_of_two: results in float32 keep every bit; real: within rounding",
          &scales,  0,
          0,        {kReal, kPowersOfTwo}};
}

ScaleSteps scale_steps(std::string_view scales) {
  return scales == kPowersOfTwo ? ScaleSteps::powers_of_two : ScaleSteps::real;
}

void forget_moved_ranges(Tuning& tuning, std::string_view step,
                         const std::vector<ScaledLink>& links) {
  if (std::all_of(links.begin(), links.end(), [](const auto& l) { return !l.refused.empty(); }))
    throw Error(fmt::format("{}: step {}: no scales can be moved: {}", tuning.where, step,
                            links.empty() ? "no layer multiplies by a weight" : reasons(links)));
  for (auto& [layer, ranges] : tuning.ranges) {
    for (const ScaledLink& link : links) {
      if (!link.refused.empty()) continue;
      const bool reads = in(link.consumers, layer);
      if (reads) ranges.activation.reset();
      if (reads || link.producer == layer) ranges.weight.clear();
    }
  }
  std::erase_if(tuning.ranges, [](const auto& entry) { return entry.second.empty(); });
  complete_ranges(tuning);
}

std::string summary_of(const std::vector<ScaledLink>& links) {
  double least = 1, most = 1;
  std::size_t scaled = 0;
  for (const ScaledLink& link : links) {
    if (!link.refused.empty()) continue;
    ++scaled;
    least = std::min(least, link.least);
    most = std::max(most, link.most);
  }
  std::string text =
      fmt::format("{} of {} links scaled by {:.3g} to {:.3g}", scaled, links.size(), least, most);
  if (scaled < links.size()) text += "; as they were: " + reasons(links);
  return text;
}

}  // namespace numemu::policies
