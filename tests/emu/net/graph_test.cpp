#include "emu/net/graph.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <memory>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::graph_test {
namespace {

// y = sum of factor[i] * inputs[i].
class WeightedSum final : public Op {
 public:
  explicit WeightedSum(std::vector<float> factors)
      : Op({.kind = "weighted_sum", .inputs = kNoInput}), factors_(std::move(factors)) {}
  Shape output_shape(Shapes inputs) const override { return inputs[0]; }
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override {
    std::fill(output.data.begin(), output.data.end(), 0.0f);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      for (std::size_t i = 0; i < output.data.size(); ++i)
        output.data[i] += factors_[k] * inputs[k]->data[i];
    }
  }
  void backward(const OpCall&, const OpBackward& back) const override {
    for (std::size_t k = 0; k < back.grad_inputs.size(); ++k) {
      for (std::size_t i = 0; i < back.grad_output.data.size(); ++i)
        back.grad_inputs[k].data[i] = factors_[k] * back.grad_output.data[i];
    }
  }

 private:
  std::vector<float> factors_;
};

template <class... Factors>
std::unique_ptr<Op> weighted_sum(Factors... factors) {
  return std::make_unique<WeightedSum>(std::vector<float>{factors...});
}

// x -> fc -> value 1; relu(value 1) -> 2; 2 * value 1 + value 2 -> 3; flatten -> 4.
Graph residual_graph() {
  Graph graph;
  graph.name = "residual";
  graph.inputs = {{"input", {3}}};
  graph.add("fc", std::make_unique<Linear>(3, 4));
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  graph.add("sum", weighted_sum(2.0f, 1.0f), {1, 2});
  graph.add("flatten", std::make_unique<Flatten>());
  std::uint32_t identity = 50;
  for (Parameter* p : graph.parameters())
    p->value = test::random_tensor(p->value.shape, ++identity);
  return graph;
}

TEST_CASE("a value read twice collects both gradients", "[fast]") {
  const Graph graph = residual_graph();
  const Tensor x = test::random_tensor({5, 3}, 1), g = test::random_tensor({5, 4}, 2);
  Numerics numerics;
  const Tape tape = forward_training(graph, x, numerics);
  CHECK(tape.output.data == forward(graph, x, numerics).data);
  const std::vector<Tensor> gradients = backward(graph, tape, g, numerics);

  const auto parameters = graph.parameters();
  REQUIRE(gradients.size() == 2);
  test::Doubles weight(12), bias(4);
  for (int n = 0; n < 5; ++n) {
    for (int o = 0; o < 4; ++o) {
      double z = parameters[1]->value.data[o];
      for (int i = 0; i < 3; ++i)
        z += double{x.data[n * 3 + i]} * parameters[0]->value.data[o * 3 + i];
      REQUIRE(std::fabs(z) > 1e-4);  // the rectifier's side is certain
      CHECK(tape.output.data[n * 4 + o] == Approx(2 * z + std::max(z, 0.0)).margin(1e-6));
      const double slope = (z > 0 ? 3 : 2) * g.data[n * 4 + o];
      bias[o] += slope;
      for (int i = 0; i < 3; ++i) weight[o * 3 + i] += slope * x.data[n * 3 + i];
    }
  }
  const double tolerance = 3 * test::dot_tolerance(5);
  test::require_close(weight, gradients[0], tolerance, "weight");
  test::require_close(bias, gradients[1], tolerance, "bias");
}

TEST_CASE("gradients of several readers are added in node order", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {1}}};
  graph.add("fc", std::make_unique<Linear>(1, 1));
  graph.add("a", weighted_sum(1.0f), {1});
  graph.add("b", weighted_sum(0x1p25f), {1});
  graph.add("c", weighted_sum(-0x1p25f), {1});
  graph.add("sum", weighted_sum(1.0f, 1.0f, 1.0f), {2, 3, 4});
  Numerics numerics;
  Tensor x({1, 1}, 1), g({1, 1}, 1);
  const std::vector<Tensor> gradients =
      backward(graph, forward_training(graph, x, numerics), g, numerics);
  CHECK(gradients[1].data[0] == 0);  // (1 + 2^25) - 2^25; any other order gives 1
}

TEST_CASE(
    "one node may read a value twice, and nodes off the path to the output have zero gradients",
    "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {2}}};
  graph.add("fc", std::make_unique<Linear>(2, 2));
  graph.add("dead", std::make_unique<Linear>(2, 3), {1});
  graph.add("double", weighted_sum(1.0f, 3.0f), {1, 1});
  Numerics numerics;
  const Tensor x({1, 2}, 1), g({1, 2}, 1);
  const std::vector<Tensor> gradients =
      backward(graph, forward_training(graph, x, numerics), g, numerics);
  REQUIRE(gradients.size() == 4);
  CHECK(gradients[1].data == std::vector<float>{4, 4});
  CHECK(gradients[2].data == std::vector<float>(6, 0.0f));
}

// Records the moments that the graph calls.
class Recording final : public Numerics {
 public:
  std::vector<std::string> log;
  void product(const Step& step, const Product& p) override {
    log.push_back("product " + std::string(p.layer) + " " + std::string(to_string(p.kind)));
    Numerics::product(step, p);
  }
  void edge(const Step&, const Edge& e, Tensor&) override {
    log.push_back((e.backward ? "edge' " : "edge ") + std::string(e.layer));
  }
  Saved save(const Step& step, const Kept& kept, const SharedTensor& tensor) override {
    log.push_back("save " + std::string(kept.layer));
    return Numerics::save(step, kept, tensor);
  }
  SharedTensor restore(const Step& step, const Kept& kept, Saved saved) override {
    log.push_back("restore " + std::string(kept.layer));
    return Numerics::restore(step, kept, std::move(saved));
  }
  void vector_result(const Step&, std::string_view layer, std::string_view op, Tensor&) override {
    log.push_back("vector " + std::string(layer) + " " + std::string(op));
  }
};

TEST_CASE("every tensor meets every moment once", "[fast]") {
  Graph graph = residual_graph();
  graph.add("fc2", std::make_unique<Linear>(4, 2));
  Recording numerics;
  Tape tape = forward_training(graph, test::random_tensor({2, 3}, 1), numerics);
  CHECK(numerics.log == std::vector<std::string>{"product fc fprop", "edge fc", "save input",
                                                 "vector relu relu", "edge relu",
                                                 "vector sum weighted_sum", "edge sum", "save relu",
                                                 "product fc2 fprop", "edge fc2", "save flatten"});
  numerics.log.clear();
  backward(graph, std::move(tape), Tensor({2, 2}, 1), numerics);
  CHECK(numerics.log == std::vector<std::string>{"edge' fc2", "restore flatten",
                                                 "product fc2 wgrad", "product fc2 dgrad",
                                                 "edge' sum", "edge' relu", "restore relu",
                                                 "edge' fc", "restore input", "product fc wgrad"});
}

// Gives back zeros in the place of what was saved for one use.
class Forgetting final : public Numerics {
 public:
  explicit Forgetting(Use use) : use_(use) {}
  SharedTensor restore(const Step&, const Kept& kept, Saved saved) override {
    if (kept.use != use_) return saved.tensor;
    return std::make_shared<const Tensor>(saved.tensor->shape);
  }

 private:
  Use use_;
};

TEST_CASE("a value is saved once for each use that backward makes of it", "[fast]") {
  Graph graph;
  graph.inputs = {{"input", {3}}};
  graph.add("fc", std::make_unique<Linear>(3, 4, false));
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  graph.add("fc2", std::make_unique<Linear>(4, 2, false));
  initialize(graph, 0);
  const Tensor x = test::random_tensor({5, 3}, 1), g = test::random_tensor({5, 2}, 2);
  const auto gradients = [&](Numerics& numerics) {
    return backward(graph, forward_training(graph, x, numerics), g, numerics);
  };
  Numerics exact;
  const Tape tape = forward_training(graph, x, exact);
  const auto kept = [&](int value, Use use) {
    return tape.values[value][static_cast<std::size_t>(use)].tensor;
  };
  CHECK(tape.kept == std::vector<Uses>{0b0001, 0, 0b0011, 0});
  CHECK(kept(2, Use::linear) != nullptr);
  CHECK(kept(2, Use::linear) == kept(2, Use::sign));  // one tensor in memory
  CHECK(kept(2, Use::statistic) == nullptr);

  Forgetting no_sign(Use::sign), no_linear(Use::linear);
  const std::vector<Tensor> expected = gradients(exact), unsigned_ = gradients(no_sign),
                            blank = gradients(no_linear);
  const std::vector<float> zeros(12);
  CHECK(expected[0].data != zeros);
  CHECK(unsigned_[0].data == zeros);
  CHECK(unsigned_[1].data == expected[1].data);
  CHECK(blank[1].data == std::vector<float>(8));
}

TEST_CASE("the caller's rounding mode changes nothing", "[fast]") {
  const Graph graph = residual_graph();
  const Tensor x = test::random_tensor({9, 3}, 1), g = test::random_tensor({9, 4}, 2);
  Numerics numerics;
  const Tape expected = forward_training(graph, x, numerics);
  const std::vector<Tensor> gradients = backward(graph, expected, g, numerics);
  std::fesetround(FE_UPWARD);
  const Tape tape = forward_training(graph, x, numerics);
  const std::vector<Tensor> upward = backward(graph, tape, g, numerics);
  const bool restored = std::fegetround() == FE_UPWARD;
  std::fesetround(FE_TONEAREST);
  CHECK(restored);
  CHECK(tape.output.data == expected.output.data);
  CHECK(upward[0].data == gradients[0].data);
  CHECK(upward[1].data == gradients[1].data);
}

TEST_CASE("the observer sees results before their edge", "[fast]") {
  class Doubling final : public Numerics {
   public:
    void edge(const Step&, const Edge&, Tensor& t) override {
      for (float& v : t.data) v *= 2;
    }
  } numerics;
  Graph graph;
  graph.inputs = {{"input", {1}}};
  graph.add("a", weighted_sum(1.0f));
  graph.add("b", weighted_sum(1.0f));
  std::vector<float> seen;
  const Observer observer = [&](const Node&, const Tensor& t) { seen.push_back(t.data[0]); };
  CHECK(forward(graph, Tensor({1, 1}, 3), numerics, {}, &observer).data[0] == 12);
  CHECK(seen == std::vector<float>{3, 6});
}

TEST_CASE("parameters carry their layer's name; wrong shapes and inputs are refused", "[fast]") {
  Graph graph = residual_graph();
  CHECK(graph.parameters()[1]->name == "fc.bias");
  CHECK(graph.parameter_count() == 16);
  Numerics numerics;
  CHECK_THROWS_WITH(forward(graph, Tensor({2, 4}), numerics),
                    Catch::Contains("residual") && Catch::Contains("[2, 4]"));
  CHECK_THROWS_AS(forward(graph, Tensor({0, 3}), numerics), Error);
  CHECK_THROWS_WITH(graph.add("fc", std::make_unique<Pointwise>("relu")),
                    Catch::Contains("two nodes are named fc"));
  CHECK_THROWS_WITH(graph.add("late", std::make_unique<Pointwise>("relu"), {9}),
                    Catch::Contains("reads value 9"));
  CHECK_THROWS_AS(
      backward(graph, forward_training(graph, Tensor({2, 3}), numerics), Tensor({2, 3}), numerics),
      Error);
}

TEST_CASE("values are named after inputs and nodes", "[fast]") {
  Graph graph;
  graph.inputs = {{"ids", {3}}, {"mask", {3}}};
  CHECK(graph.value_count() == 2);
  CHECK(graph.add("sum", weighted_sum(1.0f, 2.0f), {0, 1}) == 2);
  CHECK(graph.add("last", std::make_unique<Pointwise>("relu")) == 3);
  CHECK(graph.value_name(0) == "ids");
  CHECK(graph.value_name(1) == "mask");
  CHECK(graph.value_name(2) == "sum");
  CHECK(graph.value_name(graph.value_of(1)) == "last");
  CHECK_THROWS_AS(graph.value_name(4), std::out_of_range);
  CHECK(graph.nodes[1].inputs == std::vector<int>{2});
  // Several inputs share one batch.
  Numerics numerics;
  const std::vector<Tensor> inputs{Tensor({2, 3}, 1), Tensor({2, 3}, 10)};
  CHECK(forward(graph, inputs, numerics).data == std::vector<float>(6, 21));
  const std::vector<Tensor> uneven{Tensor({2, 3}, 1), Tensor({1, 3}, 10)};
  CHECK_THROWS_WITH(forward(graph, uneven, numerics), Catch::Contains("for mask"));
  // Packed, each sample has its inputs side by side.
  Tensor packed({2, 6});
  packed.data = {1, 1, 1, 10, 10, 10, 1, 1, 1, 10, 10, 10};
  CHECK(forward(graph, packed, numerics).data == std::vector<float>(6, 21));
  CHECK_THROWS_WITH(forward(graph, inputs[0], numerics),
                    Catch::Contains("expected the elements of 2 inputs"));
}

TEST_CASE("running statistics are written to the node and parameter they belong to", "[fast]") {
  Graph graph = residual_graph();
  graph.add("bn", std::make_unique<BatchNorm>(BatchNormOptions{.channels = 4}));
  const Tensor weight = graph.parameters()[0]->value;
  std::vector<NodeBuffer> buffers(2);
  buffers[0] = {4, {2, 1, {{7, 7, 7, 7}}}};
  buffers[1] = {4, {3, 1, {{5, 5, 5, 5}, {9, 9, 9, 9}}}};
  apply_buffers(graph, buffers);
  CHECK(graph.nodes[4].op->parameters()[2].value.data == std::vector<float>(4, 7));
  CHECK(graph.nodes[4].op->parameters()[3].value.data == std::vector<float>(4, 9));
  CHECK(graph.nodes[4].op->parameters()[0].value.data == std::vector<float>(4, 1));
  CHECK(graph.parameters()[0]->value.data == weight.data);

  // What a training step leaves is what belongs there: inference changes, the step's loss did not.
  Numerics numerics;
  const Tensor x = test::random_tensor({5, 3}, 3);
  Tape tape = forward_training(graph, x, numerics);
  REQUIRE(tape.buffers.size() == 2);
  const Tensor before = forward(graph, x, numerics);
  Tensor mean = graph.nodes[4].op->parameters()[2].value;
  apply(tape.buffers[0].update, mean);
  apply_buffers(graph, tape.buffers);
  CHECK(graph.nodes[4].op->parameters()[2].value.data == mean.data);
  CHECK(forward(graph, x, numerics).data != before.data);
}

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

}  // namespace numemu::net::graph_test
