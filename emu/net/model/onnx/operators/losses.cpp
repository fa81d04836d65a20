// ONNX's losses of classes: the negative logarithm of the probability of each label, weighed and
// added up.
#include <fmt/format.h>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/softmax.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// Of logarithms of probabilities [n, classes, ..] and the labels, input 1, [n, ..]. Input 2 weighs
/// classes; labels of ignore_index count nothing.
OnnxValue loss_of_labels(const NodeImport& node, const OnnxValue& logs) {
  const OnnxValue labels = node.plain(1);
  if (logs.rank() < 2 || labels.rank() + 1 != logs.rank())
    throw Error(fmt::format("expected scores [n, classes, ..] and labels [n, ..], found {} and {}",
                            to_string(logs.shapes[0]), to_string(labels.shapes[0])));
  const std::vector<Extent> own = labels.extents();
  std::vector<Extent> wide = own;
  wide.insert(wide.begin() + 1, Extent{1});
  OnnxValue label = node.reshape_to(labels, wide), ignored, weight;
  const bool ignores = node->find("ignore_index") != nullptr;
  if (ignores) {
    ignored =
        node.binary("equal", label, static_cast<float>(node->integer_or("ignore_index", -100)));
    label = node.where(ignored, 0, label);
  }
  const auto chosen = [&](const OnnxValue& data, const OnnxValue& places,
                          const IndexedOptions& options) {
    return node.add<IndexedGather>({data, places}, false, options);
  };
  OnnxValue loss = node.unary("negate", chosen(logs, label, {.axis = 1}));
  if (node.has_input(2)) {
    weight = chosen(node.plain(2), label, {.indexing = Indexing::rows});
    if (ignores) weight = node.where(ignored, 0, weight);
    loss = node.binary("multiply", loss, weight);
  } else if (ignores) {
    weight = node.binary("equal", ignored, 0);
  }
  if (ignores) loss = node.where(ignored, 0, loss);
  loss = node.reshape_to(loss, own);
  const std::string_view reduction = node->text_or("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction != "sum" && reduction != "mean")
    throw Error("expected reduction 'none', 'sum' or 'mean'");
  const auto total = [&](std::string_view kind, const OnnxValue& x) {
    return node.reduce(kind, x, every_axis(x, "a loss over"), false);
  };
  if (reduction == "sum") return total("reduce_sum", loss);
  if (weight.number < 0) return total("reduce_mean", loss);
  return node.binary("divide", total("reduce_sum", loss), total("reduce_sum", weight));
}

OnnxValues negative_log_likelihood(const NodeImport& node) {
  return {loss_of_labels(node, node.plain())};
}

OnnxValues cross_entropy(const NodeImport& node) {
  const OnnxValue x = node.plain();
  if (x.rank() < 2) throw Error("expected scores [n, classes, ..]");
  const OnnxValue logs = node.add<LogSoftmax>({x}, false, 1);
  return {loss_of_labels(node, logs), logs};
}

}  // namespace

const OnnxHandlers& onnx_losses_handlers() {
  static const OnnxHandlers kHandlers = {
      {"NegativeLogLikelihoodLoss", negative_log_likelihood},
      {"SoftmaxCrossEntropyLoss", cross_entropy},
  };
  return kHandlers;
}

}  // namespace numemu::net
