// A session, evaluation with gates and baselines, and exported files read back.
#include "api/networks.hpp"

#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/run_context.hpp"
#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/safetensors.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"

namespace networks_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

/// An untrained network on clicks, under a recipe of that text; "" is float32.
api::OpenRequest clicks(const Workplace& w, const std::string& recipe = "") {
  experiments::testing::write_click_network(w / "n.safetensors");
  api::OpenRequest names{.net = w / "n.safetensors", .data = "clicks"};
  if (!recipe.empty()) names.recipe = w.file("r.json", recipe);
  return names;
}

const std::string kInt8 = R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int8"}}})";

/// An untrained lenet, and 64 images of two waves with some class.
api::OpenRequest lenet(const Workplace& w, const std::string& format, const std::string& scale) {
  net::Graph graph = net::build_net("lenet", {28, 28, 1}, 10);
  net::initialize(graph, 5);
  net::write_safetensors(w / "n.safetensors", net::parameters_of(graph));
  std::vector<float> x(64 * 28 * 28);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>((i * 37) % 101 + (i * 11) % 203) / 101 - 1.3f;
  std::vector<std::uint8_t> y(64);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::uint8_t>(i % 10);
  w.array("x.npy", {64, 1, 28, 28}, x);
  write_npy(w / "y.npy", ArrayType::uint8, {64}, y.data());
  const std::string role =
      R"({"format": ")" + format + R"(", "scale": ")" + scale + R"(", "granularity": )";
  return {.net = "lenet=" + (w / "n.safetensors"),
          .data = "npy:x=" + (w / "x.npy") + ",y=" + (w / "y.npy") + ",test=16,classes=10",
          .recipe = w.file("r.json",
                           R"({"numemu_recipe": 1, "calibrate": {"samples": 32}, "roles": {
                             "weight": )" +
                               role + R"("channel"}, "activation": )" + role + R"("tensor"}}})")};
}

}  // namespace

TEST_CASE("memory and time of work are those of its context's run", "[fast]") {
  Workplace w;
  const api::OpenRequest names = clicks(w);
  net::RunContext run;
  run.profile.emplace(+[] { return 0.0; });
  w.context.run = &run;
  api::evaluate(names, {.images = 64}, w.context);
  CHECK_FALSE(run.profile->rows().empty());
  CHECK_FALSE(net::RunScope::current().profile);
  run.memory.set_budget(1000);
  try {
    api::evaluate(names, {.images = 64}, w.context);
    FAIL("expected a refusal");
  } catch (const Error& refusal) {
    CHECK(refusal.kind() == ErrorKind::memory);
  }
}

TEST_CASE("a session has network, data and a recipe that is bound", "[fast]") {
  const Workplace w;
  const api::Session session = api::open(
      clicks(w, R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int4"}}, "stages": [
        {"from": {"epoch": 1}, "patch": {"roles": {"weight": {"format": "int8"}}}}]})"),
      w.context);
  CHECK(session.dataset.name() == "clicks");
  CHECK(session.whole.stages().size() == 1);
  CHECK(session.recipe.stages().empty());
  const std::vector<api::LayerFacts> layers = api::layers_of(session.recipe, session.trained.graph);
  REQUIRE(layers.size() > 2);
  for (const api::LayerFacts& layer : layers) {
    if (layer.recipe[numemu::policies::RolePart::weight])
      CHECK(layer.recipe[numemu::policies::RolePart::weight]->format->name == "int8");
  }
  const api::EffectiveBits bits =
      api::bits_of(session.recipe, session.trained.graph, session.dataset);
  CHECK(bits.product_weight >= 8);
  CHECK(bits.product_weight < 9);
  CHECK(bits.activation == 32);
}

TEST_CASE("recipes are built of parts, opened by shipped name, and bound or refused", "[fast]") {
  const Workplace w;
  const api::Recipe made = api::make_recipe({{"roles", {{"weight", {{"format", "int8"}}}}}});
  CHECK(made.json() == api::open_recipe(w.file("r.json", kInt8), w.context.folders).json());
  CHECK(api::open_recipe("int8-static", w.context.folders).json() ==
        api::canonical(NUMEMU_SOURCE "/data/recipes/int8-static.json", w.context.folders));
  CHECK_THAT(message_of([&] { api::open_recipe("int8-statix", w.context.folders); }),
             Contains("did you mean 'int8-static'"));
  CHECK_THAT(message_of([&] {
               api::open(clicks(w, R"({"numemu_recipe": 1, "layers": [{"match": "nosuch",
                 "roles": {"weight": {"format": "int8"}}}]})"),
                         w.context);
             }),
             Contains("nosuch"));
}

TEST_CASE("the row of a recipe with stages is that of the last one, which it names", "[fast]") {
  const Workplace w;
  const auto row = [&](const std::string& recipe) {
    return to_json(api::evaluate(clicks(w, recipe), {.images = 40}, w.context).row);
  };
  const Json last = row(kInt8);
  Json staged = row(R"({"numemu_recipe": 1, "roles": {"weight": {"format": "int4"}},
    "stages": [{"from": {"plateau": 0.1}, "patch": {"roles": {"weight": {"format": "int8"}}}}]})");
  CHECK(staged["point"]["stage"] == 1);
  CHECK(staged["notes"][0] == "The recipe has stages; this is the last one, stage 1.");
  CHECK(staged["key"] != last["key"]);
  CHECK(staged["metrics"] == last["metrics"]);
  staged["point"].erase("stage");
  CHECK(staged["point"] == last["point"]);
}

TEST_CASE("evaluation keeps the float32 baseline, and leaves predictions out where asked to",
          "[fast]") {
  const Workplace w;
  const api::OpenRequest names = clicks(w, kInt8);
  api::EvaluateRequest asked{.images = 320};
  const auto row = [&] { return to_json(api::evaluate(names, asked, w.context).row).dump(); };
  const std::string cold = row();
  const auto kept = [&] {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(w / "cache/baselines"))
      files.push_back(entry.path());
    return files;
  };
  REQUIRE(kept().size() == 1);
  // A second name of the file, which writing again replaces.
  std::filesystem::create_hard_link(kept()[0], w / "first");
  CHECK(row() == cold);
  CHECK(std::filesystem::equivalent(kept()[0], w / "first"));
  asked.fresh = true;
  CHECK(row() == cold);
  CHECK_FALSE(std::filesystem::equivalent(kept()[0], w / "first"));
  asked.fresh = false;
  write_file(kept()[0], "nothing");
  CHECK(row() == cold);
  CHECK(std::filesystem::file_size(kept()[0]) > 320);
  // A folder that nobody can write.
  std::filesystem::remove_all(w / "cache/baselines");
  write_file(w / "cache/baselines", "");
  CHECK(row() == cold);
  asked.predictions = false;
  const Json bare = to_json(api::evaluate(names, asked, w.context).row);
  CHECK(bare["point"]["predictions"] == false);
  CHECK(bare["predicted"]["sqnr_db"].is_null());
}

TEST_CASE("a session gives the rows of a call that opens it, each time", "[fast]") {
  const Workplace w;
  const api::OpenRequest names = clicks(w, kInt8);
  api::Session session = api::open(names, w.context);
  const api::EvaluateRequest asked{.images = 40};
  const Json first = to_json(api::evaluate(session, asked, w.context).row);
  CHECK(first == to_json(api::evaluate(names, asked, w.context).row));
  CHECK(to_json(api::evaluate(session, asked, w.context).row) == first);
}

TEST_CASE("work is told in phases up to its end, once everything is checked", "[fast]") {
  Workplace w;
  bool checked = false;
  double done = 0, total = 0;
  std::string phases;
  w.context.on_checked = [&] { checked = true; };
  w.context.on_work = [&](const api::WorkState& at) {
    CHECK(checked);
    CHECK(at.done >= done);
    done = at.done;
    total = at.total;
    if (!phases.ends_with(std::string(at.phase) + ";")) phases += std::string(at.phase) + ";";
  };
  api::evaluate(clicks(w, kInt8), {.images = 40}, w.context);
  CHECK(total > 0);
  CHECK_THAT(phases,
             Contains("float32 baseline;") && Contains("predictions;") && Contains("evaluation;"));
}

TEST_CASE("what does not fit the data is refused before the network is read", "[fast]") {
  const Workplace w;
  const api::OpenRequest none{.net = w / "none.safetensors", .data = "clicks"};
  const auto message = [&](const api::EvaluateRequest& asked) {
    return message_of([&] { api::evaluate(none, asked, w.context); });
  };
  CHECK_THAT(message({.images = 20000}),
             Contains("--images: expected at most 10000, the test images of clicks, not 20000"));
  CHECK_THAT(message({.metrics = {"top"}}), Contains("unknown metric 'top'"));
  CHECK_THAT(message({}), Contains("none.safetensors"));
  bool checked = false;
  api::Context context = w.context;
  context.on_checked = [&] { checked = true; };
  CHECK_FALSE(message_of([&] { api::evaluate(none, {}, context); }).empty());
  CHECK_FALSE(checked);
}

TEST_CASE("a gate is judged in the row", "[fast]") {
  const Workplace w;
  const auto gate = [&](const std::string& target, std::vector<std::string> metrics = {}) {
    const experiments::Gate asked = experiments::parse_gate(target);
    return to_json(api::evaluate(clicks(w),
                                 {.metrics = std::move(metrics), .gate = asked, .images = 40},
                                 w.context)
                       .row);
  };
  CHECK(gate("0.5")["gate"]["verdict"] == "pass");
  CHECK(gate("top1>=0.999")["gate"]["verdict"] == "fail");
  // Its metric is computed beside those asked for.
  CHECK_THAT(gate("auc>=0.1", {"log_loss"}).dump(),
             Contains("\"auc >= 0.1\"") && Contains("log_loss"));
}

TEST_CASE("folding keeps accuracy and moves roundings only", "[slow][shared]") {
  const Workplace w;
  api::OpenRequest names{.net = NUMEMU_SHARED "/models/resnet20-cifar10.onnx",
                         .data = "cifar10:" NUMEMU_SHARED "/data/cifar10"};
  const Json a = to_json(api::evaluate(names, {.images = 200}, w.context).row);
  names.fold_batch_norm = true;
  const Json b = to_json(api::evaluate(names, {.images = 200}, w.context).row);
  CHECK(a["point"]["weights"] != b["point"]["weights"]);
  CHECK(a["layers"].size() == b["layers"].size());
  CHECK(std::fabs(a["metrics"]["loss"].get<double>() - b["metrics"]["loss"].get<double>()) < 1e-4);
  CHECK(std::fabs(a["metrics"]["top1"].get<double>() - b["metrics"]["top1"].get<double>()) <=
        0.005);
}

TEST_CASE("data at links to themselves, pipes and folders is refused by name", "[fast]") {
  const Workplace w;
  std::filesystem::create_symlink("round", w / "round");
  REQUIRE(mkfifo((w / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_directories(w / "images/a");
  std::filesystem::create_symlink("round.png", w / "images/a/round.png");
  std::filesystem::create_directories(w / "pipes/a");
  REQUIRE(mkfifo((w / "pipes/a/x.png").c_str(), 0600) == 0);
  const auto refused = [&](const std::string& data, const std::string& name) {
    INFO(data);
    CHECK_THAT(message_of([&] {
                 try {
                   api::open_data({.net = "lenet", .data = data}, w.context);
                 } catch (const std::filesystem::filesystem_error& error) {
                   throw Error(error.path1().string());  // as the program tells it
                 }
               }),
               Contains(name));
  };
  for (const char* const place : {"round", "pipe"}) {
    for (const char* const kind :
         {"images:", "mnist:", "cifar10:", "text:", "tokens:", "npy:", "npy:x="})
      refused(kind + (w / place) + (std::string(kind) == "images:" ? ",normalize=none" : ""),
              place);
  }
  refused("images:" + (w / "images") + ",normalize=none", "images/a/round.png");
  refused("images:" + (w / "pipes") + ",normalize=none", "pipes/a/x.png");
}

TEST_CASE("exported with scales that are powers of two every output has the same bits", "[fast]") {
  const Workplace w;
  for (const char* format : {"int8", "int4", "float8_e4m3fn"}) {
    const api::Agreement onnx = api::export_network(
        lenet(w, format, "pow2(absmax)"), {.out = w / "m.onnx", .samples = 16}, w.context);
    CHECK(onnx.outputs == 160);
    CHECK(onnx.same_bits == onnx.outputs);
    CHECK(onnx.same_class == 16);
    CHECK(onnx.largest > 0);
    CHECK(onnx.difference == 0);
  }
}

TEST_CASE("weights in blocks and tiles read back from packed codes give the same outputs",
          "[fast]") {
  const Workplace w;
  struct Case {
    const char *recipe, *type, *scale;  ///< of fc1.weight
  };
  for (const Case& each : {Case{"mxfp4", "U8", "U8"},
                           {"nvfp4", "U8", "F8_E4M3"},
                           {"mxfp8", "F8_E4M3", "U8"},
                           {"fp8-block", "F8_E4M3", "F32"},
                           {"w4a16-g128", "I8", "F16"},
                           {"int8-dynamic", "I8", "F32"}}) {
    INFO(each.recipe);
    api::OpenRequest names = lenet(w, "int8", "absmax");
    names.recipe = each.recipe;
    Json json = Json::parse(read_file(NUMEMU_SOURCE "/data/recipes/" + names.recipe + ".json"));
    // The single channel of the first layer fills no whole bytes of two codes.
    if (!json.contains("gemms"))
      json["layers"] =
          Json::parse(R"([{"match": "conv1", "roles": {"weight": null, "activation": null}}])");
    names.recipe = w.file("r.json", json.dump());
    const std::string file = w / "m.safetensors";
    const api::Agreement codes =
        api::export_network(names, {.out = file, .samples = 16}, w.context);
    CHECK(codes.outputs == 160);
    CHECK(codes.largest > 0);
    CHECK(codes.same_bits == codes.outputs);
    InputFile stored(file);
    std::map<std::string, std::string> types;
    for (const SafetensorsEntry& entry : read_safetensors_header(stored).entries)
      types[entry.name] = entry.type->name;
    CHECK(types["fc1.weight"] == each.type);
    CHECK(types["fc1.weight_scale"] == each.scale);
    CHECK(types.contains("fc1.weight_scale_2") == (each.recipe == std::string("nvfp4")));
  }
}

TEST_CASE("codes and scales read back as a network give the same outputs", "[fast]") {
  const Workplace w;
  for (const char* format : {"int4", "uint8", "int12", "float8_e4m3fn", "float4_e2m1fn"}) {
    INFO(format);
    const api::OpenRequest names = lenet(w, format, "absmax");
    const api::Agreement codes =
        api::export_network(names, {.out = w / "m.safetensors", .samples = 16}, w.context);
    CHECK(codes.same_bits == codes.outputs);
    CHECK(codes.largest > 0);
    // The same by infer, whatever it would calibrate on.
    std::vector<float> x(64 * 28 * 28);
    const Array images = read_npy(w / "x.npy");
    std::copy_n(images.as<float>(), x.size(), x.begin());
    const std::string last = w.array("last.npy", {64, 28, 28, 1}, x);
    std::vector<float> first;
    for (const auto& [model, test] : {std::pair(names.net, "16"), {w / "m.safetensors", "60"}}) {
      const api::Inferred got =
          api::infer({.model = model,
                      .recipe = names.recipe,
                      .in = {last},
                      .keep = {"output"},
                      .calibrate_on = {"npy:x=" + (w / "x.npy") + ",test=" + test},
                      .noise = false},
                     w.context);
      if (first.empty()) first = got.outputs.at(0).values.data;
      CHECK(got.outputs.at(0).values.data == first);
    }
  }
}

}  // namespace networks_test
