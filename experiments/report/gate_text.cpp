#include "experiments/report/gate_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/findings.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments {

std::string gate_verdict(const Record& r) {
  return r.row != nullptr && r.row->gate ? r.row->gate->verdict : "";
}

namespace {

/// "1.7 million", "15,000": two digits, as many as an estimate has, and not fewer samples.
std::string rough(double samples) {
  constexpr double kMillion = 1e6, kTwoDigits = 100;
  if (samples < kTwoDigits) return grouped(samples);
  const double unit = portable::pow(10, std::floor(portable::log10(samples)) - 1);
  const double round = std::ceil(samples / unit) * unit;
  return round < kMillion ? grouped(round) : fmt::format("{:g} million", round / kMillion);
}

/// The margin's interval is not known, as of one sample.
bool has_no_interval(const RowGate& gate) {
  return !gate.margin_ci99 || !gate.margin_ci99->known();
}

std::optional<double> needed_by(const RowGate& gate) {
  return gate.images_needed ? std::optional(static_cast<double>(*gate.images_needed))
                            : std::nullopt;
}

std::string target_of(const Record& r) {
  return r.row != nullptr && r.row->gate ? r.row->gate->target : "";
}

}  // namespace

std::string gate_words(const Record& r) {
  const std::string verdict = gate_verdict(r);
  if (verdict != "undecided") return verdict;
  const std::optional<double> needed = needed_by(*r.row->gate);
  return needed ? fmt::format("undecided, needs about {}", rough(*needed)) : verdict;
}

std::vector<std::string> gate_sentences(const std::vector<Record>& records,
                                        const std::string& unfinished) {
  std::vector<std::string> targets, out;
  for (const Record& r : records) {
    const std::string target = target_of(r);
    if (!target.empty() && std::ranges::find(targets, target) == targets.end())
      targets.push_back(target);
  }
  for (const std::string& target : targets) {
    std::vector<std::string> failed, open;
    std::size_t judged = 0, passed = 0, decidable = 0, unknown = 0;
    double needed = 0;
    for (const Record& r : records) {
      if (target_of(r) != target) continue;
      const std::string verdict = gate_verdict(r);
      ++judged;
      passed += verdict == "pass";
      if (verdict == "fail") failed.push_back(r.name);
      if (verdict != "undecided") continue;
      open.push_back(r.name);
      const std::optional<double> of_row = needed_by(*r.row->gate);
      decidable += of_row.has_value();
      unknown += !of_row && has_no_interval(*r.row->gate);
      needed = std::max(needed, of_row.value_or(0));
    }
    std::string text = fmt::format("Gate {} at 99 %{}: {} of {} pass", target,
                                   target.ends_with("float32") ? ", paired" : "", passed, judged);
    if (!failed.empty()) text += fmt::format("; {} fail ({})", failed.size(), listed_names(failed));
    if (!open.empty()) {
      text += fmt::format("; {} undecided ({})", open.size(), listed_names(open));
      if (decidable > 0) text += fmt::format(", about {} samples would decide", rough(needed));
      const std::size_t never = open.size() - decidable - unknown;  // whose margin is 0
      if (decidable > 0 && decidable < open.size()) text += fmt::format(" {} of them", decidable);
      if (unknown > 0)
        text += unknown < open.size()
                    ? fmt::format(", {} without an interval, which needs more samples", unknown)
                    : ", without an interval, which needs more samples";
      if (never == open.size()) text += ", which more samples would not decide";
    }
    if (!unfinished.empty())
      text += fmt::format("; {}{}", unfinished,
                          failed.empty() ? ", so the gate as a whole is undecided" : "");
    out.push_back(text + ".");
  }
  return out;
}

}  // namespace numemu::experiments
