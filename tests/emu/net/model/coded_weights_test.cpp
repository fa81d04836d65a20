// Weights as codes and scales: what is written is read back; scales that do not fit are named.
#include "emu/net/model/coded_weights.hpp"

#include <cmath>

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/quantize.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::coded_weights_test {
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

TEST_CASE("every code of every stored format is read back as its value times its scale", "[fast]") {
  const TemporaryFolder folder;
  for (const char* name : {"int3", "int4", "int5", "int8", "uint4", "uint8", "int12", "uint16",
                           "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                           "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"}) {
    const Format& format = find_format(name);
    const std::int64_t codes = std::int64_t{1} << format.bits;
    for (const bool each : {false, true}) {
      INFO(name << (each ? ", a scale for each row" : ", one scale"));
      Graph graph;
      graph.name = "codes";
      graph.inputs = {{"x", {codes}}};
      graph.add("fc", std::make_unique<Linear>(codes, 3, true), {0});
      OnnxOperand weight{.format = &format, .scales = {0.375f}};
      if (each) weight.scales = {0.375f, 3e-5f, 1000};
      for (std::int64_t i = 0; i < 3 * codes; ++i)
        weight.codes.push_back(static_cast<std::uint16_t>(i % codes));
      write_coded(folder / "m.safetensors", graph, {{"fc", {.weight = weight}}}, {});
      const Checkpoint back = read_weights(folder / "m.safetensors");
      REQUIRE(back.tensors.size() == 2);
      const std::vector<float>& values = back.tensors[0].value.data;
      REQUIRE(values.size() == weight.codes.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto code = static_cast<std::int64_t>(weight.codes[i]);
        // Whole numbers in two's complement by hand, floats by the table.
        const float number =
            format.kind != Kind::integer
                ? decode_table(format)[code]
                : static_cast<float>(format.is_signed && code >= codes / 2 ? code - codes : code);
        const float expected =
            number * weight.scales[each ? i / static_cast<std::size_t>(codes) : 0];
        wrong += std::isnan(expected) ? !std::isnan(values[i]) : values[i] != expected;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("scales and parameters that are not there are named", "[fast]") {
  const auto checkpoint = [](std::int64_t scales, const char* names) {
    Checkpoint out;
    out.tensors = {{"w", Tensor({4, 2})}, {"w_scale", Tensor({scales}, 1)}};
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
  for (const float scale : {0.0f, -1.0f, INFINITY, NAN}) {
    Checkpoint bad = good;
    bad.tensors[1].value.data[3] = scale;
    fails(bad, "w_scale': expected positive and finite scales");
  }
  Checkpoint beyond = good;
  beyond.tensors[0].value.data[7] = 128;
  fails(beyond, "'w': expected codes of int8");
  for (const char* const format : {"", "int99x", "float32", "codebook(/dev/zero)"}) {
    Checkpoint bad = good;
    bad.metadata[1].second = format;
    fails(bad, "w_format': expected a format of codes");
  }
  // How a layer codes its input.
  const auto with_input = [&](float scale, float zero, const char* format) {
    Checkpoint out = checkpoint(4, R"(["w"])");
    out.tensors.push_back({"fc.input_scale", Tensor({1}, scale)});
    out.tensors.push_back({"fc.input_zero_point", Tensor({1}, zero)});
    out.metadata.insert(out.metadata.begin(), {"fc.input_format", format});
    return out;
  };
  for (const float scale : {0.0f, -1.0f, INFINITY, NAN})
    fails(with_input(scale, 0, "int8"), "fc.input_scale': expected one positive and finite scale");
  for (const float zero : {0.5f, 128.0f, NAN})
    fails(with_input(1, zero, "int8"), "fc.input_zero_point': expected one zero point");
  for (const char* const format : {"", "junk", "float32", "codebook(/dev/zero)"})
    fails(with_input(1, 0, format), "'fc.input_format': expected a format of codes");
  Checkpoint part = with_input(1, 0, "int8");
  part.tensors.pop_back();
  fails(part, "fc.input_zero_point");
  part = with_input(1, 0, "int8");
  part.metadata.erase(part.metadata.begin());
  fails(part, "'fc.input_format': expected a format of codes");
  Checkpoint input = with_input(0.5f, -3, "int8");
  decode_weights(input, "m.safetensors");
  decode_weights(good, "m.safetensors");
  CHECK(good.tensors.size() == 1);
}

TEST_CASE("types of codes are read where the metadata say that they are codes", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "m.safetensors";
  const auto message = [&](const std::string& metadata, const std::string& type) {
    const std::string header = R"({"__metadata__":{)" + metadata +
                               R"(},"s_scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)" +
                               R"("s":{"dtype":")" + type +
                               R"(","shape":[4],"data_offsets":[4,8]}})";
    numemu::test::write_file(path, test::packed(std::uint64_t{header.size()}) + header +
                                       test::packed(0.5f) + std::string("\1\2\3\4"));
    return numemu::test::message_of([&] { read_weights(path); });
  };
  const std::string list = R"("parameters":"[\"s\"]")", format = R"("s_format":"int8")";
  const std::string plain = path + ": tensor 's': dtype: expected F32, F16, BF16 or U8, found 'I8'";
  CHECK(message(list, "I8") == plain);
  // Without a list of parameters it is another program's file, whose names and types say all.
  for (const std::string& metadata : {std::string(), format}) {
    CHECK(message(metadata, "I8").empty());
    CHECK(read_weights(path).tensors.at(0).value.data == std::vector<float>{0.5f, 1, 1.5f, 2});
  }
  CHECK(message(list + "," + format, "U8") ==
        path + ": tensor 's': dtype: expected I8 for codes of int8, found 'U8'");
  CHECK(message(list + "," + format, "I8").empty());
  CHECK(read_weights(path).tensors.at(0).value.data == std::vector<float>{0.5f, 1, 1.5f, 2});
}

}  // namespace numemu::net::coded_weights_test
