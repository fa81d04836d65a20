// From a network's name to its row of nets.def.
#include "emu/net/nets.hpp"

#include <charconv>

#include "emu/net/build/builder.hpp"
#include "emu/net/data/dataset.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

struct Row {
  std::string_view name;
  DataKind kind;
  void (*build)(Builder&);
};

const Row kRows[] = {
#define NUMEMU_NET(name, kind, ...) {name, DataKind::kind, [](Builder& net) { __VA_ARGS__; }},
#include "emu/net/nets.def"
#undef NUMEMU_NET
};

/// The fully connected network of Courbariaux et al. 2016: three hidden layers of signs.
void binarynet(Builder& net, std::int64_t width) {
  net.flatten("flatten");
  for (const char* const number : {"1", "2", "3"})
    net.linear(std::string("fc") + number, width, false)
        .batch_norm(std::string("bn") + number)
        .hard_tanh(std::string("tanh") + number);
  net.linear("fc4", net.classes(), false).batch_norm("bn4");
}

/// Networks whose width is part of their name, "dlrm(WIDTH)".
struct Family {
  std::string_view name;
  DataKind kind;
  void (*build)(Builder&, std::int64_t width);
};
constexpr Family kFamilies[] = {{"dlrm", DataKind::clicks, dlrm},
                                {"binarynet", DataKind::images, binarynet}};

/// A family and a width; the family is null for any other name.
struct Member {
  const Family* family = nullptr;
  std::int64_t width = 0;
};

Member family_member(std::string_view name) {
  constexpr std::int64_t kMost = 4096;
  for (const Family& family : kFamilies) {
    const std::size_t start = family.name.size() + 1;
    if (!name.starts_with(std::string(family.name) + "(") || !name.ends_with(')')) continue;
    const std::string_view text = name.substr(start, name.size() - start - 1);
    std::int64_t width = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), width);
    const bool whole = failure == std::errc() && end == text.data() + text.size();
    if (!whole || width < 1 || width > kMost || text.starts_with('0')) {
      throw Error("network " + std::string(name) + ": expected " + std::string(family.name) +
                  "(WIDTH), WIDTH from 1 to " + std::to_string(kMost));
    }
    return {&family, width};
  }
  return {};
}

/// "hadamard(NET)": a network with another one's layers but for a fixed classifier; empty for any
/// other name.
std::string_view fixed_network(std::string_view name) {
  constexpr std::string_view kFamily = "hadamard(";
  if (!name.starts_with(kFamily) || !name.ends_with(')')) return {};
  return name.substr(kFamily.size(), name.size() - kFamily.size() - 1);
}

/// The graph with Hadamard rows in the place of its last layer.
Graph with_fixed_classifier(Graph graph) {
  Node last = std::move(graph.nodes.back());
  if (last.op->kind() != "linear") {
    throw Error("hadamard(" + graph.name + "): expected a network that ends with a linear layer, " +
                last.name + " is " + std::string(last.op->kind()));
  }
  graph.nodes.pop_back();
  const Shape& weight = last.op->parameters()[0].value.shape;
  graph.add(last.name, std::make_unique<HadamardClassifier>(weight[1], weight[0]), last.inputs);
  graph.name = "hadamard(" + graph.name + ")";
  return graph;
}

}  // namespace

Graph build_net(std::string_view name, const Shape& input_shape, std::int64_t classes) {
  if (const std::string_view inner = fixed_network(name); !inner.empty())
    return with_fixed_classifier(build_net(inner, input_shape, classes));
  Builder builder(name, input_shape, classes);
  if (const Member member = family_member(name); member.family != nullptr) {
    member.family->build(builder, member.width);
  } else {
    find_named("network", name, kRows, &Row::name).build(builder);
  }
  return builder.take();
}

Graph build_net(std::string_view name, const Dataset& data) {
  const DataKind kind = net_kind(name);
  if (kind != data.kind()) {
    throw Error("network " + std::string(name) + ": expected " + std::string(to_string(kind)) +
                ", data set " + data.name() + " has " + std::string(to_string(data.kind())));
  }
  return build_net(name, data.input_shape(), data.classes());
}

DataKind net_kind(std::string_view name) {
  if (const std::string_view inner = fixed_network(name); !inner.empty()) return net_kind(inner);
  if (const Member member = family_member(name); member.family != nullptr)
    return member.family->kind;
  return find_named("network", name, kRows, &Row::name).kind;
}

std::vector<std::string> net_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace numemu::net
