// Half a point of top-1 and 0.7 % of the perplexity (0.01 bits) are what people call small. The
// limits of other shares and of log loss are the same in their units; those of errors and of PSNR
// are 1 % and 0.1 dB.
#include "experiments/report/measure.hpp"

#include <fmt/format.h>

#include <cmath>

#include "experiments/report/decimals.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/percent.hpp"
#include "experiments/report/record.hpp"

namespace numemu::experiments {
namespace {

constexpr double kHopeless = 0.1, kHopelessRise = 0.5;

constexpr const char *kPoints = "points", *kPerCharacter = "bits per character",
                     *kPerToken = "bits per token";

constexpr Measure kMeasures[] = {
    {"top1", "Top-1, %", "top-1", "%", kPoints, 100, 2, false, false, kSmallLoss, kHopeless},
    {"bits_per_character", "Bits per character", kPerCharacter, "", kPerCharacter, 1, 4, true,
     false, kSmallRise, kHopelessRise},
    {"bits_per_token", "Bits per token", kPerToken, "", kPerToken, 1, 4, true, false, kSmallRise,
     kHopelessRise},
    {"top5", "Top-5, %", "top-5", "%", kPoints, 100, 2, false, false, kSmallLoss, kHopeless},
    {"auc", "AUC, %", "AUC", "%", kPoints, 100, 2, false, false, kSmallLoss, kHopeless},
    {"mean_iou", "Mean IoU, %", "mean IoU", "%", kPoints, 100, 2, false, false, kSmallLoss,
     kHopeless},
    {"pixel_accuracy", "Pixel accuracy, %", "pixel accuracy", "%", kPoints, 100, 2, false, false,
     kSmallLoss, kHopeless},
    {"log_loss", "Log loss, nats", "log loss", "nats", "nats", 1, 4, true, false, 0.007, 0.35},
    {"perplexity", "Perplexity", "perplexity", "", "% of the perplexity", 1, 3, true, true, 0.007,
     0.4},
    {"mse", "Mean squared error", "mean squared error", "", "% of the mean squared error", 1, 6,
     true, true, 0.01, 1},
    {"mae", "Mean absolute error", "mean absolute error", "", "% of the mean absolute error", 1, 6,
     true, true, 0.01, 1},
    {"psnr", "PSNR, dB", "PSNR", "dB", "dB", 1, 2, false, false, 0.1, 3},
    {"cosine", "Cosine with float32", "cosine with float32", "", "of the cosine", 1, 6},
    {"sqnr", "SQNR of outputs, dB", "SQNR of the outputs", "dB", "dB", 1, 2},
};

const Measure* find_measure(const std::string& name) {
  for (const Measure& measure : kMeasures) {
    if (measure.name == name) return &measure;
  }
  return nullptr;
}

JudgedFigure of(const Measure* measure) {
  JudgedFigure out;
  out.measure = measure;
  return out;
}

std::optional<double> end_of(const Json& object, const char* key, std::size_t side) {
  const Json* pair = json_at(object, {key});
  if (!pair || !pair->is_array() || pair->size() != 2) return std::nullopt;
  const Json& value = (*pair)[side];
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

void read_intervals(const Json& object, JudgedFigure& out) {
  out.low = end_of(object, "ci95", 0);
  out.high = end_of(object, "ci95", 1);
  out.difference_low = end_of(object, "difference_ci95", 0);
  out.difference_high = end_of(object, "difference_ci95", 1);
}

/// The score of that name, or the first one; null where the row has none.
const Json* score_of(const Json& row, const std::string& name) {
  const Json* scores = json_at(row, {"scores"});
  if (!scores || !scores->is_array()) return nullptr;
  for (const Json& score : *scores) {
    const std::string own = json_text(score, {"name"});
    if (find_measure(own) && (name.empty() || name == own)) return &score;
  }
  return nullptr;
}

/// Of a text's bits, whose key in "metrics" names the unit.
std::optional<JudgedFigure> bits_of(const Json& row) {
  for (const char* key : {"bits_per_character", "bits_per_token"}) {
    // Earlier programs called the bits of a token those of a character.
    JudgedFigure out =
        of(find_measure(json_text(row, {"point", "data"}) == "tokens" ? "bits_per_token" : key));
    out.value = json_number(row, {"metrics", key});
    if (!out.value) continue;
    out.baseline = json_number(row, {"metrics", (std::string("baseline_") + key).c_str()});
    if (out.baseline) out.difference = *out.value - *out.baseline;
    if (const Json* score = score_of(row, "bits_per_token")) read_intervals(*score, out);
    if (json_at(row, {"scores"}) == nullptr)  // rows of earlier programs: taken as it is
      out.difference_low = out.difference_high = out.difference;
    return out;
  }
  return std::nullopt;
}

JudgedFigure top1_of(const Json& row) {
  JudgedFigure out = of(&kMeasures[0]);
  out.value = json_number(row, {"metrics", "top1"});
  out.baseline = json_number(row, {"metrics", "baseline_top1"});
  out.difference = json_number(row, {"metrics", "difference"});
  if (!out.difference && out.value && out.baseline) out.difference = *out.value - *out.baseline;
  if (const Json* metrics = json_at(row, {"metrics"})) read_intervals(*metrics, out);
  return out;
}

}  // namespace

bool Measure::is_top1() const { return this == &kMeasures[0]; }

bool Measure::is_bits() const { return this == &kMeasures[1] || this == &kMeasures[2]; }

std::string Measure::text(double value) const {
  const double shown = factor == 100 ? shown_percent(value) : factor * value;
  return fmt::format("{:.{}f}{}{} {}", shown,
                     factor == 100 ? digits : shown_decimals(shown, digits),
                     *prefix == 0 ? "" : " ", prefix, words);
}

std::string Measure::loss_text(double loss) const {
  return relative || factor == 1 ? fmt::format("{:g} {}", (relative ? 100 : 1) * loss, unit)
                                 : fmt::format("{:.1f} {}", factor * loss, unit);
}

std::optional<double> JudgedFigure::loss() const {
  const double sign = measure->falls ? 1 : -1;
  if (measure->small == 0) return value ? std::optional(sign * *value) : std::nullopt;
  if (!difference) return std::nullopt;
  if (!measure->relative) return sign * *difference;
  if (!baseline || *baseline == 0) return std::nullopt;
  return sign * *difference / std::abs(*baseline);
}

std::optional<std::pair<double, double>> JudgedFigure::loss_interval() const {
  if (!difference_low || !difference_high || measure->small == 0) return std::nullopt;
  const double of = measure->relative ? std::abs(baseline.value_or(0)) : 1;
  if (of == 0) return std::nullopt;
  return measure->falls ? std::pair(*difference_low / of, *difference_high / of)
                        : std::pair(-*difference_high / of, -*difference_low / of);
}

JudgedFigure judged_of(const Json& row) {
  std::string chosen;
  if (const Json* metrics = json_at(row, {"point", "metrics"});
      metrics && metrics->is_array() && !metrics->empty() && metrics->front().is_string())
    chosen = metrics->front().get<std::string>();
  if (chosen.empty() || chosen == "bits_per_token") {
    if (std::optional<JudgedFigure> bits = bits_of(row)) return *bits;
  }
  const Json* score = chosen == "top1" ? nullptr : score_of(row, chosen);
  const std::string name = score ? json_text(*score, {"name"}) : "";
  if (!score || name == "top1") return top1_of(row);
  JudgedFigure out = of(find_measure(name));
  out.value = json_number(*score, {"value"});
  out.baseline = json_number(*score, {"baseline"});
  out.difference = json_number(*score, {"difference"});
  read_intervals(*score, out);
  return out;
}

}  // namespace numemu::experiments
