#include "policies/recipe/update_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"
#include "policies/canonical_json.hpp"

namespace numemu::policies {

namespace {

/// A name of `known` with its arguments, in their canonical form.
std::string read_call(const JsonReader& key, const std::string& fallback,
                      const std::vector<std::string>& known, std::string_view kind,
                      std::string (*canonical)(std::string_view)) {
  const std::string text = key.text(fallback);
  const Json name = parse_call(text).name;
  key.replaced_by(name).one_of("", known, kind);
  return at(key, [&] { return canonical(text); });
}

std::string read_optimizer(const JsonReader& key, const std::string& fallback) {
  return read_call(key, fallback, net::optimizer_names(), "optimizer", net::canonical_optimizer);
}

}  // namespace

std::vector<ObjectiveChoice> read_objectives(const JsonReader& list, const std::string& optimizer) {
  if (list.is_null()) return {};
  if (!list.value().is_array() || list.value().empty())
    list.fail("a list of at least one objective, or null");
  std::vector<ObjectiveChoice> objectives;
  for (std::size_t i = 0; i < list.value().size(); ++i) {
    const JsonReader entry = list.element(i);
    const bool object = entry.value().is_object();
    if (!object && !entry.value().is_string())
      entry.fail("an objective's name, or an object with the keys rule and optimizer");
    if (object) entry.require_keys({"rule", "optimizer"});
    const JsonReader rule = object ? entry.member("rule") : entry;
    if (rule.is_null()) entry.fail("a key 'rule'");
    ObjectiveChoice choice{
        read_call(rule, "", net::objective_names(), "objective", net::canonical_objective),
        optimizer};
    if (object) choice.optimizer = read_optimizer(entry.member("optimizer"), optimizer);
    const std::string name = parse_call(choice.rule).name;
    const bool repeated = std::ranges::any_of(
        objectives, [&](const auto& other) { return parse_call(other.rule).name == name; });
    if (repeated) rule.fail("each objective once, not " + name + " again");
    objectives.push_back(std::move(choice));
  }
  const bool usual = objectives.size() == 1 && objectives[0].optimizer == optimizer &&
                     objectives[0].rule == net::TrainOptions().objectives[0];
  return usual ? std::vector<ObjectiveChoice>() : objectives;
}

Json objectives_json(const std::vector<ObjectiveChoice>& objectives, const std::string& optimizer) {
  Json out = Json::array();
  for (const ObjectiveChoice& choice : objectives) {
    out.push_back(choice.optimizer == optimizer
                      ? Json(choice.rule)
                      : Json{{"rule", choice.rule}, {"optimizer", choice.optimizer}});
  }
  return out;
}

void use_objectives(const Recipe& recipe, const std::string& where, net::TrainOptions& options) {
  if (recipe.objectives().empty()) return;
  net::TrainOptions named;
  named.objectives.clear();
  for (const ObjectiveChoice& choice : recipe.objectives()) {
    named.objectives.push_back(choice.rule);
    if (choice.optimizer != recipe.update().optimizer)
      named.objective_optimizers[choice.rule] = choice.optimizer;
  }
  const bool same = options.objectives == named.objectives &&
                    options.objective_optimizers == named.objective_optimizers;
  if (!same && (options.objectives != net::TrainOptions().objectives ||
                !options.objective_optimizers.empty())) {
    throw Error(fmt::format("{}: objectives: {} contradict those of the training options, {}",
                            where, joined(named.objectives, " "), joined(options.objectives, " ")));
  }
  options.objectives = named.objectives;
  options.objective_optimizers = named.objective_optimizers;
}

namespace {

constexpr const char* kDefaultOptimizer = "adam";
constexpr int kWidestMaster = 16;
constexpr int kWidestMasterExponent = 8;
constexpr double kFirstDynamicScale = 65536;  // as PyTorch's GradScaler starts
constexpr std::int64_t kGrowthInterval = 2000;
constexpr std::int64_t kLongestInterval = 1000000000;
constexpr std::int64_t kUsualSamples = 512;  // that a data set keeps for calibration
constexpr std::int64_t kMostSamples = 1'000'000'000;

// In the order of the enumerators; percentile has an argument.
const std::vector<std::string> kRules = {"absmax", "percentile", "mse", "kl", "dynamic"};

[[noreturn]] void unknown(const JsonReader& key, std::string_view kind, const CallText& call,
                          const std::vector<std::string>& names, std::string_view spellings) {
  const std::string nearest = nearest_name(call.name, names);
  std::string what = fmt::format("'{}' has other arguments", call.name);
  if (nearest != call.name) {
    // Without a name that may be meant, the spellings that follow are what is known.
    const bool meant = suggested_name(call.name, {nearest}).has_value();
    what = unknown_name(kind, call.name, meant ? std::vector{nearest} : std::vector<std::string>());
  }
  throw Error(fmt::format("{}: {}; expected {}", key.where(), what, spellings));
}

/// A factor that keeps its reciprocal in float32.
std::optional<double> factor(const std::string& text) {
  const std::optional<double> value = number_argument(text);
  constexpr double kLargest = 0x1p126;
  return value && *value >= 1 / kLargest && *value <= kLargest ? value : std::nullopt;
}

LossScale read_loss_scale(const JsonReader& key) {
  const CallText call = parse_call(key.text("none"));
  const auto& arguments = call.arguments;
  LossScale scale;
  if (call.name == "none" && arguments.empty()) return scale;
  if (call.name == "static" && arguments.size() == 1) {
    scale.kind = LossScale::Kind::fixed;
    if (const auto value = factor(arguments[0])) return scale.value = *value, scale;
  }
  if (call.name == "dynamic" && (arguments.empty() || arguments.size() == 2)) {
    scale = {LossScale::Kind::dynamic, kFirstDynamicScale, kGrowthInterval};
    if (arguments.empty()) return scale;
    const auto value = factor(arguments[0]);
    const auto interval = whole_argument(arguments[1], 1, kLongestInterval);
    if (value && interval) return scale.value = *value, scale.growth_interval = *interval, scale;
  }
  unknown(key, "loss scale policy", call, {"none", "static", "dynamic"},
          "none, static(V), dynamic or dynamic(INITIAL,INTERVAL)");
}

std::string loss_scale_text(const LossScale& scale) {
  if (scale.kind == LossScale::Kind::none) return "none";
  const std::string value = ecmascript_number(scale.value);
  if (scale.kind == LossScale::Kind::fixed) return fmt::format("static({})", value);
  return fmt::format("dynamic({},{})", value, scale.growth_interval);
}

const Format* read_master(const JsonReader& key) {
  const Format& format =
      at(key, [&]() -> const Format& { return find_format(key.text("float32")); });
  if (format.name == "float32") return nullptr;
  if (!serves_master(format)) {
    key.fail(fmt::format(
        "float32 or a signed floating format of at most {} bits, {} of them exponent, not {}",
        kWidestMaster, kWidestMasterExponent, format.name));
  }
  return &format;
}

}  // namespace

bool serves_master(const Format& format) {
  return format.kind == Kind::floating && format.is_signed && format.bits <= kWidestMaster &&
         format.exponent_bits <= kWidestMasterExponent && format.has_zero();
}

UpdatePolicy read_update(const JsonReader& update) {
  if (!update.is_null())
    update.require_keys({"optimizer", "master", "rounding", "loss_scale", "rule"});
  UpdatePolicy policy;
  policy.optimizer = read_optimizer(update.member("optimizer"), kDefaultOptimizer);
  policy.master = read_master(update.member("master"));
  const JsonReader rounding = update.member("rounding");
  policy.rounding = at(rounding, [&] { return parse_rounding(rounding.text("rne")); });
  if (policy.master == nullptr && policy.rounding != Rounding{})
    rounding.fail("rne, as the master weights are float32, not " + to_string(policy.rounding));
  policy.loss_scale = read_loss_scale(update.member("loss_scale"));
  return policy;
}

CalibrationPolicy read_calibration(const JsonReader& calibrate) {
  if (!calibrate.is_null()) calibrate.require_keys({"rule", "samples"});
  CalibrationPolicy policy;
  const JsonReader rule = calibrate.member("rule");
  const CallText call = parse_call(rule.text(kRules[0]));
  const auto found = std::find(kRules.begin(), kRules.end(), call.name);
  policy.rule = static_cast<CalibrationPolicy::Rule>(found - kRules.begin());
  const bool percentile = policy.rule == CalibrationPolicy::Rule::percentile;
  bool valid = found != kRules.end() && call.arguments.size() == (percentile ? 1 : 0);
  if (valid && percentile) {
    const std::optional<double> share = number_argument(call.arguments[0]);
    valid = share && *share > 0 && *share <= 100;
    policy.percentile = share.value_or(policy.percentile);
  }
  if (!valid) {
    unknown(rule, "calibration rule", call, kRules,
            "absmax, percentile(P) with 0 < P <= 100, mse, kl or dynamic");
  }
  policy.samples = calibrate.member("samples").integer(kUsualSamples, 1, kMostSamples);
  return policy;
}

Json update_json(const UpdatePolicy& policy) {
  return {{"optimizer", policy.optimizer},
          {"master", policy.master ? policy.master->name : "float32"},
          {"rounding", to_string(policy.rounding)},
          {"loss_scale", loss_scale_text(policy.loss_scale)}};
}

Json calibration_json(const CalibrationPolicy& policy) {
  std::string rule = kRules[static_cast<std::size_t>(policy.rule)];
  if (policy.rule == CalibrationPolicy::Rule::percentile)
    rule += "(" + ecmascript_number(policy.percentile) + ")";
  return {{"rule", rule}, {"samples", policy.samples}};
}

}  // namespace numemu::policies
