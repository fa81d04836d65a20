// Initial weights: He-normal, a function of seed and name alone.
#include <algorithm>
#include <cmath>

#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/constant.hpp"
#include "emu/net/ops/hadamard_classifier.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/digest.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

TEST_CASE("initial weights are normal with variance 2 / fan_in, biases zero", "[fast]") {
  Graph graph = build_net("mlp", {28, 28, 1}, 10);
  initialize(graph, 3);
  std::vector<float> w = graph.parameters()[0]->value.data;  // 200,704 of them
  const double deviation = std::sqrt(2.0 / 784), n = static_cast<double>(w.size());
  double mean = 0, square = 0;
  for (const float v : w) {
    mean += v / deviation / n;
    square += v / deviation * v / deviation / n;
  }
  CHECK(std::fabs(mean) < 4 / std::sqrt(n));  // 4 standard errors
  CHECK(std::fabs(square - 1) < 4 * std::sqrt(2 / n));
  std::sort(w.begin(), w.end());
  double distance = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double cdf = 0.5 * std::erfc(-w[i] / deviation / std::sqrt(2.0));
    distance = std::max(distance, std::fabs(cdf - (static_cast<double>(i) + 0.5) / n));
  }
  CHECK(distance < 1.95 / std::sqrt(n));  // Kolmogorov-Smirnov at 0.1 %
  for (const float v : graph.parameters()[1]->value.data) CHECK(v == 0);
}

TEST_CASE("the last weights have deviation 1 / fan_in", "[fast]") {
  Graph graph = build_net("mlp", {28, 28, 1}, 10);
  initialize(graph, 3);
  const std::vector<float>& w = graph.parameters()[4]->value.data;
  const double n = static_cast<double>(w.size());
  double square = 0;
  for (const float v : w) square += v * 128.0 * v * 128.0 / n;
  CHECK(std::fabs(square - 1) < 4 * std::sqrt(2 / n));  // 4 standard errors
}

TEST_CASE(
    "normalisations start as the identity and embeddings as rows of deviation sqrt(2 / width)",
    "[fast]") {
  Graph resnet = build_net("resnet20", {8, 8, 3}, 10),
        text = build_net("char-transformer", {8}, 65);
  for (Graph* graph : {&resnet, &text}) {
    for (Parameter* parameter : graph->parameters())
      std::fill(parameter->value.data.begin(), parameter->value.data.end(), 9.0f);
    initialize(*graph, 3);
  }
  const auto all = [](const Tensor& tensor, float value) {
    return std::count(tensor.data.begin(), tensor.data.end(), value) == tensor.size();
  };
  int norms = 0;
  for (const Parameter* parameter : resnet.parameters()) {
    const std::string& name = parameter->name;
    if (name.find("bn") == std::string::npos) continue;
    INFO(name);
    ++norms;
    const bool one = name.ends_with(".weight") || name.ends_with(".running_variance");
    CHECK(all(parameter->value, one ? 1.0f : 0.0f));
    CHECK(parameter->trained == (name.find(".running_") == std::string::npos));
  }
  CHECK(norms == 4 * 19);
  for (const Parameter* parameter : text.parameters()) {
    if (parameter->name == "block1.norm1.weight") CHECK(all(parameter->value, 1));
    const bool rows =
        parameter->name == "embedding.weight" || parameter->name == "positions.weight";
    if (!rows) continue;
    const double n = static_cast<double>(parameter->value.size());
    double square = 0;
    for (const float v : parameter->value.data) square += v * double{v} * 128 / 2 / n;
    CHECK(std::fabs(square - 1) < 4 * std::sqrt(2 / n));  // 4 standard errors
  }
}

TEST_CASE("constants of a graph keep their values", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {2}}};
  Tensor value({2});
  value.data = {3, -4};
  graph.add("constant", std::make_unique<Constant>(value), {});
  initialize(graph, 3);
  CHECK(graph.parameters()[0]->value.data == value.data);
}

TEST_CASE("the small last weights are those of a product, not a constant behind it", "[fast]") {
  const auto weights = [](bool constant, bool fixed) {
    Graph graph;
    graph.inputs = {{"input", {32}}};
    const int fc = graph.add("fc", std::make_unique<Linear>(32, 16));
    if (constant) {
      const int constant_value =
          graph.add("constant", std::make_unique<Constant>(Tensor({16})), {});
      graph.add("add", std::make_unique<Binary>("add"), {fc, constant_value});
    }
    if (fixed) graph.add("last", std::make_unique<HadamardClassifier>(16, 10));
    initialize(graph, 3);
    return graph.parameters()[0]->value.data;
  };
  const std::vector<float> small = weights(false, false);
  CHECK(weights(true, false) == small);
  // Standard deviations 1 / 32 and sqrt(2 / 32): a fixed classifier leaves fc its own.
  const std::vector<float> usual = weights(false, true);
  for (std::size_t i = 0; i < small.size(); ++i)
    CHECK(usual[i] == Approx(8 * small[i]).epsilon(1e-6));
}

TEST_CASE("initial weights depend on the seed and the parameter's name alone", "[fast]") {
  Graph a = build_net("mlp", {28, 28, 1}, 10), b = build_net("mlp", {20, 20, 1}, 10);
  initialize(a, 3);
  initialize(b, 3);
  CHECK(a.parameters()[2]->value.data == b.parameters()[2]->value.data);
  initialize(b, 4);
  CHECK(a.parameters()[2]->value.data != b.parameters()[2]->value.data);
  CHECK(a.parameters()[2]->value.data[0] != a.parameters()[4]->value.data[0]);
}

TEST_CASE("the initial weights of lenet are pinned", "[fast]") {
  Graph graph = build_net("lenet", {28, 28, 1}, 10);
  initialize(graph, 0);
  std::string bytes;
  for (const Parameter* p : graph.parameters()) {
    bytes.append(reinterpret_cast<const char*>(p->value.data.data()),
                 p->value.data.size() * sizeof(float));
  }
  CHECK(sha256_hex(bytes) == "372e80745ce60e9940ee7550619247599996c3badc4cc3672c0e22d6af64b596");
}

}  // namespace
}  // namespace numemu::net
