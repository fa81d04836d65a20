// Networks of several inputs and outputs: data sets that name them, metrics per output, models
// prepared once.
#include <algorithm>
#include <cmath>
#include <map>

#include "api/networks.hpp"
#include "api/studies.hpp"
#include "emu/net/model/onnx/file.hpp"
#include "emu/net/model/safetensors.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"

namespace outputs_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;
using numemu::net::test::ModelWriter;
using Floats = std::vector<float>;

namespace {

constexpr std::int64_t kSamples = 48, kWidth = 8, kClasses = 4;

/// A value in [-1, 1) that is a function of i.
float drawn(std::int64_t i) {
  const auto hash = static_cast<std::uint32_t>(i * 2654435761u);
  return static_cast<float>(hash >> 8) / 0x1p23f - 1;
}

Floats floats(std::int64_t n, std::int64_t from) {
  Floats values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(drawn(from + i));
  return values;
}

/// Classes "logits" of the sum of two inputs, and "boxes", two numbers of their difference. The
/// inputs' names are not in the order of the alphabet.
std::string two_heads(const Workplace& w) {
  return w.file("heads.onnx",
                ModelWriter()
                    .input("query", {-1, kWidth})
                    .input("key", {-1, kWidth})
                    .floats("c.weight", {kWidth, kClasses}, floats(kWidth * kClasses, 1000))
                    .floats("b.weight", {kWidth, 2}, floats(kWidth * 2, 2000))
                    .node("Add", {"query", "key"}, {"sum"})
                    .node("Sub", {"query", "key"}, {"difference"})
                    .node("MatMul", {"difference", "b.weight"}, {"boxes"})
                    .node("MatMul", {"sum", "c.weight"}, {"logits"})
                    .output("logits")
                    .output("boxes")
                    .file());
}

/// Layers with biases that depend on one of two inputs; both outputs read all of them.
std::string two_towers(const Workplace& w) {
  return w.file("towers.onnx", ModelWriter()
                                   .input("query", {-1, kWidth})
                                   .input("key", {-1, kWidth})
                                   .floats("a.weight", {kWidth, 6}, floats(kWidth * 6, 1000))
                                   .floats("a.bias", {6}, floats(6, 1100))
                                   .floats("b.weight", {kWidth, 6}, floats(kWidth * 6, 2000))
                                   .floats("b.bias", {6}, floats(6, 2100))
                                   .floats("c.weight", {12, kClasses}, floats(12 * kClasses, 3000))
                                   .floats("c.bias", {kClasses}, floats(kClasses, 3100))
                                   .floats("d.weight", {12, 2}, floats(24, 4000))
                                   .node("Gemm", {"query", "a.weight", "a.bias"}, {"left"})
                                   .node("Gemm", {"key", "b.weight", "b.bias"}, {"right"})
                                   .node("Relu", {"left"}, {"bounded"})
                                   .node("Concat", {"bounded", "right"}, {"both"},
                                         {net::test::attribute("axis", std::int64_t{1})})
                                   .node("MatMul", {"both", "d.weight"}, {"boxes"})
                                   .node("Gemm", {"both", "c.weight", "c.bias"}, {"logits"})
                                   .output("logits")
                                   .output("boxes")
                                   .file());
}

struct Entry {
  std::string name;
  ArrayShape shape;
  Floats numbers = {};
  std::vector<std::int64_t> classes = {};
};

std::string archive(const Workplace& w, const std::string& name,
                    const std::vector<Entry>& entries) {
  std::vector<net::test::ZipItem> items;
  for (const Entry& entry : entries) {
    const std::string file = w / "entry.npy";
    if (entry.classes.empty())
      write_npy(file, ArrayType::float32, entry.shape, entry.numbers.data());
    else
      write_npy(file, ArrayType::int64, entry.shape, entry.classes.data());
    items.emplace_back(entry.name + ".npy", read_file(file));
  }
  return w.file(name, net::test::zip(items));
}

const Entry kQuery = {"query", {kSamples, kWidth}, floats(kSamples*kWidth, 0)},
            kKey = {"key", {kSamples, kWidth}, floats(kSamples*kWidth, 500)};

Entry boxes() { return {"y/boxes", {kSamples, 2}, floats(kSamples * 2, 3000)}; }
Entry labels(const std::string& name = "y/logits") {
  Entry entry{name, {kSamples}, {}, {}};
  for (std::int64_t i = 0; i < kSamples; ++i) entry.classes.push_back(i % (kClasses - 1));
  return entry;
}

const std::string kStatic = R"({"numemu_recipe": 1, "calibrate": {"samples": 16}, "roles": {
    "weight": {"format": "int8", "scale": "absmax", "granularity": "channel"},
    "activation": {"format": "int8", "scale": "absmax", "granularity": "tensor"}}})";

std::vector<std::string> score_names(const experiments::Row& row) {
  std::vector<std::string> names;
  for (const experiments::RowScore& score : row.scores) names.push_back(score.name);
  return names;
}

/// Samples [first, first + count) of an array in memory.
net::NamedTensor piece_of(const Entry& entry, std::int64_t first, std::int64_t count) {
  net::NamedTensor tensor{entry.name, net::Tensor({count, kWidth})};
  std::copy_n(entry.numbers.begin() + first * kWidth, count * kWidth, tensor.value.data.begin());
  return tensor;
}

const experiments::RowScore& score_of(const experiments::Row& row, const std::string& name) {
  const experiments::RowScore* const score = row.score(name);
  if (score == nullptr) throw Error("no score " + name);
  return *score;
}

/// What evaluation makes of the last 32 samples, from outputs that infer gave.
struct ByHand {
  double top1 = 0, squared = 0;
};
ByHand by_hand(const std::map<std::string, net::Tensor>& outputs) {
  constexpr std::int64_t kFirst = 16, kTested = kSamples - kFirst;
  ByHand out;
  const net::Tensor &logits = outputs.at("logits"), &found = outputs.at("boxes");
  const Entry expected = boxes(), classes = labels();
  for (std::int64_t i = 0; i < kTested; ++i) {
    const float* const z = logits.data.data() + i * kClasses;
    out.top1 += std::max_element(z, z + kClasses) - z == classes.classes[kFirst + i];
    for (std::int64_t k = 0; k < 2; ++k) {
      const double error =
          double{found.data[2 * i + k]} - double{expected.numbers[2 * (kFirst + i) + k]};
      out.squared += error * error;
    }
  }
  out.top1 /= static_cast<double>(kTested);
  out.squared /= static_cast<double>(2 * kTested);
  return out;
}

}  // namespace

TEST_CASE("a row has the metrics of every output, against its own targets", "[fast]") {
  Workplace w;
  const std::string recipe = w.file("r.json", kStatic), model = two_heads(w);
  const std::string data =
      "npy:" + archive(w, "d.npz", {boxes(), kKey, kQuery, labels()}) + ",test=32";
  const experiments::Row row =
      api::evaluate({.net = model, .data = data, .recipe = recipe}, {}, w.context).row;
  CHECK(score_names(row) == std::vector<std::string>{"boxes/mse", "boxes/mae"});
  CHECK(row.metrics.n == 32);
  CHECK(row.metrics.sqnr_db);
  CHECK(row.predicted.sqnr_db);

  const std::vector<net::NamedTensor> arrays{piece_of(kQuery, 16, 32), piece_of(kKey, 16, 32)};
  const api::InferRequest request{.model = model,
                                  .recipe = recipe,
                                  .arrays = arrays,
                                  .keep_all = true,
                                  .calibrate_on = {data},
                                  .noise = false};
  api::Inferred inferred = api::infer(request, w.context);
  REQUIRE(inferred.outputs.size() == 2);
  std::map<std::string, net::Tensor> outputs;
  for (api::Inferred::Output& output : inferred.outputs)
    outputs[output.name] = std::move(output.values);
  const ByHand expected = by_hand(outputs);
  CHECK(*row.metrics.top1 == expected.top1);
  constexpr double kRowDigits = 1e-5;  // rows have six digits
  CHECK(*score_of(row, "boxes/mse").value == Approx(expected.squared).epsilon(kRowDigits));

  // The recipe reaches both outputs, and its float32 is that of no recipe.
  CHECK(*score_of(row, "boxes/mse").difference != 0);
  const experiments::Row float32 = api::evaluate({.net = model, .data = data}, {}, w.context).row;
  CHECK(*score_of(float32, "boxes/mse").value == *score_of(row, "boxes/mse").baseline);

  // A metric is that of every output it fits, or of one.
  const auto named = [&](const std::vector<std::string>& metrics) {
    return score_names(
        api::evaluate({.net = model, .data = data}, {.metrics = metrics}, w.context).row);
  };
  CHECK(named({"cosine"}) == std::vector<std::string>{"cosine", "boxes/cosine"});
  CHECK(named({"boxes/cosine", "top5"}) == std::vector<std::string>{"boxes/cosine", "top5"});
  CHECK_THAT(message_of([&] { named({"boxes/top1"}); }), Contains("boxes/top1 needs classes"));
  CHECK_THAT(message_of([&] { named({"masks/mse"}); }), Contains("masks/mse"));
}

TEST_CASE("an output without targets is compared with float32", "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const auto names_of = [&](const std::vector<Entry>& entries) {
    const std::string data = "npy:" + archive(w, "d.npz", entries) + ",test=32,classes=4";
    return score_names(api::evaluate({.net = model, .data = data}, {}, w.context).row);
  };
  CHECK(names_of({kQuery, kKey, labels("y")}) ==
        std::vector<std::string>{"boxes/cosine", "boxes/sqnr"});
  CHECK(names_of({kQuery, kKey}) ==
        std::vector<std::string>{"cosine", "sqnr", "boxes/cosine", "boxes/sqnr"});
  CHECK(names_of({kQuery, kKey, boxes()}) ==
        std::vector<std::string>{"cosine", "sqnr", "boxes/mse", "boxes/mae"});
}

TEST_CASE("data sets and networks that do not fit each other are refused by name", "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const auto refusal = [&](const std::vector<Entry>& entries) {
    const std::string data = "npy:" + archive(w, "d.npz", entries);
    return message_of([&] { api::evaluate({.net = model, .data = data}, {}, w.context); });
  };
  CHECK_THAT(refusal({kQuery, boxes()}), Contains("expected an array 'key'"));
  CHECK_THAT(refusal({kQuery, kKey, {"mask", {kSamples, 1}, floats(kSamples, 0)}}),
             Contains("expected no array 'mask'") && Contains("query, key"));
  CHECK_THAT(refusal({kQuery, {"key", {kSamples, 4}, floats(kSamples * 4, 0)}}),
             Contains("expected an input key of shape [4]") && Contains("found [8]"));
  CHECK_THAT(refusal({kQuery, {"key", {2, kWidth}, floats(2 * kWidth, 0)}}),
             Contains("expected 2 samples") || Contains("expected 48 samples"));
  CHECK_THAT(refusal({{"x", {kSamples, kWidth}, floats(kSamples * kWidth, 0)}}),
             Contains("expected a network of one input, found 2"));
  Entry other = boxes();
  other.name = "y/masks";
  CHECK_THAT(refusal({kQuery, kKey, other}),
             Contains("targets of masks: expected an output of the network: logits, boxes"));
}

TEST_CASE("a model prepared once gives piece by piece what infer gives of all", "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  // Stochastic rounding draws by the number of the sample; dynamic scales are those of a batch.
  const std::string dynamic = R"json({"calibrate": {"rule": "dynamic"}, "roles": {
      "weight": {"format": "int8", "scale": "absmax", "granularity": "channel"},
      "activation": {"format": "int8", "scale": "absmax", "granularity": "tensor",
                     "rounding": "sr(8)"}}})json";
  for (const std::string& recipe : {dynamic, kStatic, std::string()}) {
    INFO(recipe);
    const std::vector<net::NamedTensor> arrays{piece_of(kQuery, 0, kSamples),
                                               piece_of(kKey, 0, kSamples)};
    const api::InferRequest request{.model = model,
                                    .recipe = recipe,
                                    .arrays = arrays,
                                    .keep_all = true,
                                    .batch = 8,
                                    .noise = false};
    const api::Inferred all = api::infer(request, w.context);
    api::Inference prepared(request, w.context);
    std::map<std::string, Floats> pieces;
    for (const auto& [first, count] : {std::pair{0, 16}, {16, 8}, {24, 24}}) {
      for (const auto& [name, y] :
           prepared.run({piece_of(kKey, first, count), piece_of(kQuery, first, count)}))
        pieces[name].insert(pieces[name].end(), y.data.begin(), y.data.end());
    }
    REQUIRE(all.outputs.size() == 2);
    for (const api::Inferred::Output& output : all.outputs)
      CHECK(pieces.at(output.name) == output.values.data);
  }
}

TEST_CASE("a network of two inputs trains on its first output, and is tuned and exported",
          "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const std::string data = "npy:" + archive(w, "d.npz", {kQuery, kKey, boxes(), labels()}) +
                           ",test=16,validation=8,classes=4";
  std::vector<double> losses;
  api::TrainHooks hooks;
  hooks.on_epoch = [&](const net::EpochMetrics& epoch, const net::Dataset&,
                       std::optional<std::size_t>) { losses.push_back(epoch.train_loss); };
  net::TrainOptions options;
  options.epochs = 6;
  options.batch = 8;
  const api::Trained trained = api::train(
      {.net = model, .data = data, .out = w / "trained", .train = options, .learning_rate = 0.01},
      w.context, hooks);
  REQUIRE(losses.size() == 6);
  CHECK(losses.back() < losses.front());
  CHECK(trained.dataset.targets_of(0).output == "logits");

  // The checkpoint has the graph, both inputs and both outputs.
  const experiments::Row row =
      api::evaluate({.net = trained.checkpoint, .data = data}, {}, w.context).row;
  CHECK(*row.metrics.top1 == trained.accuracy());
  CHECK(row.score("boxes/mse") != nullptr);
  const api::Tuned tuned = api::tune({.net = trained.checkpoint,
                                      .data = data,
                                      .recipe = kStatic,
                                      .steps = "calibrate",
                                      .out = w / "tuned"},
                                     w.context);
  CHECK(tuned.after.value().n == 8);
  const api::Agreement same = api::export_network({.net = model, .data = data, .recipe = kStatic},
                                                  {.out = w / "q.onnx"}, w.context);
  CHECK(same.same_class == same.samples);
  // Both outputs are compared, by arrays as by data.
  CHECK(same.names == std::vector<std::string>{"logits", "boxes"});
  CHECK(same.outputs == same.samples * (kClasses + 2));
  const experiments::Row exported =
      api::evaluate({.net = w / "q.onnx", .data = data}, {}, w.context).row;
  CHECK(exported.score("boxes/mse") != nullptr);
}

TEST_CASE("training passes over outputs without targets, and keeps one weight of two layers one",
          "[fast]") {
  Workplace w;
  const std::string data =
      "npy:" + archive(w, "d.npz", {kQuery, kKey, labels()}) + ",test=16,classes=4";
  net::TrainOptions options;
  options.epochs = 1;
  options.batch = 8;
  const auto train = [&](const std::string& model) {
    return api::train({.net = model, .data = data, .out = w / "trained", .train = options},
                      w.context);
  };
  CHECK(train(two_heads(w)).dataset.outputs() == 2);
  CHECK(w.said.find("the same weight") == std::string::npos);
  const std::string twins = w.file(
      "twins.onnx", ModelWriter()
                        .input("query", {-1, kWidth})
                        .input("key", {-1, kWidth})
                        .floats("c.weight", {kWidth, kClasses}, floats(kWidth * kClasses, 1000))
                        .node("MatMul", {"query", "c.weight"}, {"left"})
                        .node("MatMul", {"key", "c.weight"}, {"right"})
                        .node("Sub", {"left", "right"}, {"logits"})
                        .output("logits")
                        .file());
  const api::Trained trained = train(twins);
  CHECK_THAT(w.said, Contains("note: c.weight, c.1.weight are one tensor, which is trained once."));
  // One tensor in the checkpoint, and in the file that is exported from it.
  const net::Checkpoint stored = net::read_safetensors(trained.checkpoint, true);
  CHECK(std::ranges::count_if(stored.tensors, [](const net::NamedTensor& tensor) {
          return tensor.name.starts_with("c");
        }) == 1);
  api::export_network({.net = trained.checkpoint,
                       .data = data,
                       .recipe = w.file("float32.json", R"({"numemu_recipe": 1})")},
                      {.out = w / "out.onnx"}, w.context);
  const net::OnnxModel exported = net::read_onnx(w / "out.onnx");
  CHECK(exported.graph.initializers.size() == 1);
}

TEST_CASE("a row says that SQNR is that of the first of several outputs", "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const std::string data =
      "npy:" + archive(w, "d.npz", {kQuery, kKey, boxes(), labels()}) + ",test=32";
  const experiments::Row row =
      api::evaluate({.net = model, .data = data, .recipe = kStatic}, {}, w.context).row;
  CHECK(std::ranges::count_if(row.notes, [](const std::string& note) {
          return note.find("those of logits, the first of 2 outputs") != note.npos;
        }) == 1);
}

TEST_CASE("codes of tensors between operators: a row without predictions, refused exports",
          "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const std::string data =
      "npy:" + archive(w, "d.npz", {boxes(), kKey, kQuery, labels()}) + ",test=32";
  const auto recipe = [](const std::string& edges) {
    return R"({"numemu_recipe": 1, "calibrate": {"samples": 16}, "roles": {
        "weight": {"format": "int8", "granularity": "channel"},
        "activation": {"format": "uint8", "zero_point": "calibrated"}},
        "gemms": {"fprop": {"unit": "intel.emr.vpdpbusd"}})" +
           edges + "}";
  };
  const auto row = [&](const std::string& edges) {
    return api::evaluate({.net = model, .data = data, .recipe = recipe(edges)}, {}, w.context).row;
  };
  const experiments::Row plain = row(""), coded = row(R"(, "edges": "static")");
  CHECK(plain.predicted.sqnr_db);
  CHECK_FALSE(coded.predicted.sqnr_db);
  CHECK_THAT(coded.predicted.left_out, Contains("(edges)"));
  // The result is rounded, too.
  CHECK(*coded.metrics.sqnr_db < *plain.metrics.sqnr_db);
  for (const std::string how : {"float", "fixed-point-single", "fixed-point-double"}) {
    const experiments::Row whole =
        row(R"(, "edges": {"rule": "static", "requantize": ")" + how + "\"}");
    CHECK(std::fabs(*whole.metrics.sqnr_db - *coded.metrics.sqnr_db) < 1);
  }
  CHECK_THAT(message_of([&] {
               api::export_network(
                   {.net = model,
                    .data = data,
                    .recipe = recipe(R"(, "edges": {"rule": "static", "requantize": "float"})")},
                   {.out = w / "q.onnx"}, w.context);
             }),
             Contains("codes from int32 sums (edges.requantize)"));
}

TEST_CASE("a layer whose product gives the codes of its ReLU has no SQNR", "[fast]") {
  Workplace w;
  const std::string data =
      "npy:" + archive(w, "d.npz", {boxes(), kKey, kQuery, labels()}) + ",test=32";
  const auto row = [&](const std::string& edges) {
    return api::evaluate({.net = two_towers(w),
                          .data = data,
                          .recipe = R"({"numemu_recipe": 1, "calibrate": {"samples": 16}, "roles": {
        "weight": {"format": "int8", "granularity": "channel"},
        "activation": {"format": "uint8", "zero_point": "calibrated"}},
        "gemms": {"fprop": {"unit": "intel.emr.vpdpbusd"}}, "edges": )" +
                                    edges + "}"},
                         {}, w.context)
        .row;
  };
  // float32's results stand before the ReLU: they are no reference for codes behind it.
  const auto without = [](const experiments::Row& of) {
    std::vector<std::string> names;
    for (const experiments::RowLayer& layer : of.layers) {
      const bool said = layer.left_out.find("fused") != layer.left_out.npos;
      CHECK(said == !layer.sqnr_db);
      if (said) names.push_back(layer.name);
    }
    return names;
  };
  CHECK(without(row(R"("static")")).empty());
  CHECK(without(row(R"({"rule": "static", "requantize": "float"})")).size() == 1);
}

TEST_CASE("sensitivity of a network of two inputs and two outputs", "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const std::string data =
      "npy:" + archive(w, "d.npz", {kQuery, kKey, boxes(), labels()}) + ",test=32,classes=4";
  const api::ExperimentResult result =
      api::run_experiment({.name = "sensitivity",
                           .size = "smoke",
                           .out = w / "sensitivity",
                           .settings = {"net=" + model, "data=" + data, "formats=int4"}},
                          w.context);
  const experiments::ResultTable& table = result.conclusion.tables.at(0);
  std::map<std::string, std::vector<std::string>> rows;
  for (const std::vector<std::string>& row : table.rows) rows[row[0]] = row;
  REQUIRE(rows.size() == 3);
  CHECK(table.header.back() == "boxes/mse");
  for (const auto& [layer, row] : rows) {
    INFO(layer);
    REQUIRE(row.size() == table.header.size());
    CHECK(std::isfinite(std::stod(row.back())));
  }
  // The first output's SQNR says nothing of a layer of the second; the last column does.
  std::vector<std::string> first, second;
  for (const auto& [layer, row] : rows) {
    if (layer != "all layers") (row[3] == "-" ? second : first) = row;
  }
  REQUIRE_FALSE(first.empty());
  REQUIRE_FALSE(second.empty());
  CHECK(second.back() != first.back());
  const std::vector<std::string>& said = result.conclusion.sentences;
  CHECK(std::ranges::count_if(said, [](const std::string& sentence) {
          return sentence.find("layers are ranked by that one") != sentence.npos;
        }) == 1);
}

TEST_CASE("studies of two outputs judge the first, whatever the order of the targets, and say so",
          "[fast]") {
  Workplace w;
  const std::string model = two_towers(w), options = ",test=16,validation=8,classes=4";
  const std::string in_order = archive(w, "a.npz", {kQuery, kKey, labels(), boxes()}),
                    turned = archive(w, "b.npz", {boxes(), kKey, labels(), kQuery});
  const std::map<std::string, std::vector<std::string>> studies = {
      {"search", {"net=" + model, "bits=4", "refine=2", "measured=1", "random=1"}},
      {"allocation", {"net=" + model, "options=int8,int4"}},
      {"accumulator", {"nets=" + model, "laws=normal", "lengths=16", "net_units=neutral.mac.e8m7"}},
      {"post-training", {"net=" + model}}};
  for (const auto& [name, settings] : studies) {
    INFO(name);
    const auto concluded = [&, &name = name, &settings = settings](const std::string& file) {
      std::vector<std::string> all = settings;
      all.push_back("data=npy:" + file + options);
      return api::run_experiment(
                 {.name = name, .size = "smoke", .out = file + name, .settings = all}, w.context)
          .conclusion;
    };
    const experiments::Conclusion one = concluded(in_order), other = concluded(turned);
    CHECK(std::ranges::count_if(one.sentences, [](const std::string& sentence) {
            return sentence.find("are those of logits, the first of 2 outputs") != sentence.npos;
          }) == 1);
    REQUIRE_FALSE(one.tables.empty());
    REQUIRE(one.tables.size() == other.tables.size());
    for (std::size_t i = 0; i < one.tables.size(); ++i) {
      CHECK(one.tables[i].header == other.tables[i].header);
      CHECK(one.tables[i].rows == other.tables[i].rows);
    }
  }
}

TEST_CASE("every tuning step serves layers that depend on one of two inputs", "[fast]") {
  Workplace w;
  const std::string model = two_towers(w);
  const std::string data = "npy:" + archive(w, "d.npz", {kQuery, kKey, boxes(), labels()}) +
                           ",test=16,validation=8,classes=4";
  for (const std::string steps :
       {"calibrate", "adaquant(iterations=20)", "adaround(iterations=20)", "gptq", "batch_norm",
        "bias_correction", "bias(epochs=1)", "distill(epochs=1)", "light"}) {
    INFO(steps);
    const api::Tuned tuned = api::tune({.net = model,
                                        .data = data,
                                        .recipe = kStatic,
                                        .steps = steps,
                                        .out = w / ("tuned-" + steps.substr(0, steps.find('(')))},
                                       w.context);
    CHECK(tuned.layers.size() == 4);
    for (const api::Tuned::Decibels& layer : tuned.layers) {
      INFO(layer.layer);
      CHECK(std::isfinite(layer.before));
      CHECK(std::isfinite(layer.after));
    }
    CHECK(tuned.after.value().n == 8);
    CHECK(std::ranges::count_if(tuned.notes, [](const std::string& note) {
            return note.find("are those of logits, the first of 2 outputs") != note.npos;
          }) == 1);
  }
}

TEST_CASE("a recipe is its JSON text, too", "[fast]") {
  Workplace w;
  const std::string model = two_heads(w);
  const std::string data = "npy:" + archive(w, "d.npz", {kQuery, kKey}) + ",test=32";
  const auto row = [&](const std::string& recipe) {
    return api::evaluate({.net = model, .data = data, .recipe = recipe}, {}, w.context).row;
  };
  const experiments::Row file = row(w.file("r.json", kStatic)), text = row(kStatic);
  CHECK(file.key == text.key);
  CHECK(*file.metrics.sqnr_db == *text.metrics.sqnr_db);
  CHECK_THAT(message_of([&] { row(R"({"roles": {"weight": {"format": "int9000"}}})"); }),
             Contains("recipe: roles.weight"));
}

}  // namespace outputs_test
