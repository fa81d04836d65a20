// Predictions are counted once per distinct tensor, and every failure is listed.
#include "experiments/report/verdicts.hpp"

#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace verdicts_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

Json tensor(const char* layer, double ks, bool accepted, double measured, double fitted) {
  return {{"layer", layer},
          {"role", "weight"},
          {"format", "int4"},
          {"n", 100},
          {"measured_mse", 2e-6},
          {"measured_db", measured},
          {"empirical_mse", 2e-6},
          {"empirical_db", measured},
          {"fitted",
           {{"family", "normal"},
            {"ks", ks},
            {"threshold", 0.166},
            {"accepted", accepted},
            {"db", fitted}}}};
}

Verdicts judge(const std::vector<Json>& tensors, const char* rounding = "rne") {
  Json row = sample::row(0, &sample::kFormats[10], nullptr, "u");
  row["point"]["recipe"]["roles"]["weight"]["rounding"] = rounding;
  row["predicted"]["tensors"] = tensors;
  const std::vector<Json> rows = {row, row};
  return judge_predictions(report_rows_of(rows));
}

}  // namespace

TEST_CASE("fits are accepted, refused and judged at half a decibel", "[fast]") {
  const Verdicts v = judge({tensor("a", 0.05, true, 20, 20.5), tensor("b", 0.05, true, 20, 20.51),
                            tensor("c", 0.4, false, 20, 30)});
  CHECK(v.weight_tensors == 3);
  CHECK(v.weight_accepted == 2);
  CHECK(v.fitted.compared() == 2);
  CHECK(v.fitted.holds == 1);
  REQUIRE(v.refused.size() == 1);
  CHECK(v.refused[0].layer == "c");
  CHECK(v.refused[0].distance == 0.4);
  REQUIRE(v.failed.size() == 1);
  CHECK(v.failed[0].layer == "b");
}

TEST_CASE("a tensor refused once is refused, with its largest distance", "[fast]") {
  const Verdicts v = judge({tensor("a", 0.05, true, 20, 20), tensor("a", 0.3, false, 21, 20),
                            tensor("a", 0.2, false, 22, 20)});
  CHECK(v.weight_tensors == 1);
  CHECK(v.weight_accepted == 0);
  REQUIRE(v.refused.size() == 1);
  CHECK(v.refused[0].distance == 0.3);
}

TEST_CASE("a tensor without any fit is listed without a distance", "[fast]") {
  Json none = tensor("a", 0, false, 20, 20);
  none["fitted"] = nullptr;
  const Verdicts v = judge({none});
  REQUIRE(v.refused.size() == 1);
  CHECK_FALSE(v.refused[0].distance);
  CHECK(v.fitted.compared() == 0);
}

TEST_CASE("empirical predictions hold within 1e-9 and only where rounding is deterministic",
          "[fast]") {
  Json near = tensor("a", 0, true, 20, 20), far = tensor("b", 0, true, 20, 20);
  near["empirical_mse"] = 2e-6 * (1 + 0.9e-9);
  far["empirical_mse"] = 2e-6 * (1 + 1.2e-9);
  const Verdicts v = judge({near, far});
  CHECK(v.empirical.compared() == 2);
  CHECK(v.empirical.holds == 1);
  REQUIRE(v.failed.size() == 1);
  CHECK(v.failed[0].what == "empirical");
  CHECK(judge({near, far}, "sr(8)").empirical.undecided == 2);
}

TEST_CASE("whether rounding is random is read of the tensor's own role and layer", "[fast]") {
  Json row = sample::row(0, &sample::kFormats[10], nullptr, "u");
  row["predicted"]["tensors"] = {tensor("a", 0, true, 20, 20), tensor("b", 0, true, 20, 20)};
  Json& recipe = row["point"]["recipe"];
  // Neither another role nor a text that merely looks like it.
  recipe["roles"]["gradient"] = {{"format", "int8"}, {"rounding", "sr(8)"}};
  recipe["note"] = "\"rounding\":\"sr(8)\"";
  const auto empirical = [&] { return judge_predictions(report_rows_of({row})).empirical; };
  CHECK(empirical().holds == 2);
  recipe["layers"] = {{{"match", "b*"}, {"roles", {{"weight", {{"rounding", "sr(8)"}}}}}}};
  CHECK(empirical().holds == 1);
  CHECK(empirical().undecided == 1);
  recipe["layers"][0]["roles"]["weight"]["rounding"] = "of another version";
  CHECK(empirical().undecided == 1);
}

TEST_CASE("layers and outputs hold within 1 dB and fail beyond", "[fast]") {
  Json row = sample::row(0, &sample::kFormats[10], nullptr, "u");
  row["metrics"]["sqnr_db"] = 20;
  row["predicted"]["sqnr_db"] = 21;
  row["layers"] = {{{"name", "a"}, {"sqnr_db", 10}, {"predicted_db", 11}},
                   {{"name", "b"}, {"sqnr_db", 10}, {"predicted_db", 6}},
                   {{"name", "c"}, {"sqnr_db", 10}, {"predicted_db", 12}},
                   {{"name", "d"}, {"sqnr_db", nullptr}, {"predicted_db", 6}}};
  const std::vector<Json> rows = {row};
  const Verdicts v = judge_predictions(report_rows_of(rows));
  CHECK(v.outputs.compared() == 1);
  CHECK(v.outputs.largest == Approx(1));
  CHECK(v.layers.holds == 1);
  CHECK(v.layers.undecided == 0);
  CHECK(v.layers.fails == 2);
  CHECK(v.layers.median == Approx(2));
  CHECK(v.layers.largest == Approx(4));
  REQUIRE(v.failed.size() == 2);
  CHECK(v.failed[0].what == "layer");
  CHECK(v.failed[0].layer == "b");
}

TEST_CASE("a verdict that the row records is the one that counts", "[fast]") {
  Json t = tensor("a", 0.05, true, 20, 20);
  t["verdict"] = "fails";
  t["fitted"]["verdict"] = "fails";
  Json row = sample::row(0, &sample::kFormats[10], nullptr, "u");
  row["predicted"] = {{"sqnr_db", 20}, {"verdict", "undecided"}, {"tensors", Json::array({t})}};
  row["metrics"]["sqnr_db"] = 20;
  row["layers"] = {{{"name", "a"}, {"sqnr_db", 10}, {"predicted_db", 10}, {"verdict", "fails"}}};
  const std::vector<Json> rows = {row};
  const Verdicts v = judge_predictions(report_rows_of(rows));
  CHECK(v.empirical.fails == 1);
  CHECK(v.fitted.fails == 1);
  CHECK(v.layers.fails == 1);
  CHECK(v.outputs.undecided == 1);
  CHECK(v.failed.size() == 3);
}

TEST_CASE("a format without fits refuses no tensor that another format's fit accepts", "[fast]") {
  Json none = tensor("fc1", 0, false, 30, 30);
  none["fitted"] = nullptr;
  const Json fits = tensor("fc1", 0.01, true, 30, 30.1);
  for (const auto& tensors : {std::vector<Json>{none, fits}, std::vector<Json>{fits, none}}) {
    const Verdicts v = judge(tensors);
    CHECK(v.weight_tensors == 1);
    CHECK(v.weight_accepted == 1);
    CHECK(v.refused.empty());
  }
  CHECK(judge({none}).refused.size() == 1);
}

}  // namespace verdicts_test
