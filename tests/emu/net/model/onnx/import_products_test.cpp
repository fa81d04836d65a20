// Small exported networks with products (tests/onnx/export/products.py) against PyTorch's results.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <utility>

#include "emu/net/model/onnx/import.hpp"
#include "emu/net/model/weights.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::import_products_test {
namespace {

constexpr const char* kFolder = NUMEMU_SOURCE "/tests/onnx/products";

/// Files that are refused: heads and batch share an axis; steps are the first axis.
constexpr std::pair<const char*, const char*> kRefused[] = {
    {"attention_fixed", "export the model with"}, {"lstm_time_axis", "batch_first=True"}};

bool is_refused(const std::string& name) {
  return std::ranges::any_of(kRefused, [&](const auto& file) { return file.first == name; });
}

std::vector<std::string> networks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".onnx" && !is_refused(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// The array of that name, "in.x" or "out.y".
Tensor array(const Checkpoint& arrays, const std::string& name) {
  for (const auto& [key, tensor] : arrays.tensors) {
    if (key == name) return tensor;
  }
  FAIL("no array " << name);
  return {};
}

Tensor permuted(const Tensor& x, const std::vector<std::size_t>& order) {
  Shape shape;
  for (const std::size_t axis : order) shape.push_back(x.shape[axis]);
  Tensor out(shape);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = i, from = 0;
    std::vector<std::int64_t> at(shape.size());
    for (std::size_t a = shape.size(); a-- > 0; rest /= shape[a]) at[order[a]] = rest % shape[a];
    for (std::size_t a = 0; a < shape.size(); ++a) from = from * x.shape[a] + at[a];
    out.data[i] = x.data[from];
  }
  return out;
}

/// The array of a port as the graph has it: samples first.
Tensor samples_first(const Checkpoint& arrays, const std::string& kind, const OnnxPort& port) {
  const Tensor given = array(arrays, kind + "." + port.name);
  std::vector<std::size_t> order(given.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::rotate(order.begin(), order.begin() + port.batch_axis, order.begin() + port.batch_axis + 1);
  return permuted(given, order);
}

TEST_CASE("exported networks with products compute what PyTorch does", "[fast]") {
  // Both compute in float32. A result passes at most 12 layers or steps, each a sum of at most 100
  // products of magnitudes below the layer's largest times 4, in orders that may differ: two sides,
  // half an ulp a product.
  constexpr double kTolerance = 2.0 * 12 * 100 * 4 * 0x1p-24 / 4;
  const std::vector<std::string> names = networks();
  CHECK(names.size() >= 60);
  for (const std::string& name : names) {
    INFO(name);
    const std::string base = std::string(kFolder) + "/" + name;
    const Checkpoint arrays = read_npz(base + ".npz");
    const ImportedModel model = import_onnx(read_onnx(base + ".onnx"));
    std::vector<Tensor> inputs;
    for (const OnnxPort& port : model.inputs) {
      const Tensor given = samples_first(arrays, "in", port);
      inputs.push_back(port.image ? permuted(given, {0, 2, 3, 1}) : given);
    }
    for (std::size_t i = 0; i < model.outputs.size(); ++i) {
      INFO(model.outputs[i].name);
      const Tensor found = test::output_of(model, i, inputs);
      const Tensor y = model.outputs[i].image ? permuted(found, {0, 3, 1, 2}) : found;
      const Tensor expected = samples_first(arrays, "out", model.outputs[i]);
      REQUIRE(y.shape == expected.shape);
      double largest = 0, difference = 0;
      for (std::int64_t k = 0; k < y.size(); ++k) {
        largest = std::max(largest, std::abs(double{expected.data[k]}));
        difference = std::max(difference, std::abs(double{expected.data[k]} - y.data[k]));
      }
      CHECK(difference <= kTolerance * largest);
    }
  }
}

TEST_CASE("samples of exported networks do not see their batch", "[fast]") {
  for (const std::string& name : networks()) {
    INFO(name);
    const std::string base = std::string(kFolder) + "/" + name;
    const Checkpoint arrays = read_npz(base + ".npz");
    const ImportedModel model = import_onnx(read_onnx(base + ".onnx"));
    std::vector<Tensor> both, first;
    for (const OnnxPort& port : model.inputs) {
      const Tensor given = samples_first(arrays, "in", port);
      both.push_back(port.image ? permuted(given, {0, 2, 3, 1}) : given);
      Tensor one = both.back();
      one.data.resize(one.data.size() / static_cast<std::size_t>(one.shape[0]));
      one.shape[0] = 1;
      first.push_back(one);
    }
    const Tensor two = test::run_model(model, both), one = test::run_model(model, first);
    REQUIRE(two.shape[0] == 2);
    REQUIRE(one.size() * 2 == two.size());
    CHECK(std::equal(one.data.begin(), one.data.end(), two.data.begin()));
  }
}

TEST_CASE("a batch that is not the first axis is refused with a way to export", "[fast]") {
  for (const auto& [name, advice] : kRefused) {
    INFO(name);
    CHECK_THROWS_WITH(import_onnx(read_onnx(std::string(kFolder) + "/" + name + ".onnx")),
                      Catch::Contains(advice));
  }
}

}  // namespace
}  // namespace numemu::net::import_products_test
