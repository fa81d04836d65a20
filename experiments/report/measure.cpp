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

/// Of metrics, or of a score.
void read_intervals(const auto& of, JudgedFigure& out) {
  const Ends value = of.ci95.value_or(Ends()), change = of.difference_ci95.value_or(Ends());
  out.low = value.low;
  out.high = value.high;
  out.difference_low = change.low;
  out.difference_high = change.high;
}

/// The score of that name, or the first one; null where the row has none.
const RowScore* score_of(const Row& row, const std::string& name) {
  for (const RowScore& score : row.scores) {
    if (find_measure(score.name) && (name.empty() || name == score.name)) return &score;
  }
  return nullptr;
}

/// Of a text's bits, whose key in "metrics" names the unit.
std::optional<JudgedFigure> bits_of(const Row& row) {
  const RowMetrics& m = row.metrics;
  if (!m.bits_per_character && !m.bits_per_token) return std::nullopt;
  const bool characters = m.bits_per_character.has_value();
  // Earlier programs called the bits of a token those of a character.
  const bool tokens = !characters || json_text(row.point, {"data"}) == "tokens";
  JudgedFigure out = of(find_measure(tokens ? "bits_per_token" : "bits_per_character"));
  out.value = characters ? m.bits_per_character : m.bits_per_token;
  out.baseline = characters ? m.baseline_bits_per_character : m.baseline_bits_per_token;
  if (out.baseline) out.difference = *out.value - *out.baseline;
  if (const RowScore* score = score_of(row, "bits_per_token")) read_intervals(*score, out);
  if (row.scores.empty())  // rows of earlier programs: taken as it is
    out.difference_low = out.difference_high = out.difference;
  return out;
}

JudgedFigure top1_of(const RowMetrics& m) {
  JudgedFigure out = of(&kMeasures[0]);
  out.value = m.top1;
  out.baseline = m.baseline_top1;
  out.difference = m.difference;
  if (!out.difference && out.value && out.baseline) out.difference = *out.value - *out.baseline;
  read_intervals(m, out);
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

JudgedFigure judged_of(const Row& row) {
  std::string chosen;
  if (const Json* metrics = json_at(row.point, {"metrics"});
      metrics && metrics->is_array() && !metrics->empty() && metrics->front().is_string())
    chosen = metrics->front().text();
  if (chosen.empty() || chosen == "bits_per_token") {
    if (std::optional<JudgedFigure> bits = bits_of(row)) return *bits;
  }
  const RowScore* score = chosen == "top1" ? nullptr : score_of(row, chosen);
  if (!score || score->name == "top1") return top1_of(row.metrics);
  JudgedFigure out = of(find_measure(score->name));
  out.value = score->value;
  out.baseline = score->baseline;
  out.difference = score->difference;
  read_intervals(*score, out);
  return out;
}

}  // namespace numemu::experiments
