// Training through its function: rows, what the checkpoint says, stages, bytes.
#include <cmath>
#include <filesystem>

#include "api/networks.hpp"
#include "emu/net/model/safetensors.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_models.hpp"

namespace train_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

/// A little text that is easy to learn: 64 characters of context, about 40 windows.
api::TrainRequest text_of(const Workplace& w, std::int64_t epochs) {
  std::string text;
  for (int i = 0; text.size() < 3000; ++i) {
    text += "the " + std::string(i % 3 == 0 ? "cat" : i % 5 == 0 ? "dog" : "owl") + " sat down, ";
    text += std::string(1, static_cast<char>('a' + i % 26)) + " times; ";
  }
  api::TrainRequest asked{
      .net = "lstm-char", .data = "text:" + w.file("small.txt", text), .out = w / "o", .seed = 1};
  asked.train.batch = 8;
  asked.train.epochs = epochs;
  return asked;
}

std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> rows;
  const std::string text = read_file(path);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    rows.push_back(Json::parse(text.substr(start, end - start)));
    start = end + 1;
  }
  return rows;
}

std::vector<std::string> state_and_results(const std::string& folder) {
  return {read_file(folder + "/lstm-char-text.safetensors"), read_file(folder + "/metrics.jsonl"),
          read_file(folder + "/state.safetensors")};
}

std::string training_of(const std::string& path) {
  std::string text;
  for (const auto& [key, value] : net::read_safetensors(path, /*bytes=*/true).metadata)
    text += key == "training" ? value : "";
  return text;
}

}  // namespace

TEST_CASE("an epoch that drops all samples leaves no rows", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  asked.recipe =
      w.file("r.json", R"j({"numemu_recipe": 1, "drop": "threshold(1e-12,constant(1))"})j");
  CHECK_THAT(message_of([&] { api::train(asked, w.context); }),
             Catch::Contains("no sample took part in epoch"));
  CHECK_FALSE(std::filesystem::exists(w / "o/metrics.jsonl"));
}

TEST_CASE("training refuses a batch that workers cannot share", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  asked.train.workers = 3;
  CHECK_THAT(message_of([&] { api::train(asked, w.context); }),
             Catch::Contains("such as 6 or 9, not 8"));
  CHECK_FALSE(std::filesystem::exists(w / "o"));
}

TEST_CASE("training on a text leaves rows with perplexity and bits per character", "[fast]") {
  const Workplace w;
  std::int64_t steps = 0, last = 0, epochs = 0;
  bool ended = false;
  api::TrainHooks hooks;
  hooks.on_start = [&](const net::RunState& state, std::int64_t all) {
    CHECK(state.step == 0);
    steps = all;
  };
  hooks.on_step = [&](std::int64_t step, double) { last = step; };
  hooks.on_epoch = [&](const net::EpochMetrics&, const net::Dataset&,
                       std::optional<std::size_t> stage) {
    CHECK_FALSE(stage);
    ++epochs;
  };
  hooks.on_end = [&] { ended = true; };
  const api::Trained trained = api::train(text_of(w, 3), w.context, hooks);
  CHECK(steps == last + 1);
  CHECK(epochs == 3);
  CHECK(ended);
  CHECK(trained.checkpoint == w / "o/lstm-char-text.safetensors");
  CHECK(std::filesystem::exists(trained.checkpoint));
  CHECK(trained.tested.loss > 0);
  CHECK(trained.kept);
  CHECK_FALSE(trained.stored);
  const std::vector<Json> rows = rows_of(w / "o/metrics.jsonl");
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i]["epoch"] == i);
    CHECK(rows[i]["step"] ==
          rows[0]["step"].get<std::int64_t>() * static_cast<std::int64_t>(i + 1));
    CHECK(rows[i]["skipped_steps"] == 0);
    CHECK(rows[i]["gradient_norm"].get<double>() > 0);
    CHECK(rows[i]["bits_per_character"].get<double>() > 0);
  }
  CHECK(rows[2]["train_loss"].get<double>() < rows[0]["train_loss"].get<double>());
}

TEST_CASE("a finished run gives its result again and another one takes its place", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  const double loss = api::train(asked, w.context).tested.loss;
  const auto files = state_and_results(w / "o");
  bool finished = false;
  api::TrainHooks hooks;
  hooks.on_start = [&](const net::RunState& state, std::int64_t) { finished = state.finished; };
  CHECK(api::train(asked, w.context, hooks).tested.loss == loss);
  CHECK(finished);
  CHECK(state_and_results(w / "o") == files);
  asked.learning_rate = 0.01;
  api::train(asked, w.context, hooks);
  CHECK_FALSE(finished);
  CHECK(state_and_results(w / "o") != files);
}

TEST_CASE("a run that ends early leaves no checkpoint of the run before it", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  const std::string path = api::train(asked, w.context).checkpoint;
  // Refused before any work: what is there stays.
  asked.recipe = "none.json";
  CHECK_THAT(message_of([&] { api::train(asked, w.context); }), Contains("none.json"));
  CHECK(std::filesystem::exists(path));
  asked.recipe.clear();
  asked.optimizer = "sgd";
  asked.learning_rate = 1e30;
  asked.warmup = 0;
  CHECK_THAT(message_of([&] { api::train(asked, w.context); }), Contains("training diverged"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("the checkpoint says how it was trained", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  asked.optimizer = "sgd";
  asked.clip = 0.5;
  asked.warmup = 2;
  asked.learning_rate = 0.25;
  asked.weight_decay = 0;
  asked.train.nesterov = true;
  asked.train.schedule = "linear";
  asked.train.workers = 2;
  asked.train.micro_batches = 2;
  CHECK(training_of(api::train(asked, w.context).checkpoint) ==
        "sgd linear lr 0.25 nesterov momentum 0.9 weight decay 0 epochs 1 batch 8 seed 1 "
        "warmup 2 clip 0.5 workers 2 micro-batches 2");
}

TEST_CASE("the checkpoint has options of optimizers and objectives in their canonical form",
          "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  asked.optimizer = "lion(0.9, beta2=0.98)";
  asked.train.objectives = {"label_smoothing(share=0.2)", "complement"};
  asked.learning_rate = 0.0001;
  asked.warmup = 0;
  asked.clip = 0;
  CHECK(training_of(api::train(asked, w.context).checkpoint) ==
        "lion(0.9,0.98) cosine lr 0.0001 weight decay 0.1 epochs 1 batch 8 seed 1 objectives "
        "label_smoothing(0.2) complement");
}

TEST_CASE("rows name the stage of the recipe, and objectives come from it", "[fast]") {
  Workplace w;
  const auto run = [&](int epoch) {
    api::TrainRequest asked = text_of(w, 2);
    asked.recipe = w.file("r.json", R"({"numemu_recipe": 1,
      "objectives": ["cross_entropy", "complement"], "stages": [{"from": {"epoch": )" +
                                        std::to_string(epoch) + R"(},
      "patch": {"roles": {"weight": {"format": "int8"}}}}]})");
    asked.fresh = true;
    return api::train(asked, w.context);
  };
  const api::Trained two = run(1);
  CHECK(two.stage == 1);
  CHECK(w.said.empty());
  const std::vector<Json> rows = rows_of(w / "o/metrics.jsonl");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["stage"] == 0);
  CHECK(rows[1]["stage"] == 1);
  CHECK_THAT(training_of(two.checkpoint), Contains(" objectives cross_entropy complement"));
  // The test after a training that did not reach the last stage.
  const api::Trained one = run(2);
  CHECK(one.stage == 0);
  CHECK(one.stages == 1);
  CHECK(w.said ==
        "note: training ended in stage 0; the test uses the last one, stage 1, as eval does\n");
}

TEST_CASE("training tells how many bytes it stores of a parameter", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = text_of(w, 1);
  asked.recipe =
      w.file("few.json", R"j({"numemu_recipe": 1, "roles": {"state": {"format": "bfloat16"}},
                              "update": {"master": "bfloat16", "rounding": "sr(16)"}})j");
  const api::Trained few = api::train(asked, w.context);
  REQUIRE(few.stored);
  CHECK(few.stored->master == 2);
  CHECK(few.stored->state == 4);
  CHECK(few.stored_float32.master == 4);
  CHECK(few.stored_float32.state == 8);
  const Json row = rows_of(w / "o/metrics.jsonl").at(0);
  CHECK(row["master_bytes_per_parameter"] == 2);
  CHECK(row["state_bytes_per_parameter"] == 4);
  asked.recipe = w.file("none.json", R"({"numemu_recipe": 1})");
  CHECK_FALSE(api::train(asked, w.context).stored);
  CHECK_FALSE(rows_of(w / "o/metrics.jsonl").at(0).contains("state_bytes_per_parameter"));
}

TEST_CASE("rows of several workers tell the bits on the wire and each parameter's share",
          "[fast]") {
  const Workplace w;
  const auto row = [&](std::int64_t workers, const std::string& exchange) {
    api::TrainRequest asked = text_of(w, 1);
    asked.recipe = w.file("r.json", R"({"numemu_recipe": 1, "exchange": )" + exchange + "}");
    asked.fresh = true;
    asked.train.workers = workers;
    api::train(asked, w.context);
    return rows_of(w / "o/metrics.jsonl").at(0);
  };
  CHECK_FALSE(row(1, "null").contains("exchange"));
  const Json dense = row(2, "null")["exchange"],
             small = row(
                 2, R"({"format": "float8_e5m2", "scale": "none", "order": "server"})")["exchange"],
             few = row(2, "\"topk(0.01)\"")["exchange"];
  const double bits = dense["sent_bits"];
  CHECK(dense["returned_bits"] == bits);
  CHECK(small["sent_bits"] == bits / 4);
  CHECK(small["returned_bits"] == bits / 4);
  CHECK(few["sent_bits"].get<double>() < bits / 20);
  double shares = 0;
  for (const auto& share : few["sent_shares"].items()) shares += share.value().get<double>();
  CHECK(shares == Approx(1).epsilon(1e-5));  // six digits of each
}

TEST_CASE("a recipe that names no optimizer has the one asked for", "[fast]") {
  const Workplace w;
  for (const char* update : {"", R"(, "update": {"master": "bfloat16"})"}) {
    INFO(update);
    api::TrainRequest asked = text_of(w, 1);
    asked.recipe = w.file("r.json", R"({"numemu_recipe": 1)" + std::string(update) + "}");
    asked.optimizer = "sgd";
    CHECK_THAT(training_of(api::train(asked, w.context).checkpoint), Catch::StartsWith("sgd "));
  }
}

namespace {

/// y = W2 relu(W1 x) of arrays, and numbers or classes to learn: a trained network in m.onnx.
api::TrainRequest small_onnx(const Workplace& w, bool classes) {
  constexpr std::int64_t kSamples = 240, kIn = 6, kHidden = 12, kOut = 3;
  const auto wave = [](std::int64_t n, double scale) {
    std::vector<float> out;
    for (std::int64_t i = 0; i < n; ++i)
      out.push_back(static_cast<float>(scale * std::sin(static_cast<double>(i * i % 97) + 0.7)));
    return out;
  };
  net::test::ModelWriter model;
  model.input("x", {-1, kIn})
      .floats("w1", {kIn, kHidden}, wave(kIn * kHidden, 0.6))
      .floats("w2", {kHidden, kOut}, wave(kHidden * kOut, 0.5))
      .node("MatMul", {"x", "w1"}, {"h"})
      .node("Relu", {"h"}, {"r"})
      .node("MatMul", {"r", "w2"}, {"y"})
      .output("y");
  w.file("m.onnx", model.file());
  const std::vector<float> x = wave(kSamples * kIn, 1);
  w.array("x.npy", {kSamples, kIn}, x);
  if (classes) {
    std::vector<std::int64_t> y;
    for (std::int64_t i = 0; i < kSamples; ++i)
      y.push_back(x[i * kIn] > 0.2f ? 1 : x[i * kIn + 1] > 0 ? 2 : 0);
    write_npy(w / "y.npy", ArrayType::int64, {kSamples}, y.data());
  } else {
    std::vector<float> y;
    for (std::int64_t i = 0; i < kSamples * kOut; ++i)
      y.push_back(x[i / kOut * kIn + i % kOut] / 2);
    w.array("y.npy", {kSamples, kOut}, y);
  }
  api::TrainRequest asked{.net = w / "m.onnx",
                          .data = "npy:x=" + (w / "x.npy") + ",y=" + (w / "y.npy") +
                                  ",test=80,validation=40" + (classes ? ",classes=3" : ""),
                          .out = w / "o",
                          .learning_rate = 0.01};
  asked.train.batch = 20;
  asked.train.epochs = 6;
  return asked;
}

}  // namespace

TEST_CASE("a regression is trained on its squared error", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = small_onnx(w, false);
  asked.recipe = "w4a8";
  const api::Trained trained = api::train(asked, w.context);
  REQUIRE(trained.figure);
  CHECK(trained.figure->measure->name == "mse");
  REQUIRE(trained.compared);
  CHECK(trained.compared->after.loss < trained.compared->before.loss / 2);
  CHECK(trained.compared->after.figure.value == trained.figure->value);
  const Json row = rows_of(w / "o/metrics.jsonl").back();
  CHECK(row["train_top1"].is_null());
  CHECK(row["validation_top1"].is_null());
  CHECK(row["validation_loss"].get<double>() > 0);
  const Json json = json_of(trained);
  CHECK(json["metrics"]["metric"] == "mse");
  CHECK(json["metrics"]["top1"].is_null());
  CHECK_THAT(training_of(trained.checkpoint), Contains("objectives squared_error"));
  asked.train.objectives = {"label_smoothing"};
  asked.fresh = true;
  CHECK_THAT(message_of([&] { api::train(asked, w.context); }),
             Contains("objective label_smoothing: expected a data set of classes"));
}

TEST_CASE("fine-tuning is compared with the original network and with that under the recipe",
          "[fast]") {
  const Workplace w;
  api::TrainRequest asked = small_onnx(w, true);
  asked.recipe = "w4a8";
  const api::Trained trained = api::train(asked, w.context);
  REQUIRE(trained.compared);
  const api::Trained::Compared& compared = *trained.compared;
  CHECK(compared.original.n == 80);
  CHECK(compared.after.top1->value == trained.accuracy());
  CHECK(compared.after.loss < compared.before.loss);
  CHECK(json_of(trained)["compared"]["after"]["top1"].get<double>() ==
        Approx(trained.accuracy()).epsilon(1e-5));
  // What eval says of the same networks.
  api::Session session =
      api::open({.net = asked.net, .data = asked.data, .recipe = asked.recipe}, w.context);
  const api::Evaluated before = api::evaluate(session, {.predictions = false}, w.context);
  CHECK(*before.row.metrics.top1 == Approx(compared.before.top1->value));
  // A second run goes on, and the original stays.
  api::TrainRequest more = asked;
  more.net = trained.checkpoint;
  more.out = w / "p";
  const api::Trained second = api::train(more, w.context);
  CHECK(second.compared->original.loss == compared.original.loss);
  CHECK(second.compared->before.loss == compared.after.loss);
  // Float32 has nothing to compare.
  asked.recipe.clear();
  asked.out = w / "f";
  CHECK_FALSE(api::train(asked, w.context).compared);
}

namespace {

/// [n, 3, 4] plus a table, times one matrix for each position where there are `heads`.
api::TrainRequest with_table(const Workplace& w, bool heads) {
  constexpr std::int64_t kSamples = 120, kLength = 3, kIn = 4, kOut = 3;
  const auto wave = [](std::int64_t n) {
    std::vector<float> out;
    for (std::int64_t i = 0; i < n; ++i)
      out.push_back(static_cast<float>(std::sin(static_cast<double>(i * i % 97) + 0.7)));
    return out;
  };
  net::test::ModelWriter model;
  model.input("x", {-1, kLength, kIn}).floats("pos", {kLength, kIn}, wave(kLength * kIn));
  model.floats("side", {kLength, kOut}, wave(kLength * kOut)).node("Add", {"x", "pos"}, {"a"});
  if (heads) {
    model.floats("heads", {kLength, kIn, kOut}, wave(kLength * kIn * kOut))
        .node("Einsum", {"a", "heads"}, {"b"},
              {net::test::text_attribute("equation", "nij,ijk->nik")});
  } else {
    model.node("Einsum", {"a"}, {"c"}, {net::test::text_attribute("equation", "nij->ni")})
        .node("Unsqueeze", {"c", model.wholes({2})}, {"b"});
  }
  model.node("Add", {"b", "side"}, {"d"})
      .node("ReduceMean", {"d"}, {"y"},
            {net::test::attribute("axes", std::vector<std::int64_t>{1}),
             net::test::attribute("keepdims", std::int64_t{0})})
      .output("y");
  w.file("t.onnx", model.file());
  w.array("x.npy", {kSamples, kLength, kIn}, wave(kSamples * kLength * kIn));
  std::vector<std::int64_t> y;
  for (std::int64_t i = 0; i < kSamples; ++i) y.push_back(i % kOut);
  write_npy(w / "y.npy", ArrayType::int64, {kSamples}, y.data());
  api::TrainRequest asked{
      .net = w / "t.onnx",
      .data = "npy:x=" + (w / "x.npy") + ",y=" + (w / "y.npy") + ",test=40,validation=20,classes=3",
      .out = w / "o",
      .learning_rate = 0.01};
  asked.train.batch = 20;
  asked.train.epochs = 2;
  return asked;
}

}  // namespace

TEST_CASE("weights that a file has as constants are trained, tables are named", "[fast]") {
  const Workplace w;
  api::TrainRequest asked = with_table(w, true);
  asked.recipe = "w4a8";
  const api::Trained trained = api::train(asked, w.context);
  CHECK_THAT(w.said,
             Contains("note: 2 tensors of the file stay untrained, 21 of 57 numbers: pos, side\n"));
  const auto differs = [&](const std::string& tensor) {
    const net::Checkpoint own = net::read_safetensors(trained.checkpoint, /*bytes=*/true);
    const auto value = [&](const std::string& name) {
      return std::ranges::find(own.tensors, name, &net::NamedTensor::name)->value.data;
    };
    return value(tensor + ".value") != value("tuned_from/" + tensor + ".value");
  };
  CHECK(differs("constant"));
  CHECK_FALSE(differs("pos"));
  // Training goes on from the checkpoint with the same parameters.
  asked.net = trained.checkpoint;
  asked.out = w / "p";
  CHECK(api::train(asked, w.context).compared->before.loss == trained.compared->after.loss);
}

TEST_CASE("a network without anything to train is refused", "[fast]") {
  const Workplace w;
  CHECK_THAT(message_of([&] { api::train(with_table(w, false), w.context); }),
             Contains("network t: expected a parameter that training changes, found none; what its "
                      "operators read may be buffers (2 tensors of the file stay untrained, 21 of "
                      "21 numbers: pos, side)"));
  CHECK_FALSE(std::filesystem::exists(w / "o"));
}

TEST_CASE("what training learned of scales is in the checkpoint", "[fast]") {
  for (const std::string rule : {"lsq", "pact"}) {
    INFO(rule);
    const Workplace w;
    api::TrainRequest asked = small_onnx(w, true);
    asked.recipe = R"j({"roles": {
        "weight": {"format": "int3", "granularity": "channel", "scale": "mse"},
        "activation": {"format": "int4", "zero_point": "calibrated"}}, "learn": ")j" +
                   rule + "\"}";
    const api::Trained trained = api::train(asked, w.context);
    CHECK(trained.compared->after.loss < trained.compared->before.loss);
    const policies::FixedRanges ranges = policies::checkpoint_ranges(trained.checkpoint);
    REQUIRE(ranges.size() == 2);
    std::size_t channels = 0;
    for (const auto& [layer, of] : ranges) {
      CHECK(of.activation.has_value());
      channels += of.weight.size();
    }
    CHECK(channels == (rule == "lsq" ? 12 + 3 : 0));
    // Inference reads the scales that training ended with.
    api::Session session = api::open(
        {.net = trained.checkpoint, .data = asked.data, .recipe = asked.recipe}, w.context);
    CHECK(*api::evaluate(session, {.predictions = false}, w.context).row.metrics.loss ==
          Approx(trained.tested.loss).epsilon(1e-6));
    // A run that stops goes on with the same bytes.
    const std::string whole = read_file(trained.checkpoint);
    asked.out = w / "again";
    asked.save_every = 3;
    struct Stop {};
    api::TrainHooks hooks;
    hooks.on_step = [](std::int64_t step, double) {
      if (step == 16) throw Stop();
    };
    CHECK_THROWS_AS(api::train(asked, w.context, hooks), Stop);
    CHECK(read_file(api::train(asked, w.context).checkpoint) == whole);
  }
}

}  // namespace train_test
