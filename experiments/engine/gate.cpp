#include "experiments/engine/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include "emu/net/train/score.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/scores.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

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

constexpr std::int64_t kMostDecidingImages =
    1'000'000'000'000'000;  // more are none that a row names
constexpr std::string_view kFloat32 = "float32";

/// Metrics from 0 to 1.
bool is_share(std::string_view metric) { return net::find_score(metric).shown.factor == 100; }

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
  const bool less = net::find_score(metric).shown.falls;
  return named({.text = "",
                .metric = std::string(metric),
                .at_least = !less,
                .relative = true,
                .bound = less ? 1 / share : share});
}

/// What a row knows of a metric, each NaN where it does not.
struct Figures {
  double value = NAN, baseline = NAN, difference = NAN;
  stats::Interval value95{NAN, NAN}, difference95{NAN, NAN};
  std::optional<stats::PairedAnswers> answers;         ///< of a share that is counted
  bool exact_value = false, exact_difference = false;  ///< that of none among n, no bootstrap
  bool blocks = false;                                 ///< of windows, which resamples draw
  std::int64_t n = 0;                                  ///< samples
};

template <class T>
double at(const Member<T>& member) {
  return member ? static_cast<double>(*member) : NAN;
}

stats::Interval ends(const Member<Ends>& ends) {
  return ends && ends->known() ? stats::Interval{*ends->low, *ends->high}
                               : stats::Interval{NAN, NAN};
}

/// Of the samples that this network alone gets right, and float32 alone; none in rows from before
/// these were counted.
std::optional<stats::PairedAnswers> answers_of(const Member<std::int64_t>& only_here,
                                               const Member<std::int64_t>& only_there, double value,
                                               std::int64_t n) {
  const double gained = at(only_here), lost = at(only_there);
  if (!std::isfinite(gained + lost + value)) return {};
  stats::PairedAnswers answers;
  answers.n = n;
  answers.only1 = static_cast<std::int64_t>(gained);
  answers.only2 = static_cast<std::int64_t>(lost);
  const std::int64_t agreed = n - answers.only1 - answers.only2;
  if (answers.only1 < 0 || answers.only2 < 0 || agreed < 0) return {};
  // Exact up to a million samples: the value has six digits.
  const double both = std::round(value * static_cast<double>(n)) - gained;
  answers.both = std::clamp<std::int64_t>(static_cast<std::int64_t>(both), 0, agreed);
  return answers;
}

Figures figures_of(const Gate& gate, const Row& row) {
  const RowMetrics& metrics = row.metrics;
  Figures out;
  const double n = at(metrics.n), samples = at(row.point.eval_images);
  const bool several = n > samples;  // classes of each sample, which `n` counts
  const double count = several ? samples : n;
  out.n = std::isfinite(count) ? static_cast<std::int64_t>(count) : 0;
  if (const RowScore* const score = row.score(gate.metric)) {
    out.value = at(score->value);
    out.baseline = at(score->baseline);
    out.difference = at(score->difference);
    out.value95 = ends(score->ci95);
    out.difference95 = ends(score->difference_ci95);
    out.blocks = score->resampled.starts_with("blocks");
    out.answers = answers_of(score->gained, score->lost, out.value, out.n);
    for (const std::string& name : score->exact)
      (name == "ci95" ? out.exact_value : out.exact_difference) = true;
    return out;
  }
  if (gate.metric != "top1" || !metrics.top1.written()) {
    std::vector<std::string> names;
    for (const RowScore& score : row.scores) names.push_back(score.name);
    if (metrics.top1.written()) names.emplace_back("top1");
    throw usage_error(
        fmt::format("--gate: the rows have no {}, they have {} (--metric of eval adds more)",
                    gate.metric, joined(names, ", ")));
  }
  out.value = at(metrics.top1);
  out.baseline = at(metrics.baseline_top1);
  out.difference = at(metrics.difference);
  out.value95 = ends(metrics.ci95);
  out.difference95 = ends(metrics.difference_ci95);
  if (!several) out.answers = answers_of(metrics.gained, metrics.lost, out.value, out.n);
  return out;
}

/// The margin and its interval at 99 %, as far as they are known, of the samples or of `times` as
/// many with the same shares.
struct Margin {
  double value = NAN;
  std::function<stats::Interval(double times)> ci99 = [](double) {
    return stats::Interval{NAN, NAN};
  };
};

/// What resamples of n samples draw: the samples, or blocks of windows.
std::int64_t units(const Figures& f, std::int64_t n) {
  if (!f.blocks) return n;
  const std::int64_t length = block_length(n);
  return (n + length - 1) / length;
}

/// Of an interval from a row: half its length of `times` as many samples.
double shrunk(double half, bool exact, const Figures& f, double times) {
  if (times == 1) return half;
  if (!exact) return half / std::sqrt(times);
  const auto count = static_cast<std::int64_t>(std::round(static_cast<double>(f.n) * times));
  return half * stats::share_of_none(units(f, count)) / stats::share_of_none(units(f, f.n));
}

/// value - bound float32 = bound difference + (1 - bound) value.
Margin margin_of_score(const Gate& gate, const Figures& f, double value) {
  // Of none among n: log(0.005) / log(0.025), the ends of 0 of n for large n and more than those
  // for fewer.
  constexpr double kNormal = stats::kNormal99 / stats::kNormal95, kExact = 1.4363;
  const double longer = f.exact_value || f.exact_difference ? kExact : kNormal;
  const double of_difference = gate.relative ? gate.bound : 0,
               of_value = std::abs(1 - of_difference);
  const bool known =
      gate.relative
          ? std::isfinite(f.difference95.low + f.difference95.high + f.value95.low + f.value95.high)
          : std::isfinite(f.value95.low);
  if (!known) return {.value = value};
  return {value, [=](double times) {
            const auto half = [&](double difference_end, double value_end) {
              double sum =
                  of_value * shrunk(std::abs(value_end - f.value), f.exact_value, f, times);
              if (gate.relative)
                sum += of_difference * shrunk(std::abs(difference_end - f.difference),
                                              f.exact_difference, f, times);
              return longer * sum;
            };
            return stats::Interval{value - half(f.difference95.low, f.value95.low),
                                   value + half(f.difference95.high, f.value95.high)};
          }};
}

Margin margin_of(const Gate& gate, const Figures& f) {
  const double value = f.value - gate.bound * (gate.relative ? f.baseline : 1);
  if (!f.answers) return margin_of_score(gate, f, value);
  // Against a number: of the share of a classifier that counts for nothing.
  return {value, [answers = *f.answers, share = gate.relative ? gate.bound : 0,
                  constant = gate.relative ? 0 : gate.bound](double times) {
            const stats::Interval ends =
                stats::paired_share(answers, share, stats::kNormal99, times);
            return stats::Interval{ends.low - constant, ends.high - constant};
          }};
}

}  // namespace

std::span<const GatePreset> gate_presets() { return kPresets; }

Gate parse_gate(const std::string& text) {
  const std::string expected =
      "expected a share of float32's top-1 in (0, 1] (0.99), METRIC>=NUMBER, METRIC<=NUMBER, "
      "METRIC>=SHARE*float32 or a preset";
  const auto refuse = [&](const std::string& found) {
    return usage_error(fmt::format("--gate: {}, found '{}'", expected, found));
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
      throw usage_error("--gate: " + unknown_name("preset", text, names) + "; " + expected);
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
    throw usage_error(
        fmt::format("--gate: expected for {} a number from 0 to 1 (0.76 is 76 %), found {}",
                    gate.metric, bound));
  }
  return named(gate);
}

void require_float32(const Gate& gate, const std::string& quantizers) {
  if (!gate.relative || quantizers.empty()) return;
  throw usage_error(fmt::format(
      "--gate: {}: the network has {}, so no float32 is there to take a share of; expected "
      "{}{}NUMBER, such as that share of what the network had before",
      gate.text, quantizers, gate.metric, gate.at_least ? ">=" : "<="));
}

void judge_gate(const Gate& gate, Row& row) {
  require_float32(gate, row.baseline_has);
  const Figures f = figures_of(gate, row);
  const Margin margin = margin_of(gate, f);
  const double sign = gate.at_least ? 1 : -1;
  const auto ci99 = [&](double times) {
    const stats::Interval ends = margin.ci99(times);
    return gate.at_least ? ends : stats::Interval{-ends.high, -ends.low};
  };
  const stats::Interval ends = ci99(1);
  // A network without a figure (its outputs are NaN) has reached nothing.
  const char* const verdict = !std::isfinite(f.value) ? "fail"
                              : ends.low >= 0         ? "pass"
                              : ends.high < 0         ? "fail"
                                                      : "undecided";
  const auto decides = [&](std::int64_t n) {
    const stats::Interval of_n = ci99(static_cast<double>(n) / static_cast<double>(f.n));
    return of_n.low >= 0 || of_n.high < 0;
  };
  const std::optional<std::int64_t> needed =
      f.n > 0 ? stats::least_deciding(decides, f.n, kMostDecidingImages) : std::nullopt;
  row.gate = RowGate{
      .target = gate.text,
      .metric = gate.metric,
      .value = row_number(f.value),
      .required = row_number(gate.bound * (gate.relative ? f.baseline : 1)),
      .margin = row_number(sign * margin.value),
      .margin_ci99 = row_ends(ends.low, ends.high),
      .images = f.n,
      .images_needed = needed ? Member<std::int64_t>(*needed) : Member<std::int64_t>::null(),
      .verdict = verdict};
  if (!row.digest.empty()) row.digest = digest_of(row);
}

}  // namespace numemu::experiments
