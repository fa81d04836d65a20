// Walks back from each ReLU to the convolutions before it.
// Cold: a negligible share of any run (docs/build.md).
#include "policies/zap/sites.hpp"

#include "formats/error.hpp"

namespace numemu::policies {
namespace {

/// Shapes of all values for one sample, and how many nodes read each.
struct Values {
  explicit Values(const net::Graph& graph) : readers(graph.value_count()) {
    for (const net::GraphInput& input : graph.inputs) {
      net::Shape shape = input.shape;
      shape.insert(shape.begin(), 1);
      shapes.push_back(shape);
    }
    for (const net::Node& node : graph.nodes) {
      std::vector<net::Shape> inputs;
      for (const int value : node.inputs) {
        inputs.push_back(shapes[value]);
        ++readers[value];
      }
      shapes.push_back(node.op->output_shape(inputs));
    }
  }
  std::vector<net::Shape> shapes;
  std::vector<int> readers;
};

/// Collects the convolutions that `value` comes from. A branch that ends elsewhere gives none.
struct Walk {
  const net::Graph& graph;
  const Values& values;
  ZapSite& site;
  bool from_input = false;

  void back(int value) {
    const int inputs = static_cast<int>(graph.inputs.size());
    if (value < inputs || values.readers[value] != 1) return;
    const net::Node& node = graph.nodes[value - inputs];
    const std::string_view kind = node.op->kind();
    if (kind == "conv2d") {
      site.convolutions.push_back(node.name);
      site.depth += node.op->parameters()[0].fan_in;
      from_input = from_input || node.inputs[0] < inputs;
    } else if (kind == "batch_norm" || kind == "add") {
      for (const int read : node.inputs) back(read);
    }
  }
};

}  // namespace

std::vector<ZapSite> zap_sites(const net::Graph& graph, bool first) {
  const Values values(graph);
  std::vector<ZapSite> sites;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const net::Shape& shape = values.shapes[graph.value_of(i)];
    if (node.op->kind() != "relu" || shape.size() != 4) continue;
    ZapSite site{node.name, {shape[1], shape[2], shape[3]}, {}, 0};
    Walk walk{graph, values, site};
    walk.back(node.inputs[0]);
    if (!site.convolutions.empty() && (first || !walk.from_input)) sites.push_back(site);
  }
  return sites;
}

std::int64_t convolution_macs(const net::Graph& graph) {
  const Values values(graph);
  std::int64_t macs = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Op& op = *graph.nodes[i].op;
    if (!op.kind().starts_with("conv") || op.result() != net::ResultKind::product) continue;
    macs += net::element_count(values.shapes[graph.value_of(i)]) * op.parameters()[0].fan_in;
  }
  return macs;
}

}  // namespace numemu::policies
