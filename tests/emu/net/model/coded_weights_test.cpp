// Weights as codes and scales: what is written is read back; scales that do not fit are named.
#include "emu/net/model/coded_weights.hpp"

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::net {
namespace {

using numemu::test::TemporaryFolder;

/// lenet's fc3 [10, 84] in int4: code i % 15 - 7, a scale of its own for each output.
OnnxLayers coded_layer() {
  OnnxOperand weight;
  weight.format = &find_format("int4");
  for (int i = 0; i < 10; ++i) weight.scales.push_back(0.5f + static_cast<float>(i) / 64);
  for (int i = 0; i < 10 * 84; ++i)
    weight.codes.push_back(static_cast<std::uint16_t>((i % 15 - 7) & 15));
  OnnxLayers layers;
  layers["fc3"].weight = weight;
  return layers;
}

}  // namespace

TEST_CASE("codes and scales are read back as their products, all else as it was", "[fast]") {
  const TemporaryFolder folder;
  Graph graph = build_net("lenet", {28, 28, 1}, 10);
  initialize(graph, 3);
  const OnnxLayers layers = coded_layer();
  write_coded(folder / "m.safetensors", graph, layers, {{}, {{"net", "lenet"}}});
  const Checkpoint back = read_weights(folder / "m.safetensors");
  const std::vector<Parameter*> parameters = graph.parameters();
  REQUIRE(back.tensors.size() == parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    CHECK(back.tensors[p].name == parameters[p]->name);
    if (parameters[p]->name != "fc3.weight") {
      CHECK(back.tensors[p].value.data == parameters[p]->value.data);
      continue;
    }
    for (std::int64_t i = 0; i < 10 * 84; ++i) {
      const float code = static_cast<float>(i % 15 - 7);
      CHECK(back.tensors[p].value.data[static_cast<std::size_t>(i)] ==
            code * layers.at("fc3").weight->scales[static_cast<std::size_t>(i / 84)]);
    }
  }
}

TEST_CASE("scales and parameters that are not there are named", "[fast]") {
  const auto checkpoint = [](std::int64_t scales, const char* names) {
    Checkpoint out;
    out.tensors = {{"w", Tensor({4, 2})}, {"w_scale", Tensor({scales})}};
    out.metadata = {{"parameters", names}, {"w_format", "int8"}};
    return out;
  };
  const auto fails = [](Checkpoint given, const char* with) {
    CHECK_THROWS_WITH(decode_weights(given, "m.safetensors"), Catch::Contains(with));
  };
  fails(checkpoint(3, R"(["w"])"), "m.safetensors: tensor ");
  fails(checkpoint(0, R"(["w"])"), "expected one scale");
  fails(checkpoint(4, R"(["v"])"), "m.safetensors: expected a tensor ");
  fails(checkpoint(4, R"(["w", "w"])"), "m.safetensors: expected a tensor ");
  fails(checkpoint(4, R"("w")"), "expected a list of names");
  Checkpoint good = checkpoint(4, R"(["w"])");
  decode_weights(good, "m.safetensors");
  CHECK(good.tensors.size() == 1);
}

}  // namespace numemu::net
