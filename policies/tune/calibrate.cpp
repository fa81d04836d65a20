// Step calibrate: ranges of the activations that have static scales, by a rule of the recipe's key
// `calibrate`.
#include <fmt/format.h>

#include "formats/error.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/recipe/update_json.hpp"
#include "policies/tune/base/tune_step.hpp"

namespace numemu::policies {
namespace {

constexpr char kRecipes[] = "recipe";

std::string canonical_rule(const std::string& text) {
  if (text == kRecipes) return text;
  if (text == "dynamic")
    throw Error("expected a rule that gives ranges: recipe, absmax, percentile(P), mse or kl");
  const Json json = {{"rule", text}};
  return calibration_json(read_calibration(JsonReader(json, "calibrate")))["rule"];
}

const TextKind kRule{"rule of calibration", canonical_rule};

struct CalibrateStepOptions final : PolicyOptions {
  std::string rule = kRecipes;
  std::vector<Option> list() override {
    return {{.key = "rule",
             .help = "recipe: that of the recipe; else absmax, percentile(P), mse or kl",
             .value = &rule,
             .kind = &kRule}};
  }
};

class Calibrate final : public TuneStep {
 public:
  explicit Calibrate(const CalibrateStepOptions& options) : options_(options) {}

  /// Refuses a rule that does not serve the recipe: a zero point needs a range, not a magnitude.
  std::int64_t begin(const Tuning& tuning) override {
    const RecipeNumerics numerics(with_rule(tuning), tuning.graph,
                                  tuning.where + ": step calibrate");
    return 1;
  }

  void run(Tuning& tuning, std::int64_t, const TuneProgress&) override {
    const FixedRanges found =
        calibrated_ranges(with_rule(tuning), tuning.graph, tuning.calibration);
    for (const auto& [layer, ranges] : found) {
      // The rule here may give ranges to scales that the recipe chooses anew for every sample.
      if (!has_static_scale(tuning.recipe.calibration(),
                            *tuning.recipe.layer(layer)[RolePart::activation]))
        continue;
      tuning.ranges[layer].activation = ranges.activation;
      ++layers_;
    }
  }
  std::string summary() const override {
    return fmt::format("ranges of {} activations{}", layers_,
                       layers_ == 0 ? ": the recipe has no static scale of any" : "");
  }

 private:
  Recipe with_rule(const Tuning& tuning) const {
    Json json = tuning.recipe.json();
    if (options_.rule != kRecipes) json["calibrate"]["rule"] = options_.rule;
    return Recipe::parse(json, tuning.where);
  }

  const CalibrateStepOptions& options_;
  std::size_t layers_ = 0;
};

}  // namespace

extern const TuneStepKind tune_calibrate{
    .name = "calibrate",
    .summary = "ranges of activations from the calibration samples",
    .source = "Migacz, GTC 2017 (kl); see the recipe's key calibrate",
    .recurrent = true,
    .options = make_options<CalibrateStepOptions>,
    .make = make_step<Calibrate, CalibrateStepOptions>};

}  // namespace numemu::policies
