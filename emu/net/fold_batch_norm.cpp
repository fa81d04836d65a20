#include "emu/net/fold_batch_norm.hpp"

#include <cmath>
#include <utility>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/tied.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {
namespace {

/// The operator with a bias of its own, zero where it had none; null for operators that nothing is
/// folded into.
std::unique_ptr<Op> with_bias(const Op& op) {
  std::unique_ptr<Op> out;
  if (const auto* conv = dynamic_cast<const Conv*>(&op)) {
    ConvOptions options = conv->options();
    options.bias = true;
    out = std::make_unique<Conv>(options);
  } else if (dynamic_cast<const Linear*>(&op) != nullptr) {
    const Tensor& weight = op.parameters()[0].value;
    out = std::make_unique<Linear>(weight.dim(1), weight.dim(0));
  } else {
    return nullptr;
  }
  for (std::size_t i = 0; i < op.parameters().size(); ++i)
    out->parameters()[i].value = op.parameters()[i].value;
  return out;
}

void fold(Op& op, const BatchNorm& norm) {
  const std::span<const Parameter> n = std::as_const(norm).parameters();
  const Tensor &gain = n[0].value, &shift = n[1].value, &mean = n[2].value, &variance = n[3].value;
  Tensor &weight = op.parameters()[0].value, &bias = op.parameters()[1].value;
  const std::int64_t channels = weight.dim(0), each = weight.size() / channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double scale = gain.data[c] / std::sqrt(variance.data[c] + norm.options().epsilon);
    for (std::int64_t i = 0; i < each; ++i) {
      float& w = weight.data[c * each + i];
      w = static_cast<float>(w * scale);
    }
    bias.data[c] =
        static_cast<float>((double{bias.data[c]} - mean.data[c]) * scale + shift.data[c]);
  }
}

}  // namespace

int fold_batch_norm(Graph& graph) {
  const FloatGuard guard;
  std::vector<int> readers(graph.value_count(), 0);
  for (const Node& node : graph.nodes) {
    for (const int v : node.inputs) ++readers[v];
  }
  for (const GraphOutput& output : graph.outputs) ++readers[output.value];
  const auto inputs = static_cast<int>(graph.inputs.size());
  Graph folded;
  folded.name = graph.name;
  folded.inputs = graph.inputs;
  std::vector<int> moved;  // old value number to new
  for (int i = 0; i < inputs; ++i) moved.push_back(i);
  int count = 0;
  for (Node& node : graph.nodes) {
    const auto* norm = dynamic_cast<const BatchNorm*>(node.op.get());
    const int source = node.inputs.empty() ? -1 : node.inputs[0];
    // The last value is the output: a norm there goes only where its source comes to be the last.
    const bool output_stays =
        &node != &graph.nodes.back() ||
        (source >= 0 && moved[source] + 1 == static_cast<int>(folded.value_count()));
    if (norm != nullptr && source >= inputs && readers[source] == 1 && output_stays) {
      Node& before = folded.nodes[static_cast<std::size_t>(moved[source] - inputs)];
      if (std::unique_ptr<Op> op = with_bias(*before.op)) {
        fold(*op, *norm);
        for (std::size_t p = 0; p < op->parameters().size(); ++p)
          op->parameters()[p].name = before.name + (p == 0 ? ".weight" : ".bias");
        before.op = std::move(op);
        moved.push_back(moved[source]);
        ++count;
        continue;
      }
    }
    std::vector<int> reads;
    for (const int v : node.inputs) reads.push_back(moved[v]);
    moved.push_back(static_cast<int>(folded.value_count()));
    folded.nodes.push_back({std::move(node.name), std::move(node.op), std::move(reads)});
  }
  for (const GraphOutput& output : graph.outputs)
    folded.outputs.push_back({output.name, moved[static_cast<std::size_t>(output.value)]});
  graph = std::move(folded);
  if (count > 0) untie_changed(graph);
  return count;
}

}  // namespace numemu::net
