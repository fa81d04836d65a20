// Updates and calibration: defaults, spellings, refusals.
#include "policies/recipe/update_json.hpp"

#include "emu/net/train/optimizer.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace update_json_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

UpdatePolicy update(const std::string& text) {
  const Json json = parse_json(text, "r.json");
  return read_update(JsonReader(json, "r.json"));
}
CalibrationPolicy calibration(const std::string& text) {
  const Json json = parse_json(text, "r.json");
  return read_calibration(JsonReader(json, "r.json"));
}

}  // namespace

TEST_CASE("update: every default is written out", "[fast]") {
  CHECK(update_json(update("null")) == Json{{"optimizer", "adam"},
                                            {"master", "float32"},
                                            {"rounding", "rne"},
                                            {"loss_scale", "none"}});
  CHECK(update("null").master == nullptr);
  CHECK(calibration_json(calibration("null")) == Json{{"rule", "absmax"}, {"samples", 512}});
}

TEST_CASE("update: optimizers are those of the trainer", "[fast]") {
  for (const std::string& name : net::optimizer_names())
    CHECK(update(Json{{"optimizer", name}}.dump()).optimizer == name);
}

TEST_CASE("update: masters and their rounding", "[fast]") {
  const UpdatePolicy policy = update(R"j({"master": "bf16", "rounding": "sr(16,c)"})j");
  CHECK(policy.master->name == "bfloat16");
  CHECK(policy.rounding == parse_rounding("sr(16)"));
  CHECK(update_json(policy)["master"] == "bfloat16");
  CHECK(update_json(policy)["rounding"] == "sr(16)");
}

TEST_CASE("update: loss scales", "[fast]") {
  const auto scale = [](const std::string& text) {
    return update(Json{{"loss_scale", text}}.dump()).loss_scale;
  };
  CHECK(scale("static(1024)").kind == LossScale::Kind::fixed);
  CHECK(scale("static(1024)").value == 1024);
  CHECK(scale("dynamic").kind == LossScale::Kind::dynamic);
  CHECK(scale("dynamic").value == 65536);
  CHECK(scale("dynamic").growth_interval == 2000);
  CHECK(scale("dynamic(256, 10)").value == 256);
  CHECK(scale("dynamic(256, 10)").growth_interval == 10);
  const std::pair<const char*, const char*> spellings[] = {{"dynamic", "dynamic(65536,2000)"},
                                                           {"static( 0.5 )", "static(0.5)"},
                                                           {"dynamic(1e3,10)", "dynamic(1000,10)"},
                                                           {"none", "none"}};
  for (const auto& [text, spelling] : spellings) {
    const Json json = update_json(update(Json{{"loss_scale", text}}.dump()));
    CHECK(json["loss_scale"] == spelling);
    CHECK(update_json(update(json.dump())) == json);
  }
}

TEST_CASE("calibration: rules and their arguments", "[fast]") {
  const auto rule = [](const std::string& text) {
    return calibration(Json{{"rule", text}}.dump());
  };
  CHECK(rule("percentile(99.9)").rule == CalibrationPolicy::Rule::percentile);
  CHECK(rule("percentile(99.9)").percentile == 99.9);
  CHECK(rule("mse").rule == CalibrationPolicy::Rule::mse);
  CHECK(rule("kl").rule == CalibrationPolicy::Rule::kl);
  CHECK(rule("dynamic").rule == CalibrationPolicy::Rule::dynamic);
  for (const char* text : {"absmax", "percentile(99.99)", "mse", "kl", "dynamic"})
    CHECK(calibration_json(rule(text))["rule"] == text);
}

TEST_CASE("update and calibration: wrong values are refused by name", "[fast]") {
  const std::pair<const char*, const char*> updates[] = {
      {R"({"optimiser": "sgd"})", "did you mean 'optimizer'"},
      {R"({"optimizer": "adagrad"})", "r.json: optimizer: unknown optimizer 'adagrad'"},
      {R"({"master": "float17"})", "master: unknown format"},
      {R"({"master": "int8"})", "master: expected float32 or a signed floating format"},
      {R"({"master": "float64"})", "master: expected float32 or a signed floating format"},
      {R"({"master": "mxfp4"})", "master: 'mxfp4' is a block format"},
      {R"j({"rounding": "sr(8)"})j", "rounding: expected rne, as the master weights are float32"},
      {R"({"master": "bfloat16", "rounding": "srr"})", "rounding: unknown rounding"},
      {R"({"loss_scale": "dynmic"})", "did you mean 'dynamic'?; expected none, static(V)"},
      {R"({"loss_scale": "static"})", "loss_scale: 'static' has other arguments"},
      {R"j({"loss_scale": "static(0)"})j", "loss_scale: 'static' has other arguments"},
      {R"j({"loss_scale": "static(1e39)"})j", "loss_scale"},
      {R"j({"loss_scale": "dynamic(1024)"})j", "loss_scale: 'dynamic' has other arguments"},
      {R"j({"loss_scale": "dynamic(1024,0)"})j", "loss_scale: 'dynamic' has other arguments"},
      {R"j({"loss_scale": "none(1)"})j", "loss_scale: 'none' has other arguments"}};
  for (const auto& [text, message] : updates) {
    INFO(text);
    CHECK_THROWS_WITH(update(text), Contains(message));
  }
  const std::pair<const char*, const char*> calibrations[] = {
      {R"({"rule": "absmx"})", "rule: unknown calibration rule 'absmx'; did you mean 'absmax'"},
      {R"({"rule": "entropy-ish"})",
       "rule: unknown calibration rule 'entropy-ish'; expected absmax, percentile(P)"},
      {R"({"rule": "percentile"})", "rule: 'percentile' has other arguments; expected absmax"},
      {R"j({"rule": "percentile(0)"})j", "0 < P <= 100"},
      {R"j({"rule": "percentile(101)"})j", "0 < P <= 100"},
      {R"j({"rule": "mse(2)"})j", "rule: 'mse' has other arguments"},
      {R"({"samples": 0})", "samples: expected an integer from 1"}};
  for (const auto& [text, message] : calibrations) {
    INFO(text);
    CHECK_THROWS_WITH(calibration(text), Contains(message));
  }
}

}  // namespace update_json_test
