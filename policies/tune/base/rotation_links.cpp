#include "policies/tune/base/rotation_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "emu/net/memory_plan.hpp"
#include "emu/net/ops/matmul.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

std::vector<std::size_t> readers(const net::Graph& graph, int value) {
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::vector<int>& inputs = graph.nodes[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) nodes.push_back(i);
  }
  return nodes;
}

/// Follows channels through a graph of one sample: a tensor holds, in place of its elements, which
/// channel of the producer each one is.
class ChannelTrace {
 public:
  explicit ChannelTrace(const net::Graph& graph) : graph_(graph) {
    std::vector<net::Shape> samples;
    for (const net::GraphInput& input : graph.inputs) {
      samples.push_back(input.shape);
      samples.back().insert(samples.back().begin(), 1);
    }
    shapes_ = net::value_shapes(graph, samples);
  }

  /// Of the values that a product mixes. Throws Error with what is in the way.
  RotationLink link(std::size_t product) const {
    const auto& op = dynamic_cast<const net::MatMul&>(*graph_.nodes[product].op);
    if (op.options().transpose_b) throw Error("its values are turned");
    RotationLink out;
    std::vector<std::size_t> path;  // from the product back
    int value = graph_.nodes[product].inputs.at(1);
    for (;;) {
      const std::size_t node = node_of(value);
      if (is_linear(node)) {
        out.producer = node;
        break;
      }
      path.push_back(node);
      value = graph_.nodes[node].inputs[passed(node)];
      if (has_numbers(node)) {
        if (!is_linear(node_of(value))) throw Error(through(node));
        out.biases.push_back(node_of(graph_.nodes[node].inputs[1 - passed(node)]));
      }
    }
    const net::Shape& channels = shape_of(out.producer);
    out.channels = channels.back();
    for (const std::size_t bias : out.biases)
      if (net::element_count(shape_of(bias)) != out.channels) throw Error(through(bias));
    net::Tensor at(channels);
    for (std::int64_t i = 0; i < at.size(); ++i)
      at.data[static_cast<std::size_t>(i)] = static_cast<float>(i % out.channels);
    // Others may read a value only where they take other channels of it: keys beside values.
    std::vector<std::pair<std::size_t, net::Tensor>> others;
    std::size_t last = out.producer;
    std::reverse(path.begin(), path.end());
    path.push_back(product);
    for (const std::size_t node : path) {
      for (const std::size_t reader : readers(graph_, graph_.value_of(last)))
        if (reader != node) others.emplace_back(reader, at);
      if (node != product) at = moved(node, at);
      last = node;
    }
    at = mixed(product, op.options(), at, out.channels);
    last = product;
    for (;;) {
      const std::vector<std::size_t> next = readers(graph_, graph_.value_of(last));
      if (next.size() != 1 || is_output(last))
        throw Error(fmt::format("{} reads '{}'",
                                next.empty() || is_output(last) ? "an output" : "several nodes",
                                graph_.nodes[last].name));
      last = next[0];
      if (is_linear(last)) break;
      if (passed(last) != 0 || has_numbers(last)) throw Error(through(last));
      at = moved(last, at);
    }
    out.consumer = last;
    read_columns(at, out);
    const std::set<std::int64_t> rotated(out.from.begin(), out.from.end());
    for (const auto& [reader, before] : others) {
      if (graph_.nodes[reader].op->kind() != "slice")
        throw Error(fmt::format("'{}' reads its values too", graph_.nodes[reader].name));
      for (const float channel : moved(reader, before).data)
        if (rotated.contains(static_cast<std::int64_t>(channel)))
          throw Error(fmt::format("'{}' reads its values too", graph_.nodes[reader].name));
    }
    return out;
  }

  /// Whether the left operand is a softmax, or a view of one.
  bool mixes_by_probabilities(std::size_t product) const {
    int value = graph_.nodes[product].inputs.at(0);
    while (value >= static_cast<int>(graph_.inputs.size())) {
      const net::Node& node = graph_.nodes[static_cast<std::size_t>(value) - graph_.inputs.size()];
      if (node.op->kind() == "softmax") return true;
      if (node.op->result() != net::ResultKind::view || node.inputs.size() != 1) return false;
      value = node.inputs[0];
    }
    return false;
  }

 private:
  bool is_linear(std::size_t node) const { return graph_.nodes[node].op->kind() == "linear"; }
  bool is_output(std::size_t node) const {
    const int value = graph_.value_of(node);
    return node + 1 == graph_.nodes.size() ||
           std::ranges::any_of(graph_.outputs, [&](const auto& out) { return out.value == value; });
  }
  const net::Shape& shape_of(std::size_t node) const {
    return shapes_[static_cast<std::size_t>(graph_.value_of(node))];
  }
  std::size_t node_of(int value) const {
    if (value < static_cast<int>(graph_.inputs.size())) throw Error("its values are an input");
    return static_cast<std::size_t>(value) - graph_.inputs.size();
  }
  std::string through(std::size_t node) const {
    return fmt::format("its values pass '{}' ({})", graph_.nodes[node].name,
                       graph_.nodes[node].op->kind());
  }

  /// The constant that a sum adds; null where the node is none with one.
  const net::Tensor* added(std::size_t node, std::size_t input) const {
    const int value = graph_.nodes[node].inputs[input];
    if (value < static_cast<int>(graph_.inputs.size())) return nullptr;
    const net::Node& other = graph_.nodes[static_cast<std::size_t>(value) - graph_.inputs.size()];
    return other.op->kind() == "constant" ? &std::as_const(*other.op).parameters()[0].value
                                          : nullptr;
  }
  /// The input whose elements the node's result has: that of a view, and of the sum with a
  /// constant, which repeats them where it is zero and is a bias else.
  std::size_t passed(std::size_t node) const {
    const net::Node& n = graph_.nodes[node];
    if (n.op->result() == net::ResultKind::view && n.inputs.size() == 1 && n.op->kind() != "pad")
      return 0;
    if (n.op->kind() == "add" && n.inputs.size() == 2) {
      if (added(node, 0) != nullptr) return 1;
      if (added(node, 1) != nullptr) return 0;
    }
    throw Error(through(node));
  }
  /// Whether the sum's constant is other than zero.
  bool has_numbers(std::size_t node) const {
    if (graph_.nodes[node].op->kind() != "add") return false;
    const net::Tensor& constant = *added(node, 1 - passed(node));
    return std::ranges::any_of(constant.data, [](float x) { return x != 0; });
  }

  /// What the node makes of channels.
  net::Tensor moved(std::size_t node, const net::Tensor& at) const {
    const net::Node& n = graph_.nodes[node];
    std::vector<net::Tensor> given;
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      given.push_back(
          i == passed(node) ? at : net::Tensor(shapes_[static_cast<std::size_t>(n.inputs[i])]));
    std::vector<const net::Tensor*> inputs;
    std::vector<net::Shape> shapes;
    for (const net::Tensor& tensor : given) {
      inputs.push_back(&tensor);
      shapes.push_back(tensor.shape);
    }
    net::Numerics float32;
    net::Tensor out(n.op->output_shape(shapes));
    n.op->forward({.layer = n.name, .numerics = float32}, inputs, out);
    return out;
  }

  /// Channels and heads of the result: channel + channels * head.
  net::Tensor mixed(std::size_t product, const net::MatMulOptions& options, const net::Tensor& at,
                    std::int64_t channels) const {
    net::Tensor out(shape_of(product));
    const std::int64_t n = at.shape.back(), k = at.shape.at(at.shape.size() - 2),
                       matrices = at.size() / (n * k), m = out.shape.at(out.shape.size() - 2);
    if (out.shape.back() != n || out.size() % (n * m) != 0) throw Error("its values are turned");
    const std::int64_t results = out.size() / (n * m);
    if (matrices != results && matrices != 1) throw Error("its heads share matrices");
    const std::int64_t head = options.heads > 0 ? n / options.heads : n;
    for (std::int64_t r = 0; r < results; ++r) {
      const float* const rows = at.data.data() + (matrices == 1 ? 0 : r) * k * n;
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t row = 1; row < k; ++row)
          if (rows[row * n + j] != rows[j]) throw Error("its rows mix channels");
        for (std::int64_t i = 0; i < m; ++i)
          out.data[static_cast<std::size_t>((r * m + i) * n + j)] =
              rows[j] + static_cast<float>(channels * (r * (n / head) + j / head));
      }
    }
    return out;
  }

  /// What each column of the consumer is, in all rows.
  static void read_columns(const net::Tensor& at, RotationLink& link) {
    const std::int64_t columns = at.shape.back();
    for (std::int64_t j = 0; j < at.size(); ++j)
      if (at.data[static_cast<std::size_t>(j)] != at.data[static_cast<std::size_t>(j % columns)])
        throw Error("its rows mix channels");
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto value = static_cast<std::int64_t>(at.data[static_cast<std::size_t>(j)]);
      link.from.push_back(value % link.channels);
      link.head_of.push_back(value / link.channels);
    }
  }

  const net::Graph& graph_;
  std::vector<net::Shape> shapes_;
};

/// x R of a block, R = S H / sqrt(block).
void rotate_block(double* x, std::int64_t block, const double* signs) {
  const double scale = 1 / std::sqrt(static_cast<double>(block));
  for (std::int64_t c = 0; c < block; ++c) x[c] *= signs[c] * scale;
  for (std::int64_t half = 1; half < block; half *= 2) {
    for (std::int64_t c = 0; c < block; ++c) {
      if ((c & half) != 0) continue;
      double &a = x[c], &b = x[c + half];
      const double sum = a + b;
      b = a - b;
      a = sum;
    }
  }
}

/// `block` numbers, `step` apart.
void rotate_numbers(float* x, std::int64_t step, std::int64_t block, const double* signs) {
  std::vector<double> copy(static_cast<std::size_t>(block));
  for (std::int64_t c = 0; c < block; ++c) copy[static_cast<std::size_t>(c)] = x[c * step];
  rotate_block(copy.data(), block, signs);
  for (std::int64_t c = 0; c < block; ++c)
    x[c * step] = static_cast<float>(copy[static_cast<std::size_t>(c)]);
}

}  // namespace

std::int64_t RotationLink::block(std::int64_t most) const {
  const std::int64_t columns = std::ssize(from);
  const auto fits = [&](std::int64_t size) {
    if (columns % size != 0) return false;
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto first = static_cast<std::size_t>(j / size * size), i = static_cast<std::size_t>(j);
      if (from[first] % size != 0 || from[i] != from[first] + j % size ||
          head_of[i] != head_of[first])
        return false;
    }
    return true;
  };
  std::int64_t size = 1;
  while (size * 2 <= most && fits(size * 2)) size *= 2;
  return size;
}

RotationLinks rotation_links(const net::Graph& graph) {
  const ChannelTrace trace(graph);
  RotationLinks out;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (dynamic_cast<const net::MatMul*>(graph.nodes[i].op.get()) == nullptr ||
        !trace.mixes_by_probabilities(i))
      continue;
    std::string why = "a head has no two channels that lie together";
    try {
      RotationLink link = trace.link(i);
      if (link.block(2) == 2) {
        out.links.push_back(std::move(link));
        continue;
      }
    } catch (const Error& error) {
      why = error.what();
    }
    out.left_out.push_back(fmt::format("{}: {}", graph.nodes[i].name, why));
  }
  return out;
}

void rotate_link(net::Graph& graph, const RotationLink& link, std::int64_t block,
                 const RandomSource& random) {
  std::vector<double> signs;
  for (std::int64_t c = 0; c < link.channels; ++c)
    signs.push_back(random.bits(static_cast<std::uint64_t>(c), 1) == 0 ? 1.0 : -1.0);
  std::set<std::int64_t> firsts;  // of the blocks of channels
  for (std::size_t j = 0; j < link.from.size(); j += static_cast<std::size_t>(block))
    firsts.insert(link.from[j]);
  const auto rotate_rows = [&](net::Tensor& x) {  // [channels, ...]
    const std::int64_t columns = x.size() / link.channels;
    for (const std::int64_t first : firsts)
      for (std::int64_t i = 0; i < columns; ++i)
        rotate_numbers(x.data.data() + first * columns + i, columns, block, signs.data() + first);
  };
  for (net::Parameter& parameter : graph.nodes[link.producer].op->parameters())
    rotate_rows(parameter.value);
  for (const std::size_t bias : link.biases)
    rotate_rows(graph.nodes[bias].op->parameters()[0].value);
  net::Tensor& reader = graph.nodes[link.consumer].op->parameters()[0].value;  // [out, in]
  const std::int64_t columns = std::ssize(link.from);
  for (std::int64_t i = 0; i < reader.size(); i += block)
    rotate_numbers(reader.data.data() + i, 1, block,
                   signs.data() + link.from[static_cast<std::size_t>(i % columns)]);
}

}  // namespace numemu::policies
