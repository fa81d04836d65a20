// ONNX's losses of classes: the negative logarithm of the probability of each label, weighed and
// added up.
#include <fmt/format.h>

#include "emu/net/model/onnx/arithmetic.hpp"
#include "emu/net/ops/softmax.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

/// Of logarithms of probabilities [n, classes, ..] and the labels, input 1, [n, ..]. Input 2 weighs
/// classes; labels of ignore_index count nothing.
OnnxValue loss_of_labels(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& logs) {
  const OnnxArithmetic make(importer, node);
  const OnnxValue labels = importer.to_plain(importer.value(node, 1));
  if (logs.rank() < 2 || labels.rank() + 1 != logs.rank())
    throw Error(fmt::format("expected scores [n, classes, ..] and labels [n, ..], found {} and {}",
                            to_string(logs.shapes[0]), to_string(labels.shapes[0])));
  const std::vector<Extent> own = labels.extents();
  std::vector<Extent> wide = own;
  wide.insert(wide.begin() + 1, Extent{1});
  OnnxValue label = importer.reshape_to(node, labels, wide), ignored, weight;
  const bool ignores = node.find("ignore_index") != nullptr;
  if (ignores) {
    ignored =
        make.binary("equal", label, static_cast<float>(integer_or(node, "ignore_index", -100)));
    label = make.where(ignored, 0, label);
  }
  OnnxValue loss = make.unary("negate", make.chosen(logs, label, {.axis = 1}));
  if (importer.has_input(node, 2)) {
    weight = make.chosen(importer.to_plain(importer.value(node, 2)), label,
                         {.indexing = Indexing::rows});
    if (ignores) weight = make.where(ignored, 0, weight);
    loss = make.binary("multiply", loss, weight);
  } else if (ignores) {
    weight = make.binary("equal", ignored, 0);
  }
  if (ignores) loss = make.where(ignored, 0, loss);
  loss = importer.reshape_to(node, loss, own);
  const std::string_view reduction = text_or(node, "reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction != "sum" && reduction != "mean")
    throw Error("expected reduction 'none', 'sum' or 'mean'");
  const auto total = [&](std::string_view kind, const OnnxValue& x) {
    return make.reduce(kind, x, every_axis(x, "a loss over"), false);
  };
  if (reduction == "sum") return total("reduce_sum", loss);
  if (weight.number < 0) return total("reduce_mean", loss);
  return make.binary("divide", total("reduce_sum", loss), total("reduce_sum", weight));
}

Values negative_log_likelihood(OnnxImporter& importer, const OnnxNode& node) {
  return {loss_of_labels(importer, node, importer.to_plain(importer.value(node)))};
}

Values cross_entropy(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.value(node));
  if (x.rank() < 2) throw Error("expected scores [n, classes, ..]");
  const OnnxValue logs = importer.add<LogSoftmax>(node, {x}, false, 1);
  return {loss_of_labels(importer, node, logs), logs};
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
