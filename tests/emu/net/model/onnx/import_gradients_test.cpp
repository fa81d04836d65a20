// Gradients of imported networks (tests/onnx/export/gradients.py) against PyTorch's autograd.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/model/onnx/import.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/train/learned_constants.hpp"
#include "tests/catch.hpp"

namespace numemu::net::import_gradients_test {
namespace {

constexpr const char* kFolder = NUMEMU_SOURCE "/tests/onnx/gradients";

const Tensor& array(const Checkpoint& arrays, std::string_view name) {
  const auto found = std::ranges::find(arrays.tensors, name, &NamedTensor::name);
  REQUIRE(found != arrays.tensors.end());
  return found->value;
}

Tensor channels_last(const Tensor& x) {
  Tensor out({x.dim(0), x.dim(2), x.dim(3), x.dim(1)});
  std::size_t to = 0;
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    for (std::int64_t p = 0; p < x.dim(2) * x.dim(3); ++p) {
      for (std::int64_t c = 0; c < x.dim(1); ++c)
        out.data[to++] = x.data[(n * x.dim(1) + c) * x.dim(2) * x.dim(3) + p];
    }
  }
  return out;
}

struct Difference {
  std::int64_t elements = 0;  ///< of parameters that PyTorch trains, too
  std::int64_t missing = 0;   ///< of parameters that PyTorch trains alone
  double relative = 0;        ///< the largest difference over the largest gradient
};

/// Parameters are known by their values, which the file makes all different: layouts and names do
/// not matter.
Difference difference_of(const std::string& base) {
  const Checkpoint arrays = read_npz(base + ".npz");
  ImportedModel model = import_onnx(read_onnx(base + ".onnx"));
  train_learned_constants(model.graph);
  std::vector<Tensor> inputs;
  for (const OnnxPort& port : model.inputs) {
    const Tensor& given = array(arrays, "in." + port.name);
    inputs.push_back(port.image ? channels_last(given) : given);
  }
  const Tensor& given = array(arrays, "cotangent");
  Tensor cotangent = model.outputs[0].image ? channels_last(given) : given;
  Numerics numerics;
  Tape tape = forward_training(model.graph, inputs, numerics);
  REQUIRE(tape.output.shape == cotangent.shape);
  const std::vector<Tensor> found =
      backward(model.graph, std::move(tape), std::move(cotangent), numerics);

  const std::vector<float>&values = array(arrays, "values").data,
        &gradients = array(arrays, "gradients").data;
  std::map<float, float> expected;
  for (std::size_t i = 0; i < values.size(); ++i) expected[values[i]] = gradients[i];
  REQUIRE(expected.size() == values.size());
  Difference out;
  double largest = 0;
  const std::vector<const Parameter*> parameters = std::as_const(model.graph).parameters();
  std::map<float, double> sums;  // a parameter that the graph has several times
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (std::size_t k = 0; k < found[i].data.size(); ++k)
      sums[parameters[i]->value.data[k]] += found[i].data[k];
  }
  for (const auto& [value, gradient] : sums) {
    const auto known = expected.find(value);
    if (known == expected.end()) continue;
    ++out.elements;
    out.relative = std::max(out.relative, std::abs(gradient - double{known->second}));
    largest = std::max(largest, std::abs(double{known->second}));
  }
  out.relative /= largest;
  out.missing = std::ssize(expected) - out.elements;
  return out;
}

TEST_CASE("gradients of imported networks are those of PyTorch", "[fast]") {
  // Both compute in float32: sums of at most 400 terms, in other orders, each off by half an ulp of
  // its largest partial sum, behind at most 30 operators.
  constexpr double kTolerance = 400 * 30 * 0x1p-24 / 8;
  // Positions, types and class tokens; recurrent biases, of which the graph has the sum; the
  // GroupNorm that the file has in pieces.
  const std::map<std::string, std::int64_t> kMissing = {
      {"bert", 108}, {"gpt", 84}, {"lstm", 160}, {"vit", 72}, {"wave", 12}};
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".onnx") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  CHECK(names.size() >= 10);
  const char* const table = std::getenv("NUMEMU_GRADIENTS");
  std::ofstream out(table == nullptr ? "/dev/null" : table);
  for (const std::string& name : names) {
    INFO(name);
    const Difference difference = difference_of(std::string(kFolder) + "/" + name);
    out << fmt::format("{:20} {:10} {:10} {:12.1e}\n", name, difference.elements,
                       difference.missing, difference.relative);
    CHECK(difference.elements >= 20);
    const auto missing = kMissing.find(name);
    CHECK(difference.missing == (missing == kMissing.end() ? 0 : missing->second));
    CHECK(difference.relative <= kTolerance);
  }
}

}  // namespace
}  // namespace numemu::net::import_gradients_test
