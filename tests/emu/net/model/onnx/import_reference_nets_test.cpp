// Reference networks written as ONNX and read again compute what the originals do.
#include <cmath>
#include <limits>
#include <utility>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/conv.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::import_reference_nets_test {
namespace {

using test::attribute;
using test::ModelWriter;
using Ints = std::vector<std::int64_t>;

/// The operators of resnet20 and char-transformer as PyTorch exports them.
class Export {
 public:
  Export(const Graph& graph, std::int64_t heads) : heads_(heads) {
    const Shape& shape = graph.inputs[0].shape;
    const bool image = shape.size() == 3;
    length_ = shape[0];
    w_.input("x", image ? Ints{-1, shape[2], shape[0], shape[1]} : Ints{-1, shape[0]},
             image ? 1 : 7);
    names_ = {"x"};
    channels_ = {image ? shape[2] : 0};
    for (const Node& node : graph.nodes) names_.push_back(write(node));
    w_.output(names_.back());
  }
  ImportedModel import() const { return w_.import(13); }

 private:
  const Tensor& parameter(const Node& node, std::size_t index) const {
    return std::as_const(*node.op).parameters()[index].value;
  }
  /// An initializer of that parameter as it is.
  std::string keep(const Node& node, std::size_t index) {
    const Parameter& p = std::as_const(*node.op).parameters()[index];
    w_.floats(p.name, p.value.shape, p.value.data);
    return p.name;
  }

  std::string write(const Node& node) {
    const std::string_view kind = node.op->kind();
    const std::string x = names_[static_cast<std::size_t>(node.inputs.at(0))];
    std::int64_t channels = channels_[static_cast<std::size_t>(node.inputs[0])];
    std::string y;
    if (kind == "conv2d") {
      y = conv(node, x);
      channels = static_cast<const Conv&>(*node.op).options().out_channels;
    } else if (kind == "batch_norm") {
      std::vector<std::string> inputs{x};
      for (std::size_t i = 0; i < 4; ++i) inputs.push_back(keep(node, i));
      const double epsilon = static_cast<const BatchNorm&>(*node.op).options().epsilon;
      y = w_.op("BatchNormalization", inputs, {attribute("epsilon", static_cast<float>(epsilon))});
    } else if (kind == "slice") {  // x[:, :, ::2, ::2]
      constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
      y = w_.op("Slice", {x, w_.wholes({0, 0}), w_.wholes({kEnd, kEnd}), w_.wholes({2, 3}),
                          w_.wholes({2, 2})});
    } else if (kind == "pad") {  // twice the channels
      const std::int64_t half = channels / 2;
      y = w_.op("Pad", {x, w_.wholes({0, half, 0, 0, 0, half, 0, 0}), w_.number(0)});
      channels *= 2;
    } else if (kind == "linear") {
      y = linear(node, x);
    } else if (kind == "embedding") {
      y = w_.op("Gather", {keep(node, 0), x});
    } else if (kind == "position_embedding") {
      y = w_.op("Add", {x, keep(node, 0)});
    } else if (kind == "layer_norm") {
      y = w_.op("LayerNormalization", {x, keep(node, 0), keep(node, 1)});
    } else if (kind == "gelu") {
      const std::string erf = w_.op("Erf", {w_.op("Div", {x, w_.number(std::sqrt(2.0f))})});
      y = w_.op("Mul", {w_.op("Mul", {x, w_.op("Add", {erf, w_.number(1)})}), w_.number(0.5f)});
    } else if (kind == "matmul") {
      y = attention(node, x, names_[static_cast<std::size_t>(node.inputs.at(1))]);
    } else if (kind == "causal_mask") {
      const std::string full =
          w_.op("ConstantOfShape", {w_.wholes({length_, length_})},
                {test::tensor_attribute("value", {1}, 1, test::words(-HUGE_VALF))});
      y = w_.op("Add", {x, w_.op("Trilu", {full, w_.whole(1)})});
    } else {
      static const std::vector<std::pair<std::string_view, std::string>> kSame{
          {"relu", "Relu"},
          {"add", "Add"},
          {"global_average_pool", "GlobalAveragePool"},
          {"flatten", "Flatten"},
          {"softmax", "Softmax"}};
      const auto found = std::find_if(kSame.begin(), kSame.end(),
                                      [&](const auto& pair) { return pair.first == kind; });
      INFO(kind);
      REQUIRE(found != kSame.end());
      std::vector<std::string> inputs;
      for (const int v : node.inputs) inputs.push_back(names_[static_cast<std::size_t>(v)]);
      y = w_.op(found->second, inputs);
    }
    channels_.push_back(channels);
    return y;
  }

  std::string conv(const Node& node, const std::string& x) {
    const ConvOptions& o = static_cast<const Conv&>(*node.op).options();
    REQUIRE((o.groups == 1 && !o.bias));
    const ConvAxis &h = o.axes.at(0), &v = o.axes.at(1);
    const Tensor& ohwi = parameter(node, 0);
    Tensor oihw({ohwi.dim(0), ohwi.dim(3), ohwi.dim(1), ohwi.dim(2)});
    const std::int64_t in = ohwi.dim(3), taps = ohwi.dim(1) * ohwi.dim(2);
    for (std::int64_t i = 0; i < ohwi.size(); ++i)
      oihw.data[(i / (taps * in) * in + i % in) * taps + i / in % taps] = ohwi.data[i];
    const std::string weight = node.name + ".weight";
    w_.floats(weight, oihw.shape, oihw.data);
    return w_.op("Conv", {x, weight},
                 {attribute("strides", Ints{h.stride, v.stride}),
                  attribute("pads", Ints{h.pad_before, v.pad_before, h.pad_after, v.pad_after})});
  }

  std::string linear(const Node& node, const std::string& x) {
    const Tensor& w = parameter(node, 0);
    const bool biased = std::as_const(*node.op).parameters().size() > 1;
    if (length_ == 32)  // images: vectors by now
      return w_.op("Gemm", {x, keep(node, 0), keep(node, 1)},
                   {attribute("transB", std::int64_t{1})});
    std::vector<float> turned;
    for (std::int64_t i = 0; i < w.size(); ++i)
      turned.push_back(w.data[i % w.dim(0) * w.dim(1) + i / w.dim(0)]);
    const std::string name = "onnx::MatMul_" + std::to_string(names_.size());
    w_.floats(name, {w.dim(1), w.dim(0)}, turned);
    const std::string y = w_.op("MatMul", {x, name});
    return biased ? w_.op("Add", {keep(node, 1), y}) : y;
  }

  std::string heads(const std::string& x, const Ints& order) {
    const std::string split = w_.op("Reshape", {x, w_.wholes({0, 0, heads_, -1})});
    return w_.op("Transpose", {split}, {attribute("perm", order)});
  }

  /// Scores, or what they gather.
  std::string attention(const Node& node, const std::string& a, const std::string& b) {
    if (node.name.ends_with("scores")) {
      const std::string scores = w_.op("MatMul", {heads(a, {0, 2, 1, 3}), heads(b, {0, 2, 3, 1})});
      return w_.op("Mul", {scores, w_.number(1 / std::sqrt(32.0f))});
    }
    const std::string mixed = w_.op("MatMul", {a, heads(b, {0, 2, 1, 3})});
    const std::string turned = w_.op("Transpose", {mixed}, {attribute("perm", Ints{0, 2, 1, 3})});
    return w_.op("Reshape", {turned, w_.wholes({0, 0, -1})});
  }

  ModelWriter w_;
  std::int64_t heads_, length_ = 0;
  std::vector<std::string> names_;
  std::vector<std::int64_t> channels_;
};

Tensor run(const Graph& graph, const Tensor& x) {
  Numerics numerics;
  return forward(graph, x, numerics);
}

TEST_CASE("resnet20 through ONNX has the same bits for any batch", "[fast]") {
  Graph original = build_net("resnet20", {32, 32, 3}, 10);
  initialize(original, 5);
  const ImportedModel model = Export(original, 0).import();
  CHECK(model.graph.parameter_count() == original.parameter_count());
  CHECK(gemm_layer_names(model.graph).size() == gemm_layer_names(original).size());
  for (const std::int64_t batch : {1, 3, 16}) {
    const Tensor x = test::random_tensor({batch, 32, 32, 3}, static_cast<std::uint32_t>(batch));
    const Tensor y = run(model.graph, x);
    CHECK(y.shape == Shape{batch, 10});
    CHECK(test::bits(y) == test::bits(run(original, x)));
  }
}

/// Logits below 8 after four blocks, of which scores and GELU alone are rounded in another order:
/// some hundred roundings of 2^-24 each.
constexpr double kOtherOrder = 300 * 8 * 0x1p-24;

TEST_CASE("char-transformer through ONNX has the same logits for any batch", "[fast]") {
  constexpr std::int64_t kLength = 8, kWords = 30;
  Graph original = build_net("char-transformer", {kLength}, kWords);
  initialize(original, 6);
  const ImportedModel model = Export(original, 4).import();
  CHECK(gemm_layer_names(model.graph).size() == gemm_layer_names(original).size());
  for (const std::int64_t batch : {1, 3, 16}) {
    Tensor x({batch, kLength});
    for (std::size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = static_cast<float>((11 * i + i * i) % kWords);
    const Tensor expected = run(original, x), y = run(model.graph, x);
    REQUIRE(y.shape == expected.shape);
    test::require_close(test::widened(expected), y, kOtherOrder, std::to_string(batch));
  }
}

}  // namespace
}  // namespace numemu::net::import_reference_nets_test
