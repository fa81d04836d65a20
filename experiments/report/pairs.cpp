#include "experiments/report/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "experiments/engine/answers.hpp"
#include "experiments/report/names.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// Where it is the same, two rows saw the same samples.
std::string samples_of(const Record& r) {
  return r.net + '\n' + r.data + '\n' + json_text(*r.row, {"point", "images"}) + '\n' +
         json_text(*r.row, {"point", "eval_images"});
}

std::optional<std::vector<std::uint8_t>> answers_of(const Configuration& c) {
  if (c.rows.size() != 1 || !c.mean.judged.measure->is_top1()) return std::nullopt;
  const Json* const answers = json_at(*c.rows[0]->row, {"answers"});
  return answers ? read_answers(*answers) : std::nullopt;
}

double normal_quantile(double tail) {
  constexpr double kMany = 1e12;  // degrees of freedom: the normal law
  return stats::student_quantile(kMany, tail);
}

std::string best_of(int bits, std::vector<const Configuration*> all) {
  std::stable_sort(all.begin(), all.end(), [](const Configuration* a, const Configuration* b) {
    return std::pair(*a->loss(), -a->mean.sqnr_db.value_or(-HUGE_VAL)) <
           std::pair(*b->loss(), -b->mean.sqnr_db.value_or(-HUGE_VAL));
  });
  const Configuration& best = *all.front();
  std::vector<std::string> alike, unpaired;
  std::string next;
  for (auto other = all.begin() + 1; other != all.end(); ++other) {
    const std::optional<PairedLead> gain = paired_lead(best, **other, all.size() - 1);
    if (!gain) {
      unpaired.push_back((*other)->mean.name);
    } else if (!gain->told_apart()) {
      alike.push_back((*other)->mean.name);
    } else if (next.empty()) {
      next = fmt::format(", by {:.1f} [{:.1f}, {:.1f}] points over {}", 100 * gain->difference,
                         100 * gain->low, 100 * gain->high, (*other)->mean.name);
    }
  }
  std::string out = fmt::format("Best at {} bits: {}{}", bits, best.mean.name, next);
  if (!alike.empty())
    out += fmt::format("; {} {} not told apart from it", listed_names(alike),
                       alike.size() == 1 ? "is" : "are");
  if (!unpaired.empty())
    out += fmt::format("; not paired, since rows hold no answers or several seeds: {}",
                       listed_names(unpaired));
  return out + ".";
}

}  // namespace

std::optional<PairedLead> paired_lead(const Configuration& a, const Configuration& b,
                                      std::size_t comparisons) {
  const auto right_a = answers_of(a), right_b = answers_of(b);
  if (!right_a || !right_b || right_a->size() != right_b->size() || right_a->empty() ||
      samples_of(*a.rows[0]) != samples_of(*b.rows[0]))
    return std::nullopt;
  const stats::PairedAnswers counts = stats::count_answers(
      std::ssize(*right_a),
      [&](std::int64_t i) { return (*right_a)[static_cast<std::size_t>(i)] != 0; },
      [&](std::int64_t i) { return (*right_b)[static_cast<std::size_t>(i)] != 0; });
  const double z =
      normal_quantile(0.025 / static_cast<double>(std::max<std::size_t>(1, comparisons)));
  const stats::Interval interval = stats::paired_share(counts, 1, z);
  return PairedLead{
      static_cast<double>(counts.only1 - counts.only2) / static_cast<double>(counts.n),
      interval.low, interval.high};
}

std::vector<std::string> best_of_widths(const std::vector<Configuration>& all) {
  std::map<std::pair<std::string, int>, std::vector<const Configuration*>> widths;
  for (const Configuration& c : all) {
    const Record& r = c.mean;
    if (!r.weight.quantized || !r.activation.quantized || !c.loss() || !r.judged.measure->is_top1())
      continue;
    if (r.weight.bits && r.weight.bits == r.activation.bits)
      widths[{r.net + '\n' + r.data, *r.weight.bits}].push_back(&c);
  }
  std::vector<std::string> out;
  for (const auto& [width, same] : widths) {
    const bool any = std::any_of(same.begin(), same.end(),
                                 [](const Configuration* c) { return answers_of(*c).has_value(); });
    if (same.size() > 1 && any) out.push_back(best_of(width.second, same));
  }
  return out;
}

}  // namespace numemu::experiments
