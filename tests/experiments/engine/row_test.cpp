// Rows read and written: every member keeps its place and its text, and what no struct has is kept.
#include "experiments/engine/row.hpp"

#include "formats/version.hpp"
#include "policies/canonical_json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

namespace row_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;

namespace {

/// Every key that this program writes, in its order.
const char* const kWhole =
    R"({"point":{"net":"n","data":"d","eval_images":4,"recipe":{"roles":{"weight":null,)"
    R"("activation":null},"gemms":{"fprop":{"unit":"u"}}}},"key":"k","recipe_name":"int8",)"
    R"("bits":{"weight":8.5,"activation":32.0,"product_weight":8.0},"baseline_has":"a quantizer",)"
    R"("metrics":{"top1":0.5,"n":4,"ci95":[0.25,0.75],"loss":null,"baseline_top1":1.0,)"
    R"("difference":-0.5,"difference_ci95":[null,null],"gained":0,"lost":2,"perplexity":3.5,)"
    R"("bits_per_character":1.5,"baseline_bits_per_character":1.25,"sqnr_db":1e-07,)"
    R"("sqnr_error_db":null,"sqnr_ci95":null,"sqnr_samples":2,"sqnr_without_mean_db":12.5,)"
    R"("sqnr_gained_db":12.5,"gain":1.0},"scores":[{"name":"top5","value":1.0,"ci95":[0.5,1.0],)"
    R"("baseline":1.0,"difference":0.0,"difference_ci95":[0.0,0.5],"resampled":"samples",)"
    R"("exact":["ci95"],"why_no_value":"x","why_no_baseline":"y"},{"name":"auc","value":null,)"
    R"("ci95":[null,null],"baseline":1.0,"difference":null,"difference_ci95":[null,null],)"
    R"("gained":1,"lost":2}],"answers":{"n":4,"right":"CQ=="},"predicted":{"version":6,)"
    R"("sqnr_db":12.0,"sqnr_error_db":0.5,"sqnr_gained_db":null,"gain":1.0,"verdict":"holds",)"
    R"("tensors":[{"layer":"c","role":"weight","format":"int8","n":9,"measured_mse":1e-12,)"
    R"("measured_db":40.0,"standard_error":0.0,"empirical_mse":null,"empirical_db":null,)"
    R"("verdict":"withheld","fitted":{"family":"normal","ks":0.25,"threshold":0.5,)"
    R"("accepted":true,"db":39.0,"verdict":"undecided"}},{"layer":"d","role":"activation",)"
    R"("format":"int8","n":9,"measured_mse":0.5,"verdict":null,"fitted":null}],)"
    R"("left_out":"masks","ignores":"the rounding of u"},"layers":[{"name":"c","gemm":"fprop",)"
    R"("unit":"u","sqnr_db":12.5,"sqnr_ci95":[12.0,13.0],"predicted_db":null,"verdict":null,)"
    R"("overflow":0.0,"underflow":0.25,"invalid":0.0,"saturated":0.5,)"
    R"("saturated_counts":{"sampled":8,"on_the_way":3,"results":64,"at_end":32},)"
    R"("left_out":"masks"}],)"
    R"("notes":["one"],"note_kinds":["ranges"],"fixed_activations":1,"not_finite":{"test":)"
    R"({"samples":4,"outputs":{"of":40,"nan":1,"infinite":2},"layers":[{"name":"c","of":9,)"
    R"("nan":1,"infinite":0,"inherited":1,"causes":["inf - inf"]}]},"reference":{"samples":4,)"
    R"("outputs":{"of":40,"nan":0,"infinite":0},"layers":[]}},"version":"3","losses":{)"
    R"("file":"f","digest":"e","score":"mse"},"gate":{"target":"t","metric":"top1","value":0.5,)"
    R"("required":0.99,"margin":-0.49,"margin_ci99":[-0.5,0.25],"images":4,"images_needed":null,)"
    R"("verdict":"undecided"},"digest":"0"})";

}  // namespace

TEST_CASE("rows: what is read is written with the same bytes", "[fast]") {
  CHECK(to_json(read_row(Json::parse(kWhole))).dump() == kWhole);
  CHECK(to_json(checked_row(Json::parse(kWhole), "rows.jsonl", 1)).dump() == kWhole);
  using policies::canonical_json;
  for (const Json& row : sample::rows())  // in another order
    CHECK(canonical_json(to_json(read_row(row))) == canonical_json(row));
  const Json lost = sample::not_finite_row();
  CHECK(canonical_json(to_json(read_row(lost))) == canonical_json(lost));
}

TEST_CASE("rows: what another program wrote is kept, and named where no digest vouches for it",
          "[fast]") {
  Json row = Json::parse(kWhole);
  row["later"] = 1;
  row["layers"][0]["later"] = {{"a", 2}};
  row["predicted"]["tensors"][1]["measured_db"] = "many";
  row["metrics"]["not_finite"] = true;  // of an earlier program
  row["scores"].push_back(7);
  const Row read = checked_row(row, "rows.jsonl", 1);
  CHECK(policies::canonical_json(to_json(read)) == policies::canonical_json(row));
  CHECK_FALSE(read.predicted.tensors[1].measured_db);
  CHECK(read.scores.size() == 2);
  row.erase("digest");
  CHECK_THROWS_WITH(checked_row(row, "rows.jsonl", 7),
                    Contains("rows.jsonl: line 7: layers[0]: unknown key 'later'"));
}

TEST_CASE("rows: the error of a row names the version that wrote it, where that is another",
          "[fast]") {
  Json row = Json::parse(kWhole);
  row["bits"].erase("weight");
  CHECK_THROWS_WITH(checked_row(row, "r", 2),
                    "r: line 2: expected a row with bits.weight (a number)");
  row["version"] = "1";
  CHECK_THROWS_WITH(
      checked_row(row, "r", 2),
      std::string("r: line 2: expected a row with bits.weight (a number); numerics version 1 wrote "
                  "it, this program is ") +
          kNumericsVersion);
}

}  // namespace row_test
