// Notes of a recipe: blocks that an axis cuts short, signs that a format loses, and what none of
// its keys shows.
#include "policies/notes/notes.hpp"

#include <algorithm>
#include <fstream>
#include <limits>

#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/linear.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/files.hpp"

namespace notes_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

std::vector<Note> typed_notes_of(const std::string& roles) {
  net::Graph graph = net::build_net("mlp", {3, 2, 1}, 10);  // 6-256-128-10
  net::initialize(graph, 0);
  net::Tensor images({4, 3, 2, 1});
  for (std::size_t i = 0; i < images.data.size(); ++i)
    images.data[i] = i % 4 == 0 ? -1.0f : static_cast<float>(i);
  return recipe_notes(
      {Recipe::parse_text(R"j({"numemu_recipe": 1, "roles": )j" + roles + "}", "recipe"), graph},
      float_reference(graph, images));
}

std::vector<std::string> notes_of(const std::string& roles) {
  return texts_of(typed_notes_of(roles));
}

}  // namespace

TEST_CASE("notes: nothing to say of float32 and of blocks that fit", "[fast]") {
  CHECK(notes_of("{}").empty());
  CHECK(notes_of(R"j({"weight": {"format": "int8"}, "activation": {"format": "int8"}})j").empty());
  CHECK(notes_of(R"j({"weight": {"format": "group(int4,2,float16)"
}
})j")
            .empty());
}

TEST_CASE("notes: scales that serve fewer elements, whatever the cause, with their bits",
          "[fast]") {
  using Notes = std::vector<std::string>;
  // Lines of 6, 256 and 128 elements: short blocks.
  CHECK(notes_of(R"j({"weight": {"format": "group(int4,200,float16)"},
                      "activation": {"format": "mxfp4"}})j") ==
        Notes{"blocks of group(int4,200,float16) are cut (axis of 128): 4.12 bits an element, not "
              "4.08: weight of fc3",
              "blocks of group(int4,200,float16) are cut (axis of 256): 4.12 bits an element, not "
              "4.08: weight of fc2",
              "blocks of group(int4,200,float16) are cut (axis of 6): 6.67 bits an element, not "
              "4.08: weight of fc1",
              "blocks of mxfp4 are cut (axis of 6): 5.33 bits an element, not 4.25: activation of "
              "fc1"});
  // A tail: 5 + 1.
  CHECK(notes_of(R"j({"activation": {"format": "group(int4,5,float32)"}})j") ==
        Notes{"blocks of group(int4,5,float32) are cut (axis of 6): 14.7 bits an element, not "
              "10.4: activation of fc1"});
  // Along the reduction.
  CHECK(notes_of(R"j({"activation": {"format": "mxfp4", "axis": "reduction"}})j") ==
        Notes{"blocks of mxfp4 are cut (axis of 6): 5.33 bits an element, not 4.25: activation of "
              "fc1"});
  // Rows.
  CHECK(notes_of(R"j({"weight": {"format": "group(int4,row,float16)"}})j") ==
        Notes{"a scale of group(int4,row,float16) serves 128 elements: 4.12 bits an element, not "
              "4: weight of fc3",
              "a scale of group(int4,row,float16) serves 256 elements: 4.06 bits an element, not "
              "4: weight of fc2",
              "a scale of group(int4,row,float16) serves 6 elements: 6.67 bits an element, not 4: "
              "weight of fc1"});
}

TEST_CASE("notes: blocks that the rule floor clips", "[fast]") {
  CHECK(notes_of(R"j({"weight": {"format": "mx(nf4,2)"}})j") ==
        std::vector<std::string>{
            "scale rule floor puts the largest magnitude of a block of mx(nf4,2) up to 2 times "
            "above the largest element, which clips it; ceil clips nothing, mse has the least "
            "error: weight of fc1, weight of fc2, weight of fc3"});
  CHECK(notes_of(R"j({"weight": {"format": "mx(nf4,2)", "scale": "ceil"}})j").empty());
  CHECK(notes_of(R"j({"weight": {"format": "mx(float4_e2m1fn,2)"}})j").empty());
}

TEST_CASE("notes: an unsigned format says the share of negative numbers", "[fast]") {
  CHECK(notes_of(R"j({"activation": {"format": "uint8"}})j") ==
        std::vector<std::string>{"uint8 has no negative numbers, which become its lowest value: "
                                 "activation of fc1 (25.0 % negative)"});
  CHECK(notes_of(R"j({"activation": {"format": "group(uint8,2,float16,zp)"
}
})j")
            .size() == 0);
  const std::vector<std::string> weights = notes_of(R"j({"weight": {"format": "uint4"}})j");
  REQUIRE(weights.size() == 1);
  CHECK(weights[0].find("weight of fc1 (") != std::string::npos);
  CHECK(weights[0].find("weight of fc3 (") != std::string::npos);
}

TEST_CASE("notes of one kind differ in names and numbers alone", "[fast]") {
  std::vector<NoteKind> kinds;
  for (const Note& note : typed_notes_of(R"j({"weight": {"format": "group(int4,200,float16)"},
                                              "activation": {"format": "uint8"}})j"))
    kinds.push_back(note.kind);
  CHECK(std::ranges::count(kinds, NoteKind::scale_elements) == 3);
  CHECK(std::ranges::count(kinds, NoteKind::lost_signs) == 1);
  CHECK(kinds.size() == 4);
  CHECK(to_string(NoteKind::lost_signs) == "lost signs");
}

namespace {

Recipe recipe(const std::string& roles) {
  return Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {)" + roles + "}}", "r.json");
}

}  // namespace

TEST_CASE("notes: embedding tables stay float32 where weights are quantized", "[fast]") {
  const net::Graph text = net::build_net("lstm-char", {32}, 60),
                   images = net::build_net("mlp", {8, 8, 1}, 10);
  const Recipe int4 = recipe(R"("weight": {"format": "int4"})");
  CHECK(notes_on_tables({int4, images}).empty());
  CHECK(notes_on_tables({recipe(R"("activation": {"format": "int4"})"), text}).empty());
  const std::vector<std::string> notes = texts_of(notes_on_tables({int4, text}));
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("Role weight is that of products; tables stay float32: "
                                         "embedding.weight, "));
  CHECK_THAT(notes[0], Catch::EndsWith(" % of the parameters."));
}

TEST_CASE("notes: weights of stacks have the numerics of activations", "[fast]") {
  using net::test::ModelWriter;
  ModelWriter w;
  w.input("x", {-1, 2, 3, 4}).floats("heads", {2, 4, 3}, std::vector<float>(24, 0.5f));
  w.node("MatMul", {"x", "heads"}, {"y"}, {}, "per_head").output("y");
  const net::ImportedModel model = w.import();
  const std::vector<Note> notes = notes_on_tables(
      {recipe(R"("weight": {"format": "int4"}, "activation": {"format": "int8"})"), model.graph});
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].kind == NoteKind::stacked_weights);
  CHECK_THAT(notes[0].text, Catch::StartsWith("Weights that a product of stacks reads are "
                                              "quantized as activations: "));
  CHECK(notes_on_tables({recipe(R"("weight": {"format": "int4"})"), model.graph}).empty());
}

TEST_CASE("notes: quantizers of a network, and weights that its file has as codes", "[fast]") {
  using net::test::ModelWriter;
  const auto model = [](bool values, bool weights) {
    ModelWriter writer;
    writer.input("x", {-1, 2}).floats("s", {}, {0.5f}).floats("ws", {2}, {0.5f, 2});
    std::string x = "x";
    if (values) x = writer.op("DequantizeLinear", {writer.op("QuantizeLinear", {"x", "s"}), "s"});
    const std::string codes = writer.op(
        "Constant", {}, {net::test::tensor_attribute("value", {2, 2}, 3, "\x01\x02\x03\xff")});
    const std::string w =
        weights ? writer.op("DequantizeLinear", {codes, "ws"},
                            {net::test::attribute("axis", std::int64_t{1})})
                : writer.op("Cast", {codes}, {net::test::attribute("to", std::int64_t{1})});
    writer.node("MatMul", {x, w}, {"y"}).output("y");
    return writer.file();
  };
  const numemu::test::TemporaryFolder folder;
  const auto notes = [&](bool values, bool weights) {
    const std::string path = folder / "m.onnx";
    std::ofstream(path, std::ios::binary) << model(values, weights);
    return notes_on_quantizers(net::import_onnx(net::read_onnx(path)).graph, path);
  };
  using Notes = std::vector<std::string>;
  const std::string rest =
      ", which the reference (float32) contains too: changes and SQNR are relative to the network "
      "as it stands, and bits do not count them.";
  CHECK(notes(false, false).empty());
  CHECK(notes(true, false) == Notes{"The network has 1 quantizer of its own" + rest});
  CHECK(notes(false, true) == Notes{"The network has 1 weight stored as codes" + rest});
  CHECK(notes(true, true) ==
        Notes{"The network has 1 quantizer of its own, 1 weight stored as codes" + rest});
  ModelWriter mixed;
  mixed.input("x", {-1, 2}).output("y");
  const std::string half = mixed.op("Cast", {"x"}, {net::test::attribute("to", std::int64_t{10})});
  mixed.node("Relu", {half}, {"y"});
  const std::string path = folder / "mixed.onnx";
  std::ofstream(path, std::ios::binary) << mixed.file();
  CHECK(notes_on_quantizers(net::import_onnx(net::read_onnx(path)).graph, path) ==
        Notes{"The network has 1 cast to floats of 8 or 16 bits" + rest});
  CHECK(notes_on_quantizers(net::build_net("mlp", {8, 8, 1}, 10), "no.onnx").empty());
}

TEST_CASE("notes: a rule of calibration without a scale that it gives", "[fast]") {
  const net::Graph graph = net::build_net("mlp", {8, 8, 1}, 10);
  const auto notes = [&](const std::string& keys, bool named = false) {
    return texts_of(notes_on_calibration(
        {Recipe::parse_text(R"j({"numemu_recipe": 1, "roles": )j" + keys + "}", "r"), graph},
        named));
  };
  const std::vector<std::string> told = {
      "Without effect: calibrate, as no scale of an activation is calibrated."};
  const std::string rule = R"j(, "calibrate": {"rule": "percentile(99.9)"})j",
                    dynamic = R"j(, "calibrate": {"rule": "dynamic"})j",
                    blocks = R"j({"activation": {"format": "mxfp4"}})j",
                    tensors = R"j({"activation": {"format": "int8"}})j",
                    weights = R"j({"weight": {"format": "int8"}})j";
  CHECK(notes(blocks + rule) == told);
  CHECK(notes(weights + rule) == told);
  CHECK(notes(blocks + dynamic) == told);
  CHECK(notes(tensors + rule).empty());
  CHECK(notes(tensors + dynamic).empty());  // instead of a static scale
  CHECK(notes(blocks).empty());
  CHECK(notes(blocks, true) == told);  // the default, as a point of a grid
  CHECK(notes(tensors + rule + R"j(, "ranges": {"fc1": {"activation": [0, 1]},
      "fc2": {"activation": [0, 1]}, "fc3": {"activation": [0, 1]}})j") == told);
}

TEST_CASE("notes: stages, and keys that act in training alone", "[fast]") {
  const auto notes = [](const std::string& keys, std::size_t stage = 0) {
    return texts_of(notes_on_training(
        Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "r"), stage));
  };
  using Notes = std::vector<std::string>;
  CHECK(notes(R"j("seed": 1, "penalty": null, "objectives": ["cross_entropy"])j").empty());
  CHECK(notes(R"j("penalty": "kure", "norm": {"ghost": 4}, "exchange": "topk",
      "update": {"rule": "delayed"}, "objectives": ["complement"])j") ==
        Notes{"Without effect in inference: penalty, norm, exchange, update.rule, objectives."});
  // Inference multiplies by the powers of two that shifts round to.
  CHECK(notes(R"j("norm": {"statistic": "shift"})j").empty());
  CHECK(notes(R"j("layers": [{"match": "b*", "norm": {"statistic": "shift"}}])j").empty());
  CHECK(notes(R"j("norm": {"statistic": "range"})j") ==
        Notes{"Without effect in inference: norm."});
  CHECK(notes(R"j("transform": "hadamard-backward")j") ==
        Notes{"Without effect in inference: transform."});
  CHECK(notes(R"j("transform": "hadamard")j").empty());
  CHECK(notes(R"j("roles": {"gradient": {"format": "int2"}, "state": {"format": "int4"}},
      "update": {"master": "bfloat16", "rounding": "sr(16)", "loss_scale": "none"})j") ==
        Notes{"Without effect in inference: roles.gradient, roles.state, update.master, "
              "update.rounding."});
  CHECK(notes(R"j("layers": [{"match": "fc*", "roles": {"gradient": {"format": "int2"}}}])j") ==
        Notes{"Without effect in inference: roles.gradient."});
  CHECK(notes(R"j("roles": {"weight": {"format": "int2"}, "gradient": null})j").empty());
  CHECK(notes(R"j("layers": [{"match": "fc*", "penalty": "kure"}, {"match": "a", "norm": null}])j",
              2) == Notes{"The recipe has stages; this is the last one, stage 2.",
                          "Without effect in inference: penalty."});
}

TEST_CASE("notes: NaN in a signed format without any", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {2}}};
  graph.add("fc", std::make_unique<net::Linear>(2, 3));
  net::initialize(graph, 1);
  net::Tensor x({2, 2});
  x.data = {1, std::numeric_limits<float>::quiet_NaN(), -3, 4};
  const auto notes = [&](const std::string& format) {
    RecipeNumerics numerics(recipe(R"("activation": {"format": ")" + format + R"("})"), graph);
    net::forward(graph, x, numerics);
    return texts_of(notes_on_counts(numerics));
  };
  CHECK(notes("int8") == std::vector<std::string>{
                             "Layer fc: 1 of 4 elements of its activations were NaN; int8 has none "
                             "and made numbers of them."});
  CHECK(notes("float8_e4m3fn").empty());
  CHECK(notes("uint8").empty());
}

TEST_CASE("notes: results at an end of a register that saturates", "[fast]") {
  net::Graph graph;
  graph.inputs = {{"input", {4}}};
  graph.add("fc", std::make_unique<net::Linear>(4, 1, false));
  for (net::Parameter* const w : graph.parameters()) w->value.data = {1, 1, 1, -1};
  net::Tensor x({5, 4});
  // Sums of 127, 128, -128 and -254, and of 300 and then -127.
  x.data = {127, 0, 0, 0, 127, 1, 0, 0, -127, -1, 0, 0, -127, -127, 0, 0, 100, 100, 100, 127};
  const auto run = [&](const std::string& unit) {
    RecipeNumerics numerics(
        Recipe::parse_text(R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit": ")" + unit +
                               R"("}}, "roles": {"weight": {"format": "int8", "scale": "none"},
                               "activation": {"format": "int8", "scale": "none"}}})",
                           "r.json"),
        graph);
    net::forward(graph, x, numerics);
    const SaturationCounts counts = numerics.roles().saturation("fc");
    const std::vector<std::string> notes = texts_of(notes_on_counts(numerics));
    numerics.roles().reset_counts();
    CHECK_FALSE(numerics.roles().saturation("fc").any());
    return std::pair(counts, notes);
  };
  const auto [narrow, notes] = run("neutral.mac.int8.saturate");
  CHECK(narrow.results == 5);
  CHECK(narrow.at_end == 4);  // 127, 127, -128, -128 and 0, which is no end
  // Computed again: 128, -254 and 300 saturate on the way, 127 and -128 do not.
  CHECK(narrow.sampled == 5);
  CHECK(narrow.overflowed == 3);
  CHECK(notes ==
        std::vector<std::string>{"Results of neutral.mac.int8.saturate that saturated on the way "
                                 "(of those computed again) and that ended at a register's end (of "
                                 "all): fc 60 % of 5 and 80 % of 5."});
  const auto [wrapping, of_wrapping] = run("neutral.mac.int8.wrap");
  CHECK(wrapping.results == 0);
  CHECK(of_wrapping == std::vector<std::string>{"Results of neutral.mac.int8.wrap that wrapped (of "
                                                "those computed again): fc 60 % of 5."});
  for (const char* unit :
       {"neutral.mac.int32.saturate", "exact", "nvidia.h100.mma.s8.s32.satfinite"}) {
    const auto [counts, none] = run(unit);
    CHECK_FALSE(counts.any());
    CHECK(counts.sampled == 0);  // no sum of so few can leave the register
    CHECK(none.empty());
  }
  const auto [floating, of_floats] = run("neutral.mac.float8_e4m3fn.rne.saturate");
  CHECK(floating.results == 5);
  CHECK(floating.at_end == 0);
  CHECK(of_floats.empty());
}

TEST_CASE("notes: however many layers saturate and however long their names are, 300 characters",
          "[fast]") {
  for (const int length : {3, 30, 90, 400}) {
    INFO(length);
    net::Graph graph;
    graph.inputs = {{"input", {4}}};
    for (int i = 0; i < 6; ++i)
      graph.add(std::string(static_cast<std::size_t>(length), 'n') + std::to_string(i),
                std::make_unique<net::Linear>(4, 4, false));
    for (net::Parameter* const w : graph.parameters())
      w->value.data.assign(w->value.data.size(), 127);
    net::Tensor x({5, 4});
    x.data.assign(x.data.size(), 127);
    RecipeNumerics numerics(Recipe::parse_text(R"({"numemu_recipe": 1, "gemms": {"fprop": {"unit":
                               "neutral.mac.int16.saturate"}}, "roles": {"weight": {"format":
                               "int8"}, "activation": {"format": "int8"}}})",
                                               "r.json"),
                            graph);
    net::forward(graph, x, numerics);
    const std::vector<std::string> notes = texts_of(notes_on_counts(numerics));
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].size() <= 300);
    CHECK(notes[0].ends_with(length == 400 ? ": 6 layers." : " more layers."));
  }
}

}  // namespace notes_test
