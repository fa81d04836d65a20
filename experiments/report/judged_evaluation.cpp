#include "experiments/report/judged_evaluation.hpp"

#include <fmt/format.h>

#include "experiments/engine/run_point.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"
#include "policies/notes/notes.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::experiments {

JudgedFigure judged_of(const net::Dataset& data, const std::vector<net::OutputScore>& scores,
                       const net::Evaluation& own, const net::Evaluation& baseline) {
  Row row;
  row.point.data = data.name();
  if (!scores.empty()) row.point.metrics.emplace_back(scores.front().name);
  add_metrics(row, data, scores, own, baseline);
  return judged_of(row);
}

std::string figure_text(const Measure& measure, const std::optional<double>& value, bool sign) {
  if (!value) return "-";
  if (measure.factor == 100) return percent_text(*value, sign ? "{:+.2f}" : "{:.2f}");
  return decimal_text(measure.factor * *value, measure.digits, sign);
}

std::string interval_text(const Measure& measure, const std::optional<double>& low,
                          const std::optional<double>& high, bool sign) {
  if (!low || !high) return "-";
  return fmt::format("[{}, {}]", figure_text(measure, low, sign), figure_text(measure, high, sign));
}

std::string difference_title(const Measure& measure) {
  if (measure.factor == 100) return fmt::format("{} difference, points", measure.words);
  return fmt::format("{} difference{}{}", measure.words, *measure.prefix == 0 ? "" : ", ",
                     measure.prefix);
}

std::string value_title(const Measure& measure) {
  return fmt::format("{}{}{}", measure.words, *measure.prefix == 0 ? "" : " ", measure.prefix);
}

std::string samples_text(const net::Dataset& data, std::int64_t samples, const char* split) {
  const char* const noun = data.kind() == net::DataKind::text     ? "window"
                           : data.kind() == net::DataKind::clicks ? "impression"
                           : data.input_shape().size() == 3       ? "image"
                                                                  : "sample";
  return fmt::format("{} {}{}{}", samples, split, noun, samples == 1 ? "" : "s");
}

std::string targets_text(const net::Dataset& data, const net::Evaluation& evaluation) {
  if (data.targets_per_sample() == 1) return samples_text(data, evaluation.n);
  const std::string_view noun = data.kind() == net::DataKind::text ? data.text_unit()
                                : data.target_shape().size() == 2  ? "pixel"
                                                                   : "place";
  return fmt::format("{} {}{} in {}", evaluation.n, noun, evaluation.n == 1 ? "" : "s",
                     samples_text(data, evaluation.samples));
}

std::vector<std::string> baseline_notes(const TrainedNet& trained) {
  std::vector<std::string> out;
  for (const auto& notes : {policies::notes_on_baseline(trained.path, trained.before.has_value()),
                            policies::notes_on_quantizers(trained.graph, trained.path)}) {
    for (const std::string& note : notes) out.push_back("Note: " + note);
  }
  return out;
}

void require_one_class(const net::Dataset& data, const std::string& what) {
  if (data.target() == net::TargetKind::classes && data.targets_per_sample() == 1) return;
  throw Error(fmt::format(
      "data set {}: {} counts right answers by sample and needs one class for each, found {}; "
      "eval, sweep, tune and the experiments post-training, sensitivity and allocation take others",
      data.name(), what,
      data.target() == net::TargetKind::classes
          ? fmt::format("{} classes a sample", data.targets_per_sample())
      : data.target() == net::TargetKind::values ? std::string("numbers as targets")
                                                 : std::string("no targets")));
}

}  // namespace numemu::experiments
