#include "experiments/report/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/report/configurations.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"

namespace numemu::experiments {
namespace {

/// The scores, top-1 first, and the bits of a character after them.
const std::vector<Measure>& measures() {
  static const std::vector<Measure> kAll = [] {
    std::vector<Measure> all;
    for (const net::Score& score : net::scores())
      all.push_back({score.shown, std::string(score.name)});
    Measure characters = *std::ranges::find(all, "bits_per_token", &Measure::name);
    characters.name = "bits_per_character";
    characters.title = "Bits per character";
    characters.words = characters.unit = "bits per character";
    all.push_back(std::move(characters));
    return all;
  }();
  return kAll;
}

const Measure* find_measure(std::string_view name) {
  const auto found = std::ranges::find(measures(), name, &Measure::name);
  return found == measures().end() ? nullptr : &*found;
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

void read_predicted(const Member<double>& value, const Member<Ends>& ci95, JudgedFigure& out) {
  const Ends ends = ci95.value_or(Ends());
  out.predicted = value;
  out.predicted_low = ends.low;
  out.predicted_high = ends.high;
}

/// Of a score, which is "OUTPUT/MEASURE" of any output but the first.
const Measure* measure_of(const RowScore& score) {
  return find_measure(std::string_view(score.name).substr(score.name.rfind('/') + 1));
}

/// The score of that name, or the first one of the first output; null where the row has none.
const RowScore* score_of(const Row& row, const std::string& name) {
  for (const RowScore& score : row.scores) {
    const bool asked = name.empty() ? score.name.find('/') == score.name.npos : name == score.name;
    if (asked && measure_of(score) != nullptr) return &score;
  }
  return nullptr;
}

/// Of a text's bits, whose key in "metrics" names the unit.
std::optional<JudgedFigure> bits_of(const Row& row) {
  const RowMetrics& m = row.metrics;
  if (!m.bits_per_character && !m.bits_per_token) return std::nullopt;
  const bool characters = m.bits_per_character.has_value();
  // Earlier programs called the bits of a token those of a character.
  const bool tokens = !characters || row.point.data == "tokens";
  JudgedFigure out = of(find_measure(tokens ? "bits_per_token" : "bits_per_character"));
  out.value = characters ? m.bits_per_character : m.bits_per_token;
  out.baseline = characters ? m.baseline_bits_per_character : m.baseline_bits_per_token;
  if (out.baseline) out.difference = *out.value - *out.baseline;
  if (const RowScore* score = score_of(row, "bits_per_token")) {
    read_intervals(*score, out);
    read_predicted(score->predicted, score->predicted_ci95, out);
  }
  if (row.scores.empty())  // rows of earlier programs: taken as it is
    out.difference_low = out.difference_high = out.difference;
  return out;
}

JudgedFigure top1_of(const Row& row) {
  const RowMetrics& m = row.metrics;
  JudgedFigure out = of(&measures().front());
  out.value = m.top1;
  out.baseline = m.baseline_top1;
  out.difference = m.difference;
  if (!out.difference && out.value && out.baseline) out.difference = *out.value - *out.baseline;
  read_intervals(m, out);
  const RowAccuracy accuracy = row.predicted.accuracy.value_or(RowAccuracy());
  if (accuracy.top1) read_predicted(accuracy.top1->value, accuracy.top1->ci95, out);
  return out;
}

}  // namespace

bool Measure::is_top1() const { return this == &measures().front(); }

bool Measure::is_bits() const { return name == "bits_per_character" || name == "bits_per_token"; }

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

Verdict JudgedFigure::verdict() const {
  if (!value || !predicted) return Verdict::none;
  return expected_verdict(*predicted, {predicted_low, predicted_high}, *value);
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
  const std::string chosen = row.point.metrics.empty() ? "" : row.point.metrics.front();
  if (chosen.empty() || chosen == "bits_per_token") {
    if (std::optional<JudgedFigure> bits = bits_of(row)) return *bits;
  }
  const RowScore* score = chosen == "top1" ? nullptr : score_of(row, chosen);
  if (!score || score->name == "top1") return top1_of(row);
  JudgedFigure out = of(measure_of(*score));
  out.value = score->value;
  out.baseline = score->baseline;
  out.difference = score->difference;
  read_intervals(*score, out);
  read_predicted(score->predicted, score->predicted_ci95, out);
  return out;
}

}  // namespace numemu::experiments
