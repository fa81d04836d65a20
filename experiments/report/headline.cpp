#include "experiments/report/headline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/engine/judge.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/configurations.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "experiments/report/verdicts.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

std::string percent(double fraction) { return percent_text(fraction) + " %"; }

/// The name, which no other has, with the unit.
std::string describe(const ReportRow& r) {
  const std::string unit = " on " + short_unit(r.unit);
  return r.name.find(unit) == r.name.npos ? r.name + unit : r.name;
}

void say_baseline(const std::vector<ReportRow>& records, std::vector<std::string>& out) {
  std::set<std::string> said;
  for (const ReportRow& r : records) {
    const ReportRow* baseline = find_baseline(records, r);
    const std::string &net = r.row->point.net, &data = r.row->point.data;
    if (!said.insert(net + '\n' + data).second) continue;
    const std::string what = fmt::format("{} on {}", net.empty() ? "the network" : net,
                                         data.empty() ? "its data" : data);
    if (!r.judged.measure->is_top1()) {
      const std::string name = r.judged.measure->name;
      const char* targets = name == "bits_per_character" ? "characters"
                            : name == "bits_per_token"   ? "tokens"
                                                         : nullptr;
      if (r.judged.baseline && r.judged.measure->small > 0)
        out.push_back(fmt::format(
            "Unquantized, {} reaches {}{}.", what, r.judged.measure->text(*r.judged.baseline),
            targets ? fmt::format(" on {} {}", grouped(r.row->metrics.n), targets) : ""));
    } else if (baseline && baseline->row->metrics.top1) {
      const RowMetrics& m = baseline->row->metrics;
      std::string text = fmt::format("Unquantized, {} reaches {} top-1", what, percent(*m.top1));
      if (m.n) text += " on " + grouped(m.n) + " images";
      if (m.ci95 && m.ci95->known()) {
        text += fmt::format(" (95 % interval {} to {})", percent_text(*m.ci95->low),
                            percent(*m.ci95->high));
      }
      out.push_back(text + ".");
    } else if (const auto& top1 = r.row->metrics.baseline_top1) {
      out.push_back(fmt::format("Unquantized, {} reaches {} top-1.", what, percent(*top1)));
    }
  }
}

/// "12 lose less than 0.5 points, 3 lose that much or more, and 2 are undecided": as many as lists
/// name.
void say_losses(const std::vector<Configuration>& all, const Measure& measure,
                std::vector<std::string>& out) {
  if (measure.small == 0) {
    out.push_back(
        fmt::format("Configurations are compared by {}; no loss of it is judged.", measure.words));
    return;
  }
  const std::size_t less = labels_by_loss(all, Verdict::holds).size(),
                    more = labels_by_loss(all, Verdict::fails).size(),
                    undecided = labels_by_loss(all, Verdict::undecided).size();
  const std::size_t compared = less + more + undecided, units = compared_units(all);
  if (compared == 0) {
    out.push_back("No quantized configuration has been measured.");
    return;
  }
  const std::string limit = measure.loss_text(measure.small);
  std::string text =
      fmt::format("Of {} quantized configuration{}{}, {} lose{} less than {}", compared,
                  compared == 1 ? "" : "s", units > 1 ? fmt::format(" on {} units", units) : "",
                  less, less == 1 ? "s" : "", limit);
  if (more > 0)
    text += fmt::format("{} {} lose{} that much or more", undecided > 0 ? "," : " and", more,
                        more == 1 ? "s" : "");
  if (undecided > 0)
    text += fmt::format(", and {} {} undecided: the paired 95 % interval contains the limit",
                        undecided, undecided == 1 ? "is" : "are");
  if (undecided > 0 &&
      std::any_of(all.begin(), all.end(), [](const Configuration& c) { return c.rows.size() > 1; }))
    text += ", or seeds differ";
  out.push_back(text + ".");
}

/// If most of them fail, the headline warns the reader.
void say_predictions(const std::vector<ReportRow>& records, std::vector<std::string>& out) {
  const Tally outputs = judge_predictions(records).outputs;
  if (outputs.fails <= outputs.holds) return;
  std::string text =
      fmt::format("Of {} prediction{} of the output's SQNR, {} fail{}", outputs.compared(),
                  outputs.compared() == 1 ? "" : "s", outputs.fails, outputs.fails == 1 ? "s" : "");
  if (outputs.compared() > outputs.not_finite)
    text += fmt::format("; the median distance is {:.2f} dB", outputs.median);
  out.push_back(text + ".");
}

void say_not_finite(const std::vector<ReportRow>& records, std::vector<std::string>& out) {
  std::vector<std::string> outputs, inside;
  for (const ReportRow& r : records) {
    if (r.not_finite) (loses_numbers(r) ? outputs : inside).push_back(r.name);
  }
  if (!outputs.empty())
    out.push_back(fmt::format("NaN or infinite outputs: {}.", listed_names(outputs)));
  if (!inside.empty())
    out.push_back(
        fmt::format("NaN or infinite results inside, finite outputs: {}.", listed_names(inside)));
}

void say_cheapest(const std::vector<Configuration>& all, std::vector<std::string>& out) {
  const Configuration* found = cheapest_safe(all);
  if (!found) return;
  const ReportRow& best = found->mean;
  std::string bits = fmt::format("{:.2f}", *best.mean_bits());
  if (const RowBits& b = best.row->bits; b.weight && b.activation)
    bits += fmt::format(" (weights {:.2f}, activations {:.2f})", *b.weight, *b.activation);
  const std::string seeds =
      found->rows.size() > 1 ? fmt::format(" in the mean of {} seeds", found->rows.size()) : "";
  const Measure& measure = *best.judged.measure;
  const double value = best.judged.value.value_or(NAN);
  out.push_back(fmt::format(
      "The configuration with the fewest bits among those that lose less than {} has {} bits per "
      "element: {}, at {}{}.",
      measure.loss_text(measure.small), bits, describe(best),
      measure.is_top1()   ? percent(value)
      : measure.is_bits() ? fmt::format("{:.{}f}", value, measure.digits)
                          : measure.text(value),
      seeds));
}

}  // namespace

std::vector<std::string> headline(const std::vector<ReportRow>& records) {
  std::vector<std::string> out;
  const std::vector<Configuration> all = configurations(records);
  say_cheapest(all, out);
  say_losses(all, measure_of(records), out);
  say_predictions(records, out);
  say_not_finite(records, out);
  say_baseline(records, out);
  return out;
}

std::vector<std::string> prediction_sentences(const Verdicts& v) {
  std::vector<std::string> out;
  // The empirical error of a tensor is the same sum as the measured one: no prediction.
  if (v.weight_tensors + v.activation_tensors) {
    out.push_back(
        fmt::format("A fitted distribution was accepted for {} of {} weight and {} of {} "
                    "activation tensors, and "
                    "{} of the {} predictions made from these fits lie within {:.1f} dB.",
                    v.weight_accepted, v.weight_tensors, v.activation_accepted,
                    v.activation_tensors, v.fitted.holds, v.fitted.compared(), kFittedTolerance));
  }
  if (v.outputs.compared()) {
    out.push_back(fmt::format(
        "The predicted SQNR of the network's output holds (within {:g} dB) in {} of {} "
        "configurations{} it differs from the measured one by {:.2f} dB in the median and by at "
        "most {:.2f} dB.",
        kLayerHolds, v.outputs.holds, v.outputs.compared(),
        v.outputs.not_finite == 0
            ? ";"
            : fmt::format(", and fails in {} whose outputs are NaN or infinite; elsewhere",
                          v.outputs.not_finite),
        v.outputs.median, v.outputs.largest));
  }
  if (v.accuracy.compared())
    out.push_back(fmt::format(
        "The measured figure lies in the 95 % interval of what was expected in {} of {} "
        "configurations{}.",
        v.accuracy.holds, v.accuracy.compared(),
        v.accuracy.fails > 0 ? fmt::format(", and outside that of 99.9 % in {}", v.accuracy.fails)
                             : ""));
  if (v.not_predicted > 0)
    out.push_back(
        fmt::format("{} configuration{} no prediction of the output's SQNR; the table "
                    "of all points has the reasons.",
                    v.not_predicted, v.not_predicted == 1 ? " has" : "s have"));
  return out;
}

std::string conditions(const std::vector<ReportRow>& records) {
  std::set<std::string> rounding, overflow, scale;
  for (const ReportRow& r : records) {
    for (const auto& [role, name] :
         {std::pair(&r.weight, "weights"), {&r.activation, "activations"}}) {
      if (!role->quantized) continue;
      if (!role->rounding.empty()) rounding.insert(role->rounding);
      if (!role->overflow.empty()) overflow.insert(role->overflow);
      if (!role->scale.empty())
        scale.insert(fmt::format("{} per {} ({})", role->scale, role->granularity, name));
    }
  }
  std::string out;
  // More than a caption can hold: the table of points has them.
  constexpr std::size_t kListed = 4;
  const auto add = [&out](const char* name, const std::set<std::string>& words) {
    if (words.empty()) return;
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", name,
                       words.size() > kListed ? "by point" : joined(words, ", "));
  };
  add("rounding", rounding);
  add("overflow", overflow);
  add("scale", scale);
  return out.empty() ? "nothing quantized" : out;
}

}  // namespace numemu::experiments
