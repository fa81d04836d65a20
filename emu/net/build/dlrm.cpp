// Embedding tables, dot products in pairs, two perceptrons.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/build/builder.hpp"
#include "emu/net/data/clicks.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/views.hpp"

namespace numemu::net {
namespace {

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
