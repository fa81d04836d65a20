// The click network: its size, and its features against dot products computed here.
#include <algorithm>
#include <cmath>
#include <map>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/build/learning.hpp"

namespace numemu::net::dlrm_test {
namespace {

constexpr std::int64_t kWidth = 16, kVectors = 1 + clicks::kCategorical,
                       kPairs = kVectors * (kVectors - 1) / 2;

TEST_CASE("dlrm-small has a row per category and two perceptrons", "[fast]") {
  std::int64_t rows = 0;
  for (const std::int64_t size : clicks::kVocabularies) rows += size;
  CHECK(build_net("dlrm-small", {clicks::kFeatures}, 2).parameter_count() ==
        rows * kWidth + 14 * 64 + 65 * kWidth + (kWidth + kPairs + 1) * 64 + 65 * 32 + 33 * 2);
}

TEST_CASE("features are the dense vector and the products of all pairs of vectors", "[fast]") {
  const test::Lesson lesson = test::lesson("dlrm-small", {clicks::kFeatures}, 2);
  std::map<std::string, Tensor> seen;
  const Observer keep = [&](const Node& node, const Tensor& tensor) { seen[node.name] = tensor; };
  Numerics numerics;
  forward(lesson.graph, lesson.x, numerics, {}, &keep);
  const Tensor& features = seen.at("features");
  REQUIRE(features.shape == Shape{test::kBatch, kWidth + kPairs});
  std::vector<const Tensor*> tables;
  for (const Parameter* parameter : lesson.graph.parameters()) {
    if (parameter->name.starts_with("embedding")) tables.push_back(&parameter->value);
  }
  REQUIRE(tables.size() == clicks::kCategorical);
  const Tensor& bottom = seen.at("bottom.relu2");
  for (std::int64_t i = 0; i < test::kBatch; ++i) {
    const float* const own = features.data.data() + i * (kWidth + kPairs);
    std::vector<const float*> vectors = {bottom.data.data() + i * kWidth};
    for (std::int64_t c = 0; c < clicks::kCategorical; ++c) {
      const float row = lesson.x.data[i * clicks::kFeatures + clicks::kDense + c];
      vectors.push_back(tables[c]->data.data() + static_cast<std::int64_t>(row) * kWidth);
    }
    CHECK(std::equal(own, own + kWidth, vectors[0]));
    const float* pair = own + kWidth;
    for (std::int64_t a = 0; a < kVectors; ++a) {
      for (std::int64_t b = 0; b < a; ++b) {
        double sum = 0, size = 0;
        for (std::int64_t k = 0; k < kWidth; ++k) {
          const double product = double{vectors[a][k]} * double{vectors[b][k]};
          sum += product;
          size += std::fabs(product);
        }
        CHECK(std::fabs(*pair++ - sum) <= kWidth * 0x1p-24 * size);  // at most 16 roundings
      }
    }
  }
}

}  // namespace
}  // namespace numemu::net::dlrm_test
