#include "experiments/report/configurations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "experiments/engine/judge.hpp"
#include "experiments/report/names.hpp"
#include "experiments/report/pairs.hpp"
#include "experiments/report/report_row.hpp"

namespace numemu::experiments {
namespace {

/// Points that lose more are not listed, unless all do.
bool is_hopeless(const Configuration& c) {
  const double hopeless = c.mean.judged.measure->hopeless;
  return hopeless > 0 && *c.loss() > hopeless;
}

/// Fewer bits first, then less loss, then the higher SQNR.
bool is_better(const Configuration& a, const Configuration& b) {
  const auto order = [](const Configuration& c) {
    return std::tuple(*c.mean.mean_bits(), *c.loss(), -c.mean.sqnr_db.value_or(-HUGE_VAL));
  };
  return order(a) < order(b);
}

std::vector<const Configuration*> in_order(std::vector<const Configuration*> all) {
  std::stable_sort(all.begin(), all.end(), [](const Configuration* a, const Configuration* b) {
    return is_better(*a, *b);
  });
  return all;
}

/// How many of the first have as many bits.
std::size_t same_bits(std::span<const Configuration* const> ordered) {
  const double bits = *ordered.front()->mean.mean_bits();
  return static_cast<std::size_t>(
      std::find_if(ordered.begin(), ordered.end(),
                   [&](const Configuration* c) { return *c->mean.mean_bits() != bits; }) -
      ordered.begin());
}

/// Of those with the fewest bits the best one; of those that are not told apart from it, the one
/// with the highest SQNR, which samples' noise decides less.
const Configuration* cheapest(std::span<const Configuration* const> ordered) {
  const Configuration* chosen = ordered.front();
  for (const Configuration* other : ordered.first(same_bits(ordered)).subspan(1)) {
    const std::optional<PairedLead> lead = paired(*ordered.front(), *other).lead;
    if (lead && !lead->told_apart() && other->mean.sqnr_db > chosen->mean.sqnr_db) chosen = other;
  }
  return chosen;
}

/// The mean of a measure over rows; nothing where one lacks it.
template <class Get>
std::optional<double> mean_of(const std::vector<const ReportRow*>& rows, const Get& get) {
  double sum = 0;
  for (const ReportRow* r : rows) {
    const std::optional<double>& value = get(*r);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(rows.size());
}

}  // namespace

Verdict loses_little(const ReportRow& r) {
  const double small = r.judged.measure->small;
  if (!r.quantized() || !r.judged.loss() || small == 0) return Verdict::none;
  const auto interval = r.judged.loss_interval();
  if (!interval) return Verdict::undecided;
  return verdict_on({interval->first, interval->second}, at_most(std::nextafter(small, 0)));
}

const ReportRow* find_baseline(const std::vector<ReportRow>& records, const ReportRow& of) {
  const ReportRow* any_seed = nullptr;
  for (const ReportRow& r : records) {
    if (r.quantized() || r.is_tuned() || r.row->point.net != of.row->point.net ||
        r.row->point.data != of.row->point.data)
      continue;
    if (r.seed == of.seed) return &r;
    if (!any_seed) any_seed = &r;
  }
  return any_seed;
}

std::optional<double> Configuration::loss() const { return mean.judged.loss(); }

std::pair<double, double> Configuration::losses() const {
  std::pair<double, double> out{HUGE_VAL, -HUGE_VAL};
  for (const ReportRow* r : rows) {
    const double loss = r->judged.loss().value_or(NAN);
    out = {std::fmin(out.first, loss), std::fmax(out.second, loss)};
  }
  return out;
}

std::vector<Configuration> configurations(const std::vector<ReportRow>& records) {
  std::vector<Configuration> out;
  std::vector<ReportRow> means;
  for (const std::vector<std::size_t>& places : same_but_seed(records)) {
    Configuration c;
    for (const std::size_t i : places) c.rows.push_back(&records[i]);
    ReportRow mean = *c.rows.front();
    if (c.rows.size() > 1) {
      for (const auto measure :
           {&ReportRow::difference, &ReportRow::sqnr_db, &ReportRow::predicted_sqnr_db})
        mean.*measure = mean_of(c.rows, [&](const ReportRow& r) { return r.*measure; });
      for (const auto figure :
           {&JudgedFigure::value, &JudgedFigure::baseline, &JudgedFigure::difference})
        mean.judged.*figure = mean_of(c.rows, [&](const ReportRow& r) { return r.judged.*figure; });
      for (const auto end : {&JudgedFigure::low, &JudgedFigure::high, &JudgedFigure::difference_low,
                             &JudgedFigure::difference_high})
        mean.judged.*end = std::nullopt;
      mean.sqnr_error_db = std::nullopt;
      for (const ReportRow* r : c.rows) mean.not_finite = mean.not_finite || r->not_finite;
    }
    means.push_back(std::move(mean));
    out.push_back(std::move(c));
  }
  name_rows(means, false);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].mean = std::move(means[i]);
  return out;
}

Verdict loses_little(const Configuration& c) {
  if (!c.mean.quantized() || !c.loss()) return Verdict::none;
  VerdictCounts seeds;
  for (const ReportRow* r : c.rows) seeds.add(loses_little(*r));
  return decide(seeds.holds == c.rows.size(), seeds.fails == c.rows.size());
}

const Configuration* cheapest_safe(const std::vector<Configuration>& all) {
  std::vector<const Configuration*> safe;
  for (const Configuration& c : all) {
    if (loses_little(c) == Verdict::holds && c.mean.mean_bits()) safe.push_back(&c);
  }
  return safe.empty() ? nullptr : cheapest(in_order(safe));
}

const ReportRow* cheapest_safe(const std::vector<ReportRow>& records) {
  const std::vector<Configuration> all = configurations(records);
  const Configuration* best = cheapest_safe(all);
  return best ? best->rows.front() : nullptr;
}

BestPoints best_points(const std::vector<Configuration>& all, std::size_t most) {
  std::vector<const Configuration*> sorted, front;
  for (const Configuration& c : all) {
    if (c.mean.quantized() && c.mean.mean_bits() && c.loss()) sorted.push_back(&c);
  }
  sorted = in_order(std::move(sorted));
  const auto better = [](const Configuration* a, const Configuration* b) {
    return is_better(*a, *b);
  };
  // A point with more bits has to be better beyond the noise of the samples.
  for (std::span<const Configuration* const> left = sorted; !left.empty();) {
    const Configuration* const chosen = cheapest(left);
    left = left.subspan(same_bits(left));
    if (!front.empty()) {
      const std::optional<PairedLead> lead = paired(*chosen, *front.back()).lead;
      if (lead ? lead->low <= 0 : *chosen->loss() >= *front.back()->loss()) continue;
    }
    front.push_back(chosen);
  }
  // The safe one is listed even if one with a wider interval has fewer bits.
  if (const Configuration* safe = cheapest_safe(all);
      safe && std::find(front.begin(), front.end(), safe) == front.end())
    front.insert(std::upper_bound(front.begin(), front.end(), safe, better), safe);
  std::string left_out;
  const auto good = std::find_if(front.begin(), front.end(),
                                 [](const Configuration* c) { return !is_hopeless(*c); });
  if (good != front.end() && good != front.begin()) {
    const Measure& measure = *(*good)->mean.judged.measure;
    left_out = fmt::format(
        "Configurations that {} more than {} are left out.", measure.falls ? "add" : "lose",
        measure.factor == 1
            ? measure.loss_text(measure.hopeless)
            : fmt::format("{:g} {}", measure.factor * measure.hopeless, measure.unit));
    front.erase(front.begin(), good);
  }
  if (front.size() > most) {
    left_out += fmt::format("{}Only the {} with the most bits are shown.",
                            left_out.empty() ? "" : " ", most);
    front.erase(front.begin(), front.end() - static_cast<long>(most));
  }
  return {front, left_out};
}

std::vector<std::string> labels_by_loss(const std::vector<Configuration>& all, Verdict wanted) {
  // label -> configurations, of them wanted
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  std::size_t units = 1;
  for (const Configuration& c : all) {
    const Verdict own = loses_little(c);
    if (own == Verdict::none) continue;
    auto& [found, same] = counts[c.mean.label];
    ++found;
    same += own == wanted;
    units = std::max(units, found);
  }
  std::vector<std::string> out;
  for (const Configuration& c : all) {
    if (loses_little(c) != wanted) continue;
    const auto [found, same] = counts.at(c.mean.label);
    const bool every = found == units || found == 1;
    const std::string name = same < found ? c.mean.name
                             : every      ? c.mean.label
                                          : fmt::format("{} ({} units)", c.mean.label, found);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::size_t compared_units(const std::vector<Configuration>& all) {
  std::set<std::string> units;
  for (const Configuration& c : all) {
    if (loses_little(c) != Verdict::none) units.insert(c.mean.unit);
  }
  return units.size();
}

const Measure& measure_of(const std::vector<ReportRow>& records) {
  const Measure* first = nullptr;
  for (const ReportRow& r : records) {
    const bool top1 = r.judged.measure->is_top1();
    if (r.judged.value && !top1) return *r.judged.measure;
    if (r.judged.value || (!first && !top1)) first = r.judged.measure;
  }
  return first ? *first : *judged_of({}).measure;
}

}  // namespace numemu::experiments
