#include "experiments/report/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/resampling.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/report/shared_notes.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments {
namespace {

constexpr double kTail = 0.025;
/// A jackknife costs as many figures as there are blocks.
constexpr std::int64_t kMostBlocks = 100;

/// Where it is the same, two rows saw the same samples.
std::string identity_of_samples(const ReportRow& r) {
  const RowPoint& point = r.row->point;
  return fmt::format("{}\n{}\n{}\n{}", point.net, point.data, point.images,
                     point.eval_images.value_or(-1));
}

/// What a row has of each sample: right answers or losses, or why it has neither.
struct Samples {
  std::optional<std::vector<std::uint8_t>> right;
  JudgedSums sums;
  std::string why_none;
};

Samples samples_of(const ReportRow& r) {
  Samples out;
  const Measure& measure = *r.judged.measure;
  if (r.row->answers && measure.is_top1()) {
    out.right = read_answers(*r.row->answers);
    if (!out.right || out.right->empty()) out.why_none = "answers damaged";
    return out;
  }
  if (!r.row->losses) {
    out.why_none = "rows without answers and losses";
    return out;
  }
  try {
    out.sums = read_losses(r.folder, *r.row);
    if (out.sums.score->name != (measure.is_bits() ? "bits_per_token" : measure.name))
      out.why_none = fmt::format("losses of {}", out.sums.score->name);
  } catch (const Error& error) {
    out.why_none = error.what();
  }
  return out;
}

/// Rows of two configurations with the same seed.
struct Pair {
  Samples a, b;
};

/// Why the two cannot be compared at one seed; "" where they can.
std::string why_not(const ReportRow& a, const ReportRow& b, const Pair& pair) {
  if (identity_of_samples(a) != identity_of_samples(b)) return "measured on other samples";
  for (const Samples* const side : {&pair.b, &pair.a}) {
    if (!side->why_none.empty()) return side->why_none;
  }
  const net::ScoreTable &own = pair.a.sums.table, &its = pair.b.sums.table;
  const bool alike = pair.a.right && pair.b.right
                         ? pair.a.right->size() == pair.b.right->size()
                         : own.columns == its.columns && own.samples() == its.samples() &&
                               !pair.a.right && !pair.b.right;
  return alike ? "" : "rows with other numbers of samples";
}

/// One pair for each seed; nothing, and why, where there is none.
std::vector<Pair> pairs_of(const Configuration& a, const Configuration& b, std::string& why) {
  std::vector<Pair> out;
  if (a.mean.judged.measure != b.mean.judged.measure) why = "judged by another metric";
  if (a.rows.size() != b.rows.size()) why = "measured with other seeds";
  for (const ReportRow* const row : a.rows) {
    if (!why.empty()) return {};
    const auto other = std::ranges::find(b.rows, row->seed, &ReportRow::seed);
    if (other == b.rows.end()) {
      why = "measured with other seeds";
    } else {
      out.push_back({samples_of(*row), samples_of(**other)});
      why = why_not(*row, **other, out.back());
      if (out.back().a.sums.table.samples() != out.front().a.sums.table.samples())
        why = "rows with other numbers of samples";
    }
  }
  return why.empty() ? out : std::vector<Pair>();
}

/// Leads of each seed, and the interval that samples leave around their mean.
struct OfSamples {
  std::vector<double> leads;
  stats::Interval interval;
};

/// Counts of all seeds together: as if a sample's answers were alike under all of them, so that
/// many seeds do not stand for many samples.
OfSamples of_answers(const std::vector<Pair>& pairs, double tail) {
  OfSamples out;
  stats::PairedAnswers all;
  for (const Pair& pair : pairs) {
    const stats::PairedAnswers counts = stats::count_answers(
        std::ssize(*pair.a.right),
        [&](std::int64_t i) { return (*pair.a.right)[static_cast<std::size_t>(i)] != 0; },
        [&](std::int64_t i) { return (*pair.b.right)[static_cast<std::size_t>(i)] != 0; });
    out.leads.push_back(static_cast<double>(counts.only1 - counts.only2) /
                        static_cast<double>(counts.n));
    all = {all.both + counts.both, all.only1 + counts.only1, all.only2 + counts.only2,
           all.n + counts.n};
  }
  out.interval =
      stats::paired_share(all, 1, -normal::quantile(tail), 1 / static_cast<double>(pairs.size()));
  return out;
}

OfSamples of_losses(const std::vector<Pair>& pairs, const JudgedFigure& judged, double tail) {
  const double unit = (judged.measure->falls ? -1 : 1) /
                      (judged.measure->relative ? std::abs(judged.baseline.value_or(NAN)) : 1);
  std::vector<std::pair<net::Figure, net::Figure>> figures;
  for (const auto& [own, other] : pairs) {
    figures.emplace_back(own.sums.score->figure(own.sums.table),
                         own.sums.score->figure(other.sums.table));
  }
  // Of all seeds alike, as their data are.
  const std::int64_t n = pairs.front().a.sums.table.samples(),
                     block = std::max(block_length(n), n / kMostBlocks),
                     blocks = (n + block - 1) / block;
  std::vector<std::int64_t> times(static_cast<std::size_t>(n), 1);
  OfSamples out;
  const auto lead = [&](std::int64_t i) {
    const auto& both = figures[static_cast<std::size_t>(i)];
    return unit * (both.first(times) - both.second(times));
  };
  for (std::int64_t i = 0; i < std::ssize(pairs); ++i) out.leads.push_back(lead(i));
  const auto all_but = [&](std::int64_t left_out) {
    const auto fill = [&](std::int64_t count) {
      std::fill(times.begin() + left_out * block,
                times.begin() + std::min(n, (left_out + 1) * block), count);
    };
    fill(0);
    const double sum = pairwise_sum(std::ssize(pairs), lead);
    fill(1);
    return sum / static_cast<double>(pairs.size());
  };
  const double mean = stats::mean_of(out.leads).value;
  const double half = blocks < 2 ? HUGE_VAL
                                 : stats::student_quantile(static_cast<double>(blocks - 1), tail) *
                                       stats::jackknife_error(blocks, all_but);
  out.interval = {mean - half, mean + half};
  return out;
}

/// "2.0 [1.6, 2.4] points": no more decimals than the interval needs to have two ends that differ,
/// also from 0.
std::string lead_text(const Measure& measure, const PairedLead& lead) {
  const double factor = measure.relative ? 100 : measure.factor;
  int digits = factor == 100 ? 1 : std::min(measure.digits, 2);
  const double nearest = factor * std::min(std::abs(lead.low), std::abs(lead.high));
  const double width = factor * (lead.high - lead.low);
  while (digits < 8 && std::min(nearest, width) < portable::pow(10, -digits)) ++digits;
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}] {}", factor * lead.difference, digits,
                     factor * lead.low, digits, factor * lead.high, digits, measure.unit);
}

/// Pairs of so many; the best of them is one of each of its own.
std::size_t pairs_among(std::size_t count) { return count * (count - 1) / 2; }

/// `where`: "at 6 bits". One that is not told apart from others is called what it is, the first by
/// the measure, not the best.
std::string best_of(const std::string& where, std::vector<const Configuration*> all) {
  std::stable_sort(all.begin(), all.end(), [](const Configuration* a, const Configuration* b) {
    return std::pair(*a->loss(), -a->mean.sqnr_db.value_or(-HUGE_VAL)) <
           std::pair(*b->loss(), -b->mean.sqnr_db.value_or(-HUGE_VAL));
  });
  const Configuration& best = *all.front();
  const Measure& measure = *best.mean.judged.measure;
  std::vector<std::string> alike;
  std::vector<std::pair<std::string, std::vector<std::string>>> unpaired;  // by reason
  std::size_t behind = 0;
  std::string next;
  for (auto other = all.begin() + 1; other != all.end(); ++other) {
    const Pairing pairing = paired(best, **other, pairs_among(all.size()));
    const std::string& name = (*other)->mean.name;
    if (!pairing.lead) {
      auto found = std::ranges::find(unpaired, pairing.why_not,
                                     [](const auto& reason) { return reason.first; });
      if (found == unpaired.end())
        found = unpaired.insert(found, {pairing.why_not, std::vector<std::string>()});
      found->second.push_back(name);
    } else if (!pairing.lead->told_apart()) {
      alike.push_back(name);
    } else {
      ++behind;
      if (next.empty())
        next = fmt::format(", by {} over {}", lead_text(measure, *pairing.lead), name);
    }
  }
  std::string out = fmt::format("{} {} {}: {}", measure.falls ? "Lowest" : "Highest", measure.words,
                                where, best.mean.name);
  if (const std::size_t others = all.size() - 1; behind < others)
    out += fmt::format(", told apart from {} of {} others", behind, others);
  out += next;
  if (alike.size() == 1) out += fmt::format("; {} is not told apart from it", alike[0]);
  if (alike.size() > 1)
    out += fmt::format("; {} others are not told apart from it: {}", alike.size(),
                       listed_names(alike));
  for (const auto& [why, names] : unpaired)
    out += fmt::format("; not paired: {} ({})", listed_names(names), why);
  return out + ".";
}

}  // namespace

Pairing paired(const Configuration& a, const Configuration& b, std::size_t comparisons) {
  std::string why;
  const std::vector<Pair> pairs = pairs_of(a, b, why);
  if (!why.empty()) return {std::nullopt, why};
  const double tail = kTail / static_cast<double>(std::max<std::size_t>(1, comparisons));
  const OfSamples samples =
      pairs.front().a.right ? of_answers(pairs, tail) : of_losses(pairs, a.mean.judged, tail);
  const stats::Mean mean = stats::mean_of(samples.leads);
  const std::size_t seeds = samples.leads.size();
  const double of_seeds =
      seeds < 2 ? 0 : stats::student_quantile(static_cast<double>(seeds - 1), tail) * mean.error;
  PairedLead lead{mean.value,
                  mean.value - portable::hypot(mean.value - samples.interval.low, of_seeds),
                  mean.value + portable::hypot(samples.interval.high - mean.value, of_seeds)};
  if (!std::isfinite(lead.difference)) return {std::nullopt, "losses that are not finite"};
  return {lead, ""};
}

namespace {

bool any_samples(const std::vector<const Configuration*>& all) {
  return std::ranges::any_of(all, [](const Configuration* c) {
    const Row& row = *c->rows.front()->row;
    return row.answers || row.losses;
  });
}

}  // namespace

std::vector<std::string> best_of_widths(const std::vector<Configuration>& all) {
  std::map<std::pair<std::string, int>, std::vector<const Configuration*>> widths;
  for (const Configuration& c : all) {
    const ReportRow& r = c.mean;
    if (!r.weight.quantized || !r.activation.quantized || !c.loss()) continue;
    if (r.weight.bits && r.weight.bits == r.activation.bits)
      widths[{r.row->point.net + '\n' + r.row->point.data + '\n' + r.judged.measure->name,
              *r.weight.bits}]
          .push_back(&c);
  }
  std::vector<std::string> out;
  for (const auto& [width, same] : widths) {
    if (same.size() > 1 && any_samples(same))
      out.push_back(best_of(fmt::format("at {} bits", width.second), same));
  }
  return out;
}

std::string best_of_all(const std::vector<Configuration>& all) {
  std::vector<const Configuration*> quantized;
  for (const Configuration& c : all)
    if (c.mean.quantized() && c.loss()) quantized.push_back(&c);
  if (quantized.size() < 2 || !any_samples(quantized)) return "";
  return best_of(
      fmt::format("of {} measured (intervals at 95 % for all pairs together)", quantized.size()),
      quantized);
}

}  // namespace numemu::experiments
