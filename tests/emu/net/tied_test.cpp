// Parameters that are one tensor: gradients and steps against PyTorch (tied_reference.py), files
// whose nodes share initializers, checkpoints.
#include "emu/net/tied.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "emu/net/backward.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/step.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/tied_reference.hpp"
#include "tests/files.hpp"

namespace numemu::net::tied_test {
namespace {

using Catch::Contains;
using test::ModelWriter;

constexpr std::int64_t kV = 6, kD = 4, kK = 5, kN = 8, kT = 3;

std::vector<float> numbers(int seed, std::int64_t count) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(
        static_cast<float>(static_cast<double>((i * 7919 + seed * 104729) % 1009) / 504.5 - 1));
  return all;
}

/// The network of tied_reference.py; its weights are initializers that two nodes read.
std::string model_bytes() {
  return ModelWriter()
      .input("ids", {-1, kT}, 7)
      .floats("table", {kV, kD}, numbers(1, kV * kD))
      .floats("twice", {kD, kD}, numbers(2, kD * kD))
      .floats("code", {kD, kK}, numbers(3, kD * kK))
      .node("Gather", {"table", "ids"}, {"rows"})
      .node("ReduceMean", {"rows"}, {"mean"},
            {test::attribute("axes", std::vector<std::int64_t>{1}),
             test::attribute("keepdims", std::int64_t{0})})
      .node("MatMul", {"mean", "twice"}, {"a"}, {}, "first")
      .node("Tanh", {"a"}, {"b"})
      .node("Identity", {"twice"}, {"again"})
      .node("MatMul", {"b", "again"}, {"c"}, {}, "second")
      .node("Tanh", {"c"}, {"d"})
      .node("MatMul", {"d", "code"}, {"e"}, {}, "encode")
      .node("Tanh", {"e"}, {"f"})
      .node("Transpose", {"code"}, {"decoder"})
      .node("MatMul", {"f", "decoder"}, {"g"}, {}, "decode")
      .node("Transpose", {"table"}, {"head"})
      .node("MatMul", {"g", "head"}, {"logits"}, {}, "logits")
      .output("logits")
      .file();
}

OnnxModel model() {
  const std::string text = model_bytes();
  Bytes bytes(static_cast<std::int64_t>(text.size()));
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
  return parse_onnx("m.onnx", std::move(bytes));
}

Graph tied_graph() {
  OnnxModel file = model();
  const TensorPrints shared = shared_tensors(file);
  Graph graph = import_onnx(std::move(file)).graph;
  tie_parameters(graph, shared);
  return graph;
}

StepInput batch(std::int64_t step) {
  StepInput input;
  input.index = step;
  input.x = Tensor({kN, kT});
  for (std::int64_t i = 0; i < kN * kT; ++i)
    input.x.data[static_cast<std::size_t>(i)] = static_cast<float>((5 * i + 3) % kV);
  for (std::int64_t i = 0; i < kN; ++i) {
    input.targets.classes.push_back(static_cast<std::int32_t>((7 * i + 2) % kV));
    input.samples.push_back(i);
  }
  input.learning_rate = 0.05;
  return input;
}

const Parameter& parameter(const Graph& graph, const std::string& name) {
  for (const Parameter* each : graph.parameters())
    if (each->name == name) return *each;
  FAIL("no parameter " << name);
  return *graph.parameters()[0];
}

/// The parameters that are trained, by the tensors of the file. A layer has its weight turned.
struct Owners {
  std::string table, twice, code;
};

Owners owners(const Graph& graph) {
  Owners found;
  for (const Parameter* each : graph.parameters()) {
    if (!each->trained) continue;
    if (each->value.size() == kV * kD) found.table = each->name;
    if (each->value.size() == kD * kD) found.twice = each->name;
    if (each->value.size() == kD * kK) found.code = each->name;
  }
  return found;
}

/// Elements of a tensor of PyTorch, [rows, columns], in the order of a layer's weight.
Tensor turned(const float* x, std::int64_t rows, std::int64_t columns) {
  Tensor out({columns, rows});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      out.data[static_cast<std::size_t>(c * rows + r)] = x[r * columns + c];
  return out;
}

void check_near(const Tensor& found, const Tensor& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  double off = 0;
  for (std::int64_t i = 0; i < found.size(); ++i)
    off = std::max(off, std::abs(double{found.data[static_cast<std::size_t>(i)]} -
                                 double{expected.data[static_cast<std::size_t>(i)]}));
  CHECK(off <= tolerance);
}

Tensor as_is(const float* x, std::int64_t rows, std::int64_t columns) {
  Tensor out({rows, columns});
  std::copy_n(x, rows * columns, out.data.begin());
  return out;
}

/// Float32 results of other kernels in another order: some units in the last place of numbers near
/// one, which Adam's quotient of moments enlarges while gradients are small.
constexpr double kGradients = 1e-6, kSgdSteps = 1e-6, kAdamSteps = 2e-5;

TEST_CASE("tied: nodes that share an initializer have one parameter, also turned", "[fast]") {
  const Graph graph = tied_graph();
  const auto groups = tied_groups(graph);
  REQUIRE(groups.size() == 3);
  for (const auto& names : groups) CHECK(names.size() == 2);
  CHECK(graph.parameter_count() == kV * kD + kD * kD + kD * kK);
  const Owners own = owners(graph);
  std::size_t turned_once = 0;
  for (const Parameter* each : graph.parameters()) {
    if (!each->is_tied()) continue;
    CHECK_FALSE(each->trained);
    turned_once += each->tied_axes == std::vector<int>{1, 0};
  }
  CHECK(turned_once == 1);  // the decoder; the table has the order of a layer's weight
  CHECK_FALSE(own.table.empty());
  for (const Node& node : graph.nodes)
    if (node.op->kind() == "linear") CHECK_THAT(sharing(graph, node), Contains(" is also "));
}

TEST_CASE("tied: gradients are those of PyTorch, added over all uses", "[fast]") {
  namespace r = tied_reference;
  const Graph graph = tied_graph();
  const StepInput input = batch(0);
  Numerics numerics;
  Tape tape = forward_training(graph, input.x, numerics);
  Tensor gradient;
  find_objective("cross_entropy").evaluate(tape.output, input.targets, &gradient, 1);
  const std::vector<Tensor> found = backward(graph, std::move(tape), gradient, numerics);
  const std::vector<const Parameter*> parameters = graph.parameters();
  const Owners own = owners(graph);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p]->is_tied()) CHECK(found[p].empty());
    if (parameters[p]->name == own.table)
      check_near(found[p], as_is(r::kTableGradient, kV, kD), kGradients);
    if (parameters[p]->name == own.twice)
      check_near(found[p], turned(r::kTwiceGradient, kD, kD), kGradients);
    if (parameters[p]->name == own.code)
      check_near(found[p], turned(r::kCodeGradient, kD, kK), kGradients);
  }
}

TEST_CASE("tied: steps of SGD and Adam are those of PyTorch, in one state", "[fast]") {
  namespace r = tied_reference;
  struct Expected {
    const char* optimizer;
    const float *table, *twice, *code;
    double tolerance;
  };
  for (const Expected& expected :
       {Expected{"sgd", r::kTableSgd, r::kTwiceSgd, r::kCodeSgd, kSgdSteps},
        Expected{"adam", r::kTableAdam, r::kTwiceAdam, r::kCodeAdam, kAdamSteps}}) {
    for (const std::int64_t micro_batches : {1, 2}) {
      CAPTURE(expected.optimizer, micro_batches);
      Graph graph = tied_graph();
      TrainOptions options;
      options.optimizer = expected.optimizer;
      options.weight_decay = 0;
      options.micro_batches = micro_batches;
      const auto optimizer = make_optimizer(options, std::as_const(graph).parameters());
      Numerics numerics;
      for (std::int64_t step = 0; step < 3; ++step)
        training_step(graph, batch(step), options, *optimizer, numerics);
      const Owners own = owners(graph);
      check_near(parameter(graph, own.table).value, as_is(expected.table, kV, kD),
                 expected.tolerance);
      check_near(parameter(graph, own.twice).value, turned(expected.twice, kD, kD),
                 expected.tolerance);
      check_near(parameter(graph, own.code).value, turned(expected.code, kD, kK),
                 expected.tolerance);
      const std::vector<const Parameter*> parameters = std::as_const(graph).parameters();
      for (std::size_t p = 0; p < parameters.size(); ++p) {
        if (!parameters[p]->is_tied()) continue;
        CHECK(optimizer->state(p).empty());
        CHECK(in_tied_order(*parameters[p], parameter(graph, parameters[p]->tied_to).value).data ==
              parameters[p]->value.data);
      }
    }
  }
}

TEST_CASE("tied: workers with weights of their own keep them one", "[fast]") {
  Graph graph = tied_graph();
  TrainOptions options;
  options.workers = 2;
  options.local_steps = 2;
  const auto optimizer = make_optimizer(options, std::as_const(graph).parameters());
  Numerics numerics;
  for (std::int64_t step = 0; step < 4; ++step) {
    StepInput input = batch(step);
    input.exchange = step % 2 == 1;
    training_step(graph, input, options, *optimizer, numerics);
  }
  const std::size_t before = tied_groups(graph).size();
  untie_changed(graph);
  CHECK(tied_groups(graph).size() == before);
}

TEST_CASE("tied: what is not one tensor of the file is not tied", "[fast]") {
  const auto groups = [](ModelWriter& writer) {
    const std::string text = writer.file();
    Bytes bytes(static_cast<std::int64_t>(text.size()));
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
    OnnxModel file = parse_onnx("m.onnx", std::move(bytes));
    const TensorPrints shared = shared_tensors(file);
    Graph graph = import_onnx(std::move(file)).graph;
    tie_parameters(graph, shared);
    return tied_groups(graph).size();
  };
  const auto two = [](const std::vector<float>& one, const std::vector<float>& other,
                      const char* second) {
    ModelWriter writer;
    writer.input("x", {-1, kD})
        .floats("w", {kD, kD}, one)
        .floats("v", {kD, kD}, other)
        .node("MatMul", {"x", "w"}, {"a"})
        .node("MatMul", {"a", second}, {"b"})
        .node("MatMul", {"b", "v"}, {"c"})
        .output("c");
    return writer;
  };
  const std::vector<float> w = numbers(4, kD * kD), v = numbers(5, kD * kD);
  ModelWriter shared = two(w, v, "w"), apart = two(w, v, "v"), twins = two(w, w, "w");
  CHECK(groups(shared) == 1);
  CHECK(groups(apart) == 1);  // v is read twice
  CHECK(groups(twins) == 0);  // which of the two tensors a layer has cannot be told
  // Exporters merge tensors of ones and zeros by value.
  ModelWriter ones = two(std::vector<float>(kD * kD, 1), v, "w");
  CHECK(groups(ones) == 0);
}

TEST_CASE("tied: a checkpoint has one tensor, and is read back tied", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string path = folder / "c.safetensors";
  const Graph graph = tied_graph();
  Checkpoint checkpoint = parameters_of(graph);
  const std::size_t all = checkpoint.tensors.size();
  store_ties(checkpoint, graph);
  CHECK(checkpoint.tensors.size() == all - 3);
  write_safetensors(path, checkpoint);
  const Checkpoint read = read_weights(path);

  Graph plain = import_onnx(model()).graph;
  for (Parameter* each : plain.parameters())
    if (each->trained) each->value.data.assign(each->value.data.size(), 0);
  load_checkpoint(plain, read, path);
  CHECK(tied_groups(plain) == tied_groups(graph));
  CHECK(digest_of(plain) == digest_of(graph));

  // Two tensors of a file, as earlier programs wrote them, are two.
  Checkpoint apart = parameters_of(graph);
  for (NamedTensor& tensor : apart.tensors)
    if (parameter(graph, tensor.name).is_tied()) tensor.value.data[0] += 1;
  Graph loaded = tied_graph();
  load_parameters(loaded, apart, path);
  CHECK(tied_groups(loaded).empty());
  CHECK(loaded.parameter_count() == 2 * graph.parameter_count());

  for (const auto& [text, message] :
       {std::pair(R"({"parameters": [{"parameter": "x", "to": "y", "axes": []}]})",
                  "metadata: tied: unknown parameter 'x'"),
        std::pair(R"({"parameters": 3})", "metadata: tied: parameters"),
        std::pair("[", "metadata: tied")}) {
    Checkpoint bad = read;
    for (auto& [key, value] : bad.metadata)
      if (key == "tied") value = text;
    Graph target = import_onnx(model()).graph;
    CHECK_THROWS_WITH(load_checkpoint(target, bad, "c.safetensors"), Contains(message));
  }
  Checkpoint bad = read;
  const Owners own = owners(graph);
  for (auto& [key, value] : bad.metadata)
    if (key == "tied")
      value = R"({"parameters": [{"parameter": ")" + own.table + R"(", "to": ")" + own.twice +
              R"(", "axes": [1, 7]}]})";
  Graph target = import_onnx(model()).graph;
  CHECK_THROWS_WITH(load_checkpoint(target, bad, "c.safetensors"),
                    Contains("expected shapes of one tensor"));
}

TEST_CASE("tied: batch normalisation that is folded into one of two parts them", "[fast]") {
  ModelWriter writer;
  writer.input("x", {-1, 2, 3, 3}).floats("w", {2, 2, 1, 1}, {1, 2, 3, 4});
  for (const char* name : {"scale", "shift", "mean", "variance"})
    writer.floats(name, {2}, {1.5f, 0.5f});
  writer.node("Conv", {"x", "w"}, {"a"})
      .node("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, {"b"})
      .node("Conv", {"b", "w"}, {"y"})
      .output("y");
  const std::string text = writer.file();
  Bytes bytes(static_cast<std::int64_t>(text.size()));
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
  OnnxModel file = parse_onnx("m.onnx", std::move(bytes));
  const TensorPrints shared = shared_tensors(file);
  Graph graph = import_onnx(std::move(file)).graph;
  tie_parameters(graph, shared);
  REQUIRE(tied_groups(graph).size() == 1);
  CHECK(fold_batch_norm(graph) == 1);
  CHECK(tied_groups(graph).empty());
  for (const Parameter* each : std::as_const(graph).parameters()) CHECK(each->trained);
}

}  // namespace
}  // namespace numemu::net::tied_test
