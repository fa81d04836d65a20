// Random graphs of operators, exported by PyTorch (tests/onnx/export/random_graphs.py), against
// what PyTorch computes in float64.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "emu/net/model/onnx/import.hpp"
#include "emu/net/model/weights.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_graphs.hpp"

namespace numemu::net::import_random_test {
namespace {

/// Nine functions, each of at most a few float32 operations of half an ulp, in units of the largest
/// result. A function takes an error of its operands to at most four times its size; all but a few
/// keep it, so that eight operations of 2^-24 and a factor of 4^3 bound a graph.
constexpr double kRelative = 8 * 64 * 0x1p-24;

TEST_CASE("random graphs of operators compute what PyTorch computes", "[fast]") {
  std::size_t graphs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(NUMEMU_SOURCE "/tests/onnx/random")) {
    if (entry.path().extension() != ".onnx") continue;
    INFO(entry.path().filename().string());
    std::filesystem::path arrays = entry.path();
    const Checkpoint file = read_npz(arrays.replace_extension(".npz").string());
    REQUIRE(file.tensors.size() == 2);
    const Tensor &x = file.tensors[0].value, &y = file.tensors[1].value;
    const ImportedModel model = import_onnx(read_onnx(entry.path().string()));
    const Tensor result = test::run_model(model, {x});
    REQUIRE(result.shape == y.shape);
    double size = 0, error = 0;
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      size = std::max(size, std::fabs(double{y.data[i]}));
      error = std::max(error, std::fabs(double{result.data[i]} - y.data[i]));
    }
    CHECK(error <= kRelative * std::max(1.0, size));
    ++graphs;
  }
  CHECK(graphs >= 30);
}

}  // namespace
}  // namespace numemu::net::import_random_test
