#include "experiments/engine/gate.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "emu/net/train/score.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/row_schema.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::experiments {
namespace {

constexpr std::string_view kChecker =
    "mlcommons/inference, tools/submission/submission_checker.py, accuracy-target";
constexpr std::array kPresets = {
    GatePreset{"mlperf.resnet", "top1", 0.99, kChecker},
    GatePreset{"mlperf.mobilenet", "top1", 0.98, kChecker},
    GatePreset{"mlperf.dlrm-v2-99", "auc", 0.99, kChecker},
    GatePreset{"mlperf.dlrm-v2-99.9", "auc", 0.999, kChecker},
};

constexpr int kDigits = 6;
constexpr double kMostImages = 1e15;  // more are none that a row names
constexpr std::string_view kFloat32 = "float32";

bool less_is_better(std::string_view metric) {
  constexpr std::array kLess = {"log_loss", "perplexity", "bits_per_token", "mse", "mae"};
  for (const std::string_view name : kLess) {
    if (metric == name) return true;
  }
  return false;
}

/// Metrics from 0 to 1.
bool is_share(std::string_view metric) {
  constexpr std::array kShares = {"top1", "top5", "auc", "mean_iou", "pixel_accuracy"};
  for (const std::string_view name : kShares) {
    if (metric == name) return true;
  }
  return false;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

Gate named(Gate gate) {
  gate.text = fmt::format("{} {} {:.6g}{}", gate.metric, gate.at_least ? ">=" : "<=", gate.bound,
                          gate.relative ? " float32" : "");
  return gate;
}

/// A share of what is better the less there is bounds it from above.
Gate share_of(std::string_view metric, double share) {
  const bool less = less_is_better(metric);
  return named({.text = "",
                .metric = std::string(metric),
                .at_least = !less,
                .relative = true,
                .bound = less ? 1 / share : share});
}

Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return policies::significant(value, kDigits);
}

/// What a row knows of a metric, each NaN where it does not.
struct Figures {
  double value = NAN, baseline = NAN, difference = NAN;
  stats::Interval value95{NAN, NAN}, difference95{NAN, NAN};
  bool counts = false;  ///< a share of the images, paired
  bool exact = false;   ///< an interval is that of none among n, not the bootstrap's
  std::int64_t n = 0;
};

double at(const Json& json, const char* key) {
  const Json* const found = json.is_object() && json.contains(key) ? &json[key] : nullptr;
  return found != nullptr && found->is_number() ? found->get<double>() : NAN;
}

stats::Interval ends(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key)) return {NAN, NAN};
  const Json& pair = json[key];
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number())
    return {NAN, NAN};
  return {pair[0].get<double>(), pair[1].get<double>()};
}

Figures figures_of(const Gate& gate, const Json& row) {
  const Json empty = Json::array();
  const Json& metrics = row["metrics"];
  const Json& scores = row.contains("scores") ? row["scores"] : empty;
  std::vector<std::string> names;
  Figures out;
  const double n = at(metrics, "n");
  out.n = std::isfinite(n) ? static_cast<std::int64_t>(n) : 0;
  for (const Json& score : scores) {
    names.push_back(score["name"].get<std::string>());
    if (names.back() != gate.metric) continue;
    out.value = at(score, "value");
    out.baseline = at(score, "baseline");
    out.difference = at(score, "difference");
    out.value95 = ends(score, "ci95");
    out.difference95 = ends(score, "difference_ci95");
    out.exact = score.contains("exact");
    return out;
  }
  if (gate.metric != "top1" || !metrics.contains("top1")) {
    if (metrics.contains("top1")) names.emplace_back("top1");
    throw Error(
        fmt::format("--gate: the rows have no {}, they have {} (--metric of eval adds more)",
                    gate.metric, fmt::join(names, ", ")));
  }
  out.value = at(metrics, "top1");
  out.baseline = at(metrics, "baseline_top1");
  out.difference = at(metrics, "difference");
  out.value95 = ends(metrics, "ci95");
  out.difference95 = ends(metrics, "difference_ci95");
  out.counts = true;
  return out;
}

/// The counts behind paired_difference(): half its length gives the discordant images, and the two
/// accuracies which they are. A row's six digits leave no doubt up to 50,000 images, and a
/// thousandth of the discordant ones beyond.
std::optional<stats::PairedAnswers> answers_of(const Figures& f) {
  const auto count = static_cast<double>(f.n);
  const double right = std::round(f.value * count), float32 = std::round(f.baseline * count),
               net = right - float32, rows = count + 2;
  const double centre = net / rows;
  const double half = f.difference95.low <= -1   ? f.difference95.high - centre
                      : f.difference95.high >= 1 ? centre - f.difference95.low
                                                 : (f.difference95.high - f.difference95.low) / 2;
  const double error = half * rows / stats::kNormal95,
               discordant = std::round(error * error + net * net / rows - 1);
  if (!std::isfinite(discordant)) return {};
  stats::PairedAnswers answers;
  answers.n = f.n;
  answers.only1 = static_cast<std::int64_t>(std::max(0.0, std::round((discordant + net) / 2)));
  answers.only2 = answers.only1 - static_cast<std::int64_t>(net);
  answers.both = static_cast<std::int64_t>(right) - answers.only1;
  if (answers.only2 < 0 || answers.both < 0) return {};
  return answers;
}

/// The margin's interval at 99 % and the variance of one sample, as far as they are known.
struct Margin {
  double value = NAN, variance = NAN;
  stats::Interval ci99{NAN, NAN};
};

Margin margin_of(const Gate& gate, const Figures& f) {
  Margin out;
  const auto count = static_cast<double>(f.n);
  out.value = f.value - gate.bound * (gate.relative ? f.baseline : 1);
  if (f.counts && !gate.relative) {
    const auto right = static_cast<std::int64_t>(std::round(f.value * count));
    const stats::Interval wilson = stats::wilson(right, f.n, stats::kNormal99);
    out.ci99 = {wilson.low - gate.bound, wilson.high - gate.bound};
    out.variance = f.value * (1 - f.value);
  } else if (f.counts) {
    const std::optional<stats::PairedAnswers> answers = answers_of(f);
    if (!answers) return out;
    out.ci99 = stats::paired_share(*answers, gate.bound, stats::kNormal99);
    out.variance = stats::paired_share_variance(*answers, gate.bound);
  } else {
    // value - bound float32 = bound difference + (1 - bound) value.
    // Of none among n: log(0.005) / log(0.025), the ends of 0 of n for large n and more than those
    // for fewer.
    constexpr double kNormal = stats::kNormal99 / stats::kNormal95, kExact = 1.4363;
    const double longer = f.exact ? kExact : kNormal;
    const double of_difference = gate.relative ? gate.bound : 0,
                 of_value = std::abs(1 - of_difference);
    const auto half = [&](double value, double end) { return std::abs(end - value); };
    const double low = of_difference * half(f.difference, f.difference95.low) +
                       of_value * half(f.value, f.value95.low),
                 high = of_difference * half(f.difference, f.difference95.high) +
                        of_value * half(f.value, f.value95.high);
    const bool known = gate.relative ? std::isfinite(low + high) : std::isfinite(f.value95.low);
    if (!known) return out;
    out.ci99 = {out.value - longer * low, out.value + longer * high};
    const double error = (low + high) / 2 / stats::kNormal95;
    out.variance = error * error * count;
  }
  return out;
}

}  // namespace

std::span<const GatePreset> gate_presets() { return kPresets; }

Gate parse_gate(const std::string& text) {
  const std::string expected =
      "expected a share of float32's top-1 in (0, 1] (0.99), METRIC>=NUMBER, METRIC<=NUMBER, "
      "METRIC>=SHARE*float32 or a preset";
  const auto refuse = [&](const std::string& found) {
    return Error(fmt::format("--gate: {}, found '{}'", expected, found));
  };
  for (const GatePreset& preset : kPresets) {
    if (text == preset.name) return share_of(preset.metric, preset.share);
  }
  const auto checked = [&](std::optional<double> value, bool share) {
    if (!value || (share && (*value <= 0 || *value > 1e3))) throw refuse(text);
    return *value;
  };
  const std::size_t sign = text.find_first_of("<>");
  if (sign == text.npos) {
    const std::optional<double> share = number_of(text);
    if (!share && text.find_first_not_of("0123456789.+-eE") != text.npos) {
      std::vector<std::string> names;
      for (const GatePreset& preset : kPresets) names.emplace_back(preset.name);
      throw Error("--gate: " + unknown_name("preset", text, names) + "; " + expected);
    }
    if (checked(share, true) > 1) throw refuse(text);
    return share_of("top1", *share);
  }
  if (text.substr(sign + 1, 1) != "=") throw refuse(text);
  Gate gate;
  gate.metric = std::string(net::find_score(text.substr(0, sign)).name);
  gate.at_least = text[sign] == '>';
  std::string_view bound = std::string_view(text).substr(sign + 2);
  const std::string times = "*" + std::string(kFloat32);
  gate.relative = bound.ends_with(times);
  if (gate.relative) bound.remove_suffix(times.size());
  gate.bound = checked(number_of(bound), gate.relative);
  if (!gate.relative && is_share(gate.metric) && !(gate.bound >= 0 && gate.bound <= 1)) {
    throw Error(fmt::format("--gate: expected for {} a number from 0 to 1 (0.76 is 76 %), found {}",
                            gate.metric, bound));
  }
  return named(gate);
}

void judge_gate(const Gate& gate, Json& row) {
  const Figures f = figures_of(gate, row);
  Margin margin = margin_of(gate, f);
  if (!gate.at_least) {
    margin.value = -margin.value;
    margin.ci99 = {-margin.ci99.high, -margin.ci99.low};
  }
  // A network without a figure (its outputs are NaN) has reached nothing.
  const char* const verdict = !std::isfinite(f.value) ? "fail"
                              : margin.ci99.low >= 0  ? "pass"
                              : margin.ci99.high < 0  ? "fail"
                                                      : "undecided";
  const double needed =
      std::ceil(stats::images_needed(margin.variance, margin.value, stats::kNormal99));
  row["gate"] = {{"target", gate.text},
                 {"metric", gate.metric},
                 {"value", number(f.value)},
                 {"required", number(gate.bound * (gate.relative ? f.baseline : 1))},
                 {"margin", number(margin.value)},
                 {"margin_ci99", {number(margin.ci99.low), number(margin.ci99.high)}},
                 {"images", f.n},
                 {"images_needed", needed < kMostImages ? Json(std::max<std::int64_t>(
                                                              1, static_cast<std::int64_t>(needed)))
                                                        : Json(nullptr)},
                 {"verdict", verdict}};
  if (!row.contains("digest")) return;
  row.erase("digest");
  row = Json::parse(with_digest(row.dump()));
}

}  // namespace numemu::experiments
