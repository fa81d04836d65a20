#include <cmath>

#include "emu/net/build/builder.hpp"
#include "emu/net/data/clicks.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/masks.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/softmax.hpp"
#include "emu/net/ops/views.hpp"

namespace numemu::net {
namespace {

// Depthwise separable convolutions: one filter per channel, then a mixture of channels.

struct Separable {
  std::int64_t channels, stride;
};

constexpr Separable kBlocks[] = {{32, 1}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {128, 1}};

}  // namespace

void mobilenet(Builder& net) {
  net.conv3x3("conv1", 16).batch_norm("bn1").relu6("relu1");
  int number = 0;
  for (const auto& [channels, stride] : kBlocks) {
    const std::string name = "block" + std::to_string(++number) + ".";
    net.depthwise(name + "depthwise", stride).batch_norm(name + "bn1").relu6(name + "relu1");
    net.conv1x1(name + "pointwise", channels).batch_norm(name + "bn2").relu6(name + "relu2");
  }
  net.global_pool("pool").flatten("flatten").classifier("fc");
}

namespace {

// Residual networks for CIFAR-10, with the layer names stageS.blockB.LAYER.

constexpr std::int64_t kStages = 3, kChannels = 16;

// The value that is added to the block's result: `from`, under its shape.
int shortcut(Builder& net, const std::string& name, int from, std::int64_t channels,
             std::int64_t stride) {
  const std::int64_t missing = channels - net.at(from).shape()[3];
  if (stride != 1) {
    net.node(name + "shortcut", std::make_unique<Slice>(std::vector<SliceRange>{
                                    {.axis = 1, .step = stride}, {.axis = 2, .step = stride}}));
  }
  if (missing != 0) {
    const std::int64_t half = missing / 2;
    net.node(name + "pad", std::make_unique<Pad>(std::vector<std::int64_t>{0, 0, 0, half},
                                                 std::vector<std::int64_t>{0, 0, 0, half}));
  }
  return net.value();
}

void residual_block(Builder& net, const std::string& name, std::int64_t channels,
                    std::int64_t stride) {
  const int from = net.value();
  net.conv3x3(name + "conv1", channels, stride).batch_norm(name + "bn1").relu(name + "relu1");
  net.conv3x3(name + "conv2", channels).batch_norm(name + "bn2");
  const int result = net.value();
  const int beside = shortcut(net, name, from, channels, stride);
  net.node(name + "add", std::make_unique<Binary>("add"), {result, beside}).relu(name + "relu2");
}

}  // namespace

void resnet(Builder& net, std::int64_t blocks) {
  net.conv3x3("conv1", kChannels).batch_norm("bn1").relu("relu1");
  for (std::int64_t stage = 1; stage <= kStages; ++stage) {
    for (std::int64_t b = 1; b <= blocks; ++b) {
      const std::string name = "stage" + std::to_string(stage) + ".block" + std::to_string(b) + ".";
      residual_block(net, name, kChannels << (stage - 1), stage > 1 && b == 1 ? 2 : 1);
    }
  }
  net.global_pool("pool").flatten("flatten").classifier("fc");
}

namespace {

// A decoder of pre-normalised attention blocks.

// What each position gathers from itself and those before it.
void attention(Builder& net, const std::string& name, std::int64_t heads, std::int64_t width) {
  const int from = net.value();
  const int query = net.linear(name + "query", width).value();
  const int key = net.at(from).linear(name + "key", width, false).value();
  const int value = net.at(from).linear(name + "value", width).value();
  const auto alpha = static_cast<float>(1 / std::sqrt(static_cast<double>(width / heads)));
  net.node(
      name + "scores",
      std::make_unique<MatMul>(MatMulOptions{.heads = heads, .transpose_b = true, .alpha = alpha}),
      {query, key});
  net.node(name + "mask", std::make_unique<CausalMask>());
  net.node(name + "softmax", std::make_unique<Softmax>());
  net.node(name + "gathered", std::make_unique<MatMul>(MatMulOptions{.heads = heads}),
           {net.value(), value});
  net.linear(name + "output", width);
}

void transformer_block(Builder& net, const std::string& name, std::int64_t heads,
                       std::int64_t width) {
  int residual = net.value();
  net.layer_norm(name + "norm1");
  attention(net, name + "attention.", heads, width);
  net.node(name + "add1", std::make_unique<Binary>("add"), {residual, net.value()});
  residual = net.value();
  net.layer_norm(name + "norm2").linear(name + "mlp.fc1", 4 * width);
  net.node(name + "mlp.gelu", std::make_unique<Pointwise>("gelu")).linear(name + "mlp.fc2", width);
  net.node(name + "add2", std::make_unique<Binary>("add"), {residual, net.value()});
}

}  // namespace

void transformer(Builder& net, std::int64_t blocks, std::int64_t heads, std::int64_t width) {
  net.embedding("embedding", width).positions("positions");
  for (std::int64_t b = 1; b <= blocks; ++b)
    transformer_block(net, "block" + std::to_string(b) + ".", heads, width);
  net.layer_norm("norm").classifier("head");
}

namespace {

// Embedding tables, dot products in pairs, two perceptrons.

std::unique_ptr<Op> features(std::int64_t first, std::int64_t last) {
  return std::make_unique<Slice>(std::vector<SliceRange>{{.axis = 1, .start = first, .end = last}});
}

}  // namespace

void dlrm(Builder& net, std::int64_t width) {
  const int input = net.value();
  if (net.shape() != Shape{1, clicks::kFeatures})
    net.refuse("records [" + std::to_string(clicks::kFeatures) + "] of clicks");
  net.node("dense", features(0, clicks::kDense));
  net.linear("bottom.fc1", 4 * width).relu("bottom.relu1");
  net.linear("bottom.fc2", width).relu("bottom.relu2");
  const int bottom = net.value();

  net.node("bottom.vector", std::make_unique<Reshape>(Shape{0, 1, width}));
  std::vector<int> vectors = {net.value()};
  for (std::int64_t c = 0; c < clicks::kCategorical; ++c) {
    const std::string number = std::to_string(c + 1);
    net.at(input).node("category" + number, features(clicks::kDense + c, clicks::kDense + c + 1));
    net.node("embedding" + number, std::make_unique<Embedding>(clicks::kVocabularies[c], width));
    vectors.push_back(net.value());
  }
  const auto count = static_cast<std::int64_t>(vectors.size());
  net.node("vectors", std::make_unique<Concat>(1), vectors);
  net.node("interaction", std::make_unique<MatMul>(MatMulOptions{.transpose_b = true}),
           {net.value(), net.value()});
  std::vector<std::int64_t> pairs;
  for (std::int64_t a = 0; a < count; ++a) {
    for (std::int64_t b = 0; b < a; ++b) pairs.push_back(a * count + b);
  }
  net.node("products", std::make_unique<Reshape>(Shape{0, count * count}));
  net.node("pairs", std::make_unique<Gather>(1, pairs));
  net.node("features", std::make_unique<Concat>(1), {bottom, net.value()});
  net.linear("top.fc1", 4 * width).relu("top.relu1");
  net.linear("top.fc2", 2 * width).relu("top.relu2");
  net.classifier("top.fc3");
}

}  // namespace numemu::net
