// A row names networks and data, never files, and is the same whatever path led to them.
#include "experiments/engine/run_point.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include "emu/net/ops/fixed_quantizer.hpp"
#include "experiments/predict/version.hpp"
#include "formats/storage/json.hpp"
#include "policies/numerics/overflow_sample.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace run_point_test {

using namespace numemu::experiments;

TEST_CASE("rows are free of paths", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto point = [](const std::string& net, const std::string& data) {
    return parse_sweep(
               R"({"numemu_sweep": 1, "net": ")" + net + R"(", "data": ")" + data +
                   R"(", "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}}}})",
               "folder/s.json")
        .points[0];
  };
  const auto by_file = identify(point("../some/where/mlp.safetensors", "mnist:/some/where"), bench),
             by_name = identify(point("mlp", "mnist"), bench);
  CHECK(numemu::json_of(by_file) == numemu::json_of(by_name));
  CHECK(by_file.net == "mlp");
  CHECK(by_file.eval_images == 40);
  CHECK(numemu::json_of(by_file).dump().find("where") == std::string::npos);
}

TEST_CASE("a row of images has the error of its SQNR and no bits per character", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const Point point =
      parse_sweep(R"({"numemu_sweep": 1, "grid": {"roles.weight.format": ["mxfp4"]}})", "s.json")
          .points[0];
  const auto row = to_json(run_point(point, bench));
  CHECK(row["metrics"]["sqnr_error_db"].get<double>() > 0);
  CHECK(row["metrics"]["sqnr_db"].get<double>() > 0);
  CHECK_FALSE(row["metrics"].contains("bits_per_character"));
  CHECK(row["predicted"]["tensors"].size() == 3);
  CHECK(row["predicted"]["tensors"][0]["format"] == "mxfp4");
  CHECK_FALSE(row.contains("notes"));
}

TEST_CASE("a row tells of the network's own quantizers, which its baseline has too", "[fast]") {
  namespace net = numemu::net;
  TrainedNet trained = testing::small_net();
  net::Tensor scale({1});
  scale.data = {0.25f};
  trained.graph.add("q", std::make_unique<net::FixedQuantizer>(net::FixedQuantizerOptions{}, scale,
                                                               net::Tensor({1})));
  Workbench bench(testing::small_dataset(), std::move(trained), 40);
  const Point point = parse_sweep(R"({"numemu_sweep": 1, "points": [{}]})", "s.json").points[0];
  const auto row = to_json(run_point(point, bench));
  CHECK(row["bits"]["weight"] == 32);
  CHECK(row["baseline_has"] == "1 quantizer of its own");
  REQUIRE(row.contains("notes"));
  CHECK_THAT(row["notes"][0].get<std::string>(),
             Catch::StartsWith("The network has 1 quantizer of its own, which the reference "
                               "(float32) contains too"));
}

namespace {

/// Another set's samples, some of which begin with NaN.
class Holes final : public numemu::net::Samples {
 public:
  Holes(const numemu::net::Dataset& whole, std::int64_t first, std::int64_t end)
      : whole_(whole.samples()), first_(first), end_(end) {
    facts_ = whole_->facts();
  }
  void read(numemu::net::Part part, std::int64_t id, const numemu::net::AugmentDraw* draw, float* x,
            numemu::net::TargetSpan targets) const override {
    whole_->read(part, id, draw, x, targets);
    if (part == numemu::net::Part::train && id >= first_ && id < end_) x[0] = NAN;
  }

 private:
  std::shared_ptr<const Samples> whole_;
  std::int64_t first_, end_;
};

}  // namespace

TEST_CASE("calibration samples with NaN are left out of SQNR and predictions, and said", "[fast]") {
  const numemu::net::Dataset whole = testing::small_dataset();
  const auto bench_of = [&](std::int64_t first, std::int64_t end) {
    return Workbench({"small", std::make_shared<Holes>(whole, first, end)}, testing::small_net(),
                     40);
  };
  const Point point =
      parse_sweep(R"({"numemu_sweep": 1, "grid": {"roles.weight.format": ["int8"]}})", "s.json")
          .points[0];
  Workbench without(whole, testing::small_net(), 40), holes = bench_of(0, 2);
  const std::int64_t read = without.reference.samples();
  CHECK(holes.reference.samples() == read - 2);
  const auto expected = to_json(run_point(point, without)), row = to_json(run_point(point, holes));
  // Two of hundreds of samples change the figure by less than this.
  constexpr double kNear = 0.2;
  CHECK(row["metrics"]["sqnr_db"].get<double>() ==
        Approx(expected["metrics"]["sqnr_db"].get<double>()).margin(kNear));
  CHECK(row["predicted"]["sqnr_db"].is_number());
  CHECK(row["notes"][0] ==
        "SQNR and predictions leave out 2 of the first " + std::to_string(read) +
            " calibration samples, which hold NaN or infinite numbers; the first is sample 0.");
  CHECK_FALSE(expected.contains("notes"));
  // Behind what the reference reads nothing is left out.
  CHECK(bench_of(read, read + 2).reference.samples() == read);
  CHECK_THROWS_WITH(bench_of(0, read), Catch::Contains("data set small: expected finite numbers"));
}

TEST_CASE("a row says what its prediction leaves out, and float32 has no verdict", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto row_of = [&](const std::string& base) {
    return to_json(run_point(
        parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1)" + base + "}}", "s.json")
            .points[0],
        bench));
  };
  const auto edges = row_of(
      R"j(, "layers": [{"match": "fc2", "edges": "static"}], "roles": {"activation": {"format": "int8"}})j");
  CHECK(edges["predicted"]["sqnr_db"].is_null());
  CHECK(edges["predicted"]["verdict"].is_null());
  CHECK(edges["predicted"]["left_out"] ==
        "the rounding of tensors between operators (edges), in fc2, is not modelled");
  CHECK_FALSE(edges["predicted"].contains("accuracy"));
  CHECK(edges["layers"][0]["predicted_db"].is_number());
  CHECK_FALSE(edges["layers"][0].contains("left_out"));
  CHECK(edges["layers"][1]["predicted_db"].is_null());
  CHECK(edges["layers"][1]["left_out"] == edges["predicted"]["left_out"]);
  CHECK(edges["layers"][1]["sqnr_db"].is_number());
  const auto tiles = row_of(
      R"j(, "roles": {"weight": {"format": "int8", "granularity": "tile", "block": [4, 8]}})j");
  CHECK(tiles["predicted"]["sqnr_db"].is_number());
  CHECK(tiles["predicted"]["tensors"].size() == 3);
  for (const auto& tensor : tiles["predicted"]["tensors"]) CHECK(tensor["verdict"] == "holds");
  const auto plain = row_of("");
  CHECK(plain["predicted"]["verdict"].is_null());
  CHECK(plain["layers"][0]["verdict"].is_null());
  CHECK_FALSE(plain["predicted"].contains("left_out"));
  CHECK_FALSE(plain.contains("notes"));
  const auto unit = row_of(R"j(, "roles": {"weight": {"format": "group(int8,4096,float16)"
  }
  },
      "gemms": {"fprop": {"unit": "neutral.mac.hfp16_e6m9.rne"}})j");
  CHECK_FALSE(unit["predicted"].contains("ignores"));
  CHECK(unit["predicted"]["version"] == kPredictionVersion);
  CHECK(unit["notes"].size() == 2);  // lines of 64 and 128 elements; of 256 cost under 1 % more
}

/// The small set with four calibration samples.
class FewToCalibrate final : public numemu::net::Samples {
 public:
  FewToCalibrate() {
    facts_ = own_.samples()->facts();
    facts_.sizes.calibration = 4;
  }
  void read(numemu::net::Part part, std::int64_t id, const numemu::net::AugmentDraw* draw, float* x,
            numemu::net::TargetSpan targets) const override {
    own_.samples()->read(part, id, draw, x, targets);
  }

 private:
  numemu::net::Dataset own_ = testing::small_dataset();
};

TEST_CASE("a row says that it was calibrated on fewer samples than asked for", "[fast]") {
  Workbench bench({"few", std::make_shared<FewToCalibrate>()}, testing::small_net(), 20);
  const auto notes = [&](const std::string& role, const std::string& samples) {
    const Point point =
        parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {")" + role +
                        R"(": {"format": "int8"}}, "calibrate": {"samples": )" + samples + "}}}",
                    "s.json")
            .points[0];
    const auto row = to_json(run_point(point, bench));
    return row.contains("notes") ? row["notes"].dump() : "";
  };
  const std::string told = "Calibrated on 4 samples";
  CHECK(notes("activation", "511").find(told) != std::string::npos);
  CHECK(notes("activation", "4").find(told) == std::string::npos);
  CHECK(notes("activation", "512").find(told) != std::string::npos);
  CHECK(notes("weight", "511").find(told) == std::string::npos);  // nothing is calibrated
}

TEST_CASE("a row says where NaN and infinities arise, and only then", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto row_on = [&](const std::string& unit) {
    return to_json(run_point(
        parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {"weight":
                    {"format": "float8_e5m2"}, "activation": {"format": "float8_e5m2"}},
                    "gemms": {"fprop": {"unit": ")" +
                        unit + R"("}}}})",
                    "s.json")
            .points[0],
        bench));
  };
  CHECK_FALSE(row_on("f32.sequential").contains("not_finite"));
  // Codes are scaled to 57344 each; sums of such products leave float16 at once.
  const auto row = row_on("neutral.mac.float16");
  const auto& test = row["not_finite"]["test"];
  CHECK(test["samples"] == 40);
  CHECK(test["outputs"]["of"] == 400);
  CHECK(test["outputs"]["nan"].get<int>() + test["outputs"]["infinite"].get<int>() > 0);
  const auto& first = test["layers"][0];
  CHECK(first["name"] == row["layers"][0]["name"]);
  CHECK(first["inherited"] == 0);
  CHECK(first["causes"][0] == "accumulator overflow (float16, at most 6.55e+04)");
  CHECK(row["layers"][0]["sqnr_db"].is_null());
  CHECK(row["layers"][0]["verdict"].is_null());
  CHECK_THAT(row["layers"][0]["left_out"].get<std::string>(),
             Catch::Contains("the overflow of neutral.mac.float16.rne"));
  bool passed_on = false;
  for (const auto& layer : test["layers"])
    passed_on = passed_on || layer["inherited"].get<int>() > 0;
  CHECK(passed_on);
  CHECK(row["not_finite"].contains("reference"));
}

TEST_CASE("each share of saturated results stands beside the prediction of the same", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto row_on = [&](const std::string& unit) {
    return run_point(
        parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {"weight":
                    {"format": "int8"}, "activation": {"format": "int8"}},
                    "gemms": {"fprop": {"unit": ")" +
                        unit + R"("}}}})",
                    "s.json")
            .points[0],
        bench);
  };
  const Row stops = row_on("neutral.mac.int14.saturate");
  const RowLayer& first = stops.layers[0];
  REQUIRE(first.saturated_counts);
  const RowSaturation& counts = *first.saturated_counts;
  CHECK(counts.on_the_way > 0);
  CHECK(counts.at_end.value() > 0);
  // The measured figures are those of the row's counts.
  CHECK_THAT(first.left_out,
             Catch::Contains("(saturated on the way: " +
                             numemu::policies::counted_share(counts.on_the_way, counts.sampled) +
                             " results, predicted ") &&
                 Catch::Contains("; ended at a register's end: " +
                                 numemu::policies::counted_share(*counts.at_end, *counts.results) +
                                 " results, predicted "));
  CHECK(stops.predicted.left_out == first.left_out);
  const std::string note = "Results of neutral.mac.int14.saturate that saturated on the way";
  CHECK(std::ranges::any_of(stops.notes,
                            [&](const std::string& text) { return text.starts_with(note); }));
  const Row wraps = row_on("neutral.mac.int14.wrap");
  REQUIRE(wraps.layers[0].saturated_counts);
  CHECK_FALSE(wraps.layers[0].saturated_counts->results.written());
  CHECK_THAT(wraps.layers[0].left_out,
             Catch::Contains("(wrapped: ") && !Catch::Contains("saturated"));
  for (const RowLayer& layer : row_on("neutral.mac.int32.saturate").layers)
    CHECK_FALSE(layer.saturated_counts.written());
}

TEST_CASE("infinities of a unit are counted before the role output takes them away", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto counts = [&](const std::string& output) {
    return to_json(run_point(
        parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {
                         "weight": {"format": "float8_e5m2"}, "activation": {"format":
                         "float8_e5m2"})" +
                        output + R"(}, "gemms": {"fprop": {"unit": "neutral.mac.float16"}}}})",
                    "s.json")
            .points[0],
        bench))["not_finite"]["test"];
  };
  const auto bare = counts(""), stored = counts(R"(, "output": {"format": "bfloat16"})");
  REQUIRE(bare["layers"][0]["infinite"].get<int>() > 0);
  CHECK(stored["layers"][0] == bare["layers"][0]);  // its operands are the same
  CHECK(stored["outputs"]["infinite"] == 0);
  // A role that makes infinities itself.
  const auto row = to_json(run_point(
      parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {"output": {
                  "format": "float6_e2m3fn", "scale": "none", "overflow": "ieee"}}}})",
                  "s.json")
          .points[0],
      bench));
  CHECK_FALSE(row.contains("not_finite"));  // no place for NaN or infinities
  const auto own = to_json(run_point(
      parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {"output": {
                  "format": "e2m2+nan1", "scale": "none", "overflow": "ieee"}}}})",
                  "s.json")
          .points[0],
      bench))["not_finite"]["test"]["layers"];
  REQUIRE_FALSE(own.empty());
  CHECK(own[0]["causes"][0] == "overflow of the role output (e2m2+nan1, overflow ieee)");
}

TEST_CASE("reasons of NaN are possible ones, and no prediction stands beside it", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto row_of = [&](const std::string& roles, const std::string& unit) {
    return to_json(
        run_point(parse_sweep(R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {)" +
                                  roles + R"(}, "gemms": {"fprop": {"unit": ")" + unit + R"("}}}})",
                              "s.json")
                      .points[0],
                  bench));
  };
  // Operands without infinities: no sum of them overflows, and no infinities are subtracted.
  const auto nan =
      row_of(R"("activation": {"format": "e1m1+nan1", "overflow": "ieee", "scale": "none"})",
             "f32.sequential");
  std::size_t born = 0;
  for (const auto& layer : nan["not_finite"]["test"]["layers"]) {
    if (layer["inherited"].template get<int>() > 0) continue;
    ++born;
    CHECK(layer["causes"].size() == 1);
    CHECK(layer["causes"][0] == "operand overflow (activation e1m1+nan1, overflow ieee)");
  }
  CHECK(born > 0);
  std::size_t withheld = 0;
  for (const auto& tensor : nan["predicted"]["tensors"]) {
    if (tensor["measured_db"].is_number()) continue;
    ++withheld;
    CHECK(tensor["verdict"] == "withheld");
    CHECK(tensor["empirical_db"].is_null());
    if (!tensor["fitted"].is_null()) {
      CHECK(tensor["fitted"]["db"].is_null());
      CHECK(tensor["fitted"]["verdict"] == "withheld");
    }
  }
  CHECK(withheld > 0);
  // The scale absmax keeps every weight in range: its overflow is not a reason.
  const auto sums = row_of(R"("weight": {"format": "float8_e5m2", "overflow": "ieee"},
                              "activation": {"format": "float8_e5m2"})",
                           "neutral.mac.float16");
  CHECK(sums["not_finite"]["test"]["layers"][0]["causes"][0] ==
        "accumulator overflow (float16, at most 6.55e+04)");
}

TEST_CASE("without predictions a row is another point's, with the same measurements", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  SweepConfig config = parse_sweep(
      R"({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int4"}}}})",
      "s.json");
  const auto with = to_json(run_point(config.points[0], bench));
  turn_predictions_off(config);
  CHECK(config.json["predictions"] == false);
  const auto without = to_json(run_point(config.points[0], bench));
  CHECK(without["point"]["predictions"] == false);
  CHECK(without["key"] != with["key"]);
  CHECK(without["metrics"] == with["metrics"]);
  CHECK(without["bits"] == with["bits"]);
  CHECK(without["predicted"] == numemu::Json{{"sqnr_db", nullptr},
                                             {"verdict", nullptr},
                                             {"tensors", numemu::Json::array()},
                                             {"left_out", "predictions are turned off"}});
  for (std::size_t i = 0; i < with["layers"].size(); ++i) {
    const auto &layer = without["layers"][i], &predicted = with["layers"][i];
    CHECK(predicted["predicted_db"].is_number());
    CHECK(layer["predicted_db"].is_null());
    CHECK(layer["verdict"].is_null());
    CHECK(layer["sqnr_db"] == predicted["sqnr_db"]);
  }
  // The canonical configuration reads back as itself.
  const SweepConfig again = parse_sweep(config.json.dump(), "sweep.json");
  CHECK(again.json == config.json);
  CHECK_FALSE(makes_predictions(again.points[0]));
}

TEST_CASE("points beside each other give the rows of points one after the other", "[fast]") {
  const SweepConfig config = parse_sweep(
      R"~({"numemu_sweep": 1, "base": {"numemu_recipe": 1, "calibrate": {"samples": 64}, "roles": {
              "weight": {"format": "int8"}, "activation": {"format": "int8"}}},
            "grid": {"calibrate.rule": ["absmax", "kl", "mse"], "roles.weight.format": ["int4", "e2m3"]},
            "points": [{"roles.activation.format": "mxfp4"}]})~",
      "s.json");
  const Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  std::vector<std::string> alone, beside(config.points.size());
  for (const Point& point : config.points) alone.push_back(to_json(run_point(point, bench)).dump());
  PointCache shared(/*several=*/true);
  const auto every_second = [&](std::size_t first) {
    for (std::size_t i = first; i < config.points.size(); i += 2)
      beside[i] = to_json(run_point(config.points[i], bench, shared)).dump();
  };
  std::thread other(every_second, 1);
  every_second(0);
  other.join();
  CHECK(beside == alone);
}

}  // namespace run_point_test
