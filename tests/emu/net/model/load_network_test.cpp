// Networks by name, and the message for a file that cannot be read.
#include "emu/net/model/load_network.hpp"

#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net {
namespace {

TEST_CASE("a reference network comes without weights and fits the data", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const LoadedNetwork network = load_network("mlp", data);
  CHECK(!network.has_weights);
  CHECK(network.graph.name == "mlp");
  CHECK(network.graph.inputs.at(0).shape == data.input_shape());
}

TEST_CASE("unknown names offer the nearest and files are told from names", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  CHECK_THROWS_WITH(load_network("lenett", data), Catch::Contains("'lenet'"));
  CHECK(names_onnx_file("a/b.onnx"));
  CHECK(!names_onnx_file("onnx"));
  CHECK_THROWS_WITH(load_network("no/such/file.onnx", data),
                    Catch::StartsWith("no/such/file.onnx"));
}

}  // namespace
}  // namespace numemu::net
