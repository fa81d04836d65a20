// The network and its numbers, written to files.
#include "tests/experiments/places_network.hpp"

#include "formats/storage/npy.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::experiments::testing {

std::vector<std::string> write_places(const test::TemporaryFolder& folder,
                                      const std::string& targets, bool quantizer) {
  std::uint32_t state = 9;
  const auto next = [&state] {  // numbers in [-1, 1)
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) / 8388608.0f - 1;
  };
  std::vector<float> x, values;
  std::vector<std::uint8_t> classes;
  for (std::int64_t i = 0; i < kPlaceSamples * kPlaces; ++i) {
    float sum = 0;
    for (std::int64_t f = 0; f < kFeatures; ++f) {
      x.push_back(next());
      sum += x.back();
    }
    // Two of four places are ignored: an answer there is neither right nor wrong.
    classes.push_back(i % kPlaces < 2 ? 255 : sum + 0.5f * next() > 0);
    for (std::int64_t a = 0; a < kAnswers; ++a)
      values.push_back((a == 0 ? -sum : sum) + 0.1f * next());
  }
  const std::string net = folder / "p.onnx", of_x = folder / "x.npy", of_y = folder / "y.npy";
  net::test::ModelWriter model;
  model.input("x", {-1, kPlaces, kFeatures})
      .floats("w", {kFeatures, kAnswers}, {-0.9f, 1.1f, -1.2f, 0.8f, -1.05f, 0.95f});
  std::string rows = "x";
  if (quantizer) {
    model.floats("s", {}, {0.01f});
    rows = model.op("DequantizeLinear", {model.op("QuantizeLinear", {"x", "s"}), "s"});
  }
  model.floats("b", {kAnswers}, {0.05f, -0.05f});
  model.node("Add", {model.op("MatMul", {rows, "w"}), "b"}, {"y"}).output("y");
  test::write_file(net, model.file());
  write_npy(of_x, ArrayType::float32, {kPlaceSamples, kPlaces, kFeatures}, x.data());
  if (targets == "classes")
    write_npy(of_y, ArrayType::uint8, {kPlaceSamples, kPlaces}, classes.data());
  if (targets == "values")
    write_npy(of_y, ArrayType::float32, {kPlaceSamples, kPlaces, kAnswers}, values.data());
  std::string data = "npy:x=" + of_x + ",test-x=" + of_x;
  if (targets != "none") data += ",y=" + of_y + ",test-y=" + of_y;
  if (targets == "classes") data += ",ignore=255";
  return {"net=" + net, "data=" + data};
}

}  // namespace numemu::experiments::testing
