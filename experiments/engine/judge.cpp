#include "experiments/engine/judge.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "emu/stats/paired.hpp"
#include "formats/analysis/normal_law.hpp"

namespace numemu::experiments {
namespace {

double miss(const Finding& finding) {
  const double size = std::max(std::fabs(finding.predicted), std::fabs(finding.measured));
  return size > 0 ? std::fabs(finding.measured - finding.predicted) / size : 0;
}

int badness(Verdict verdict) {
  return verdict == Verdict::fails       ? 3
         : verdict == Verdict::undecided ? 2
         : verdict == Verdict::holds     ? 1
                                         : 0;
}

/// Of a claim with two ends half of what lies between them, else NaN.
double tolerance_of(const Allowed& allowed) {
  const double half = (allowed.high - allowed.low) / 2;
  return std::isinf(half) ? NAN : half;
}

double margin_in(double measured, const Allowed& allowed) {
  const double inside = std::min(measured - allowed.low, allowed.high - measured);
  const double half = (allowed.high - allowed.low) / 2;
  return std::isinf(half) ? inside : half > 0 ? inside / half : NAN;
}

/// Says where a test alone would have decided, of one that does not among all.
void say_corrected(Finding& finding, double p) {
  constexpr double kLevel = 0.05;
  if (finding.verdict == Verdict::undecided && p < kLevel) finding.what += kAfterHolm;
}

}  // namespace

bool worse(const Finding& a, const Finding& b) {
  if (badness(a.verdict) != badness(b.verdict)) return badness(a.verdict) > badness(b.verdict);
  const bool known = !std::isnan(a.margin) && !std::isnan(b.margin);
  return known ? a.margin < b.margin : miss(a) > miss(b);
}

Verdict verdict_on(const stats::Interval& measured, const Allowed& allowed) {
  return decide(measured.low >= allowed.low && measured.high <= allowed.high,
                measured.high < allowed.low || measured.low > allowed.high);
}

Finding unjudged(std::string what, double predicted, double measured, double error) {
  const double half = stats::kNormal95 * error;
  return {std::move(what), predicted, measured, measured - half, measured + half};
}

Finding interval_finding(std::string what, double predicted, double measured,
                         const stats::Interval& interval, const Allowed& allowed) {
  return {.what = std::move(what),
          .predicted = predicted,
          .measured = measured,
          .low = interval.low,
          .high = interval.high,
          .verdict = verdict_on(interval, allowed),
          .margin = margin_in(measured, allowed),
          .tolerance = tolerance_of(allowed)};
}

Finding exact_finding(std::string what, double predicted, double measured, bool holds,
                      const Allowed& allowed) {
  return {.what = std::move(what),
          .predicted = predicted,
          .measured = measured,
          .low = measured,
          .high = measured,
          .verdict = decide(holds, !holds),
          .margin = margin_in(measured, allowed),
          .tolerance = tolerance_of(allowed)};
}

Finding self_check(std::string what, double expected, double measured, bool holds) {
  Finding finding = exact_finding(std::move(what), expected, measured, holds);
  finding.self_check = true;
  return finding;
}

Finding model_finding(std::string what, double predicted, double measured, double error,
                      double tolerance) {
  Finding finding = unjudged(std::move(what), predicted, measured, error);
  const Allowed allowed = near(predicted, tolerance);
  const double width = kErrors * error;
  finding.verdict =
      decide(verdict_on({finding.low, finding.high}, allowed) == Verdict::holds,
             verdict_on({measured - width, measured + width}, allowed) == Verdict::fails);
  finding.margin = margin_in(measured, allowed);
  finding.tolerance = tolerance;
  return finding;
}

Finding closed_form(std::string what, double predicted, double measured, double error, bool enough,
                    double tolerance) {
  constexpr double kRounding = 1e-6;  // of what is certain, in float32
  const double size = std::fabs(predicted);
  Finding finding =
      model_finding(std::move(what), predicted, measured, error,
                    (std::isnan(tolerance) ? kClosedForm * size : tolerance) + kRounding * size);
  // What is equal whatever was drawn needs no sample that tells its error.
  const bool identity = std::fabs(measured - predicted) <= kRounding * size &&
                        finding.high - finding.low <= kRounding * size;
  if (enough || identity || finding.verdict == Verdict::undecided) return finding;
  finding.verdict = Verdict::undecided;
  finding.what += "; too few numbers tell its error";
  return finding;
}

void Judged::add(std::string what, double predicted, double measured, double error,
                 double tolerance) {
  const double beyond = std::fabs(predicted - measured) - tolerance;
  add(unjudged(std::move(what), predicted, measured, error), tolerance,
      beyond <= 0 ? 1
      : error > 0 ? normal::cdf(-beyond / error)
                  : 0);
}

void Judged::add(Finding finding, double tolerance, double p) {
  const Allowed allowed = near(finding.predicted, tolerance);
  if (verdict_on({finding.low, finding.high}, allowed) != Verdict::fails) p = 1;
  findings_.push_back(std::move(finding));
  tolerances_.push_back(tolerance);
  p_values_.push_back(p);
}

std::vector<Finding> Judged::findings() const {
  std::vector<Finding> judged = findings_;
  const std::vector<bool> rejected = stats::holm(p_values_);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    Finding& finding = judged[i];
    const Allowed allowed = near(finding.predicted, tolerances_[i]);
    const bool within = verdict_on({finding.low, finding.high}, allowed) == Verdict::holds;
    finding.verdict = decide(within && !rejected[i], rejected[i]);
    say_corrected(finding, p_values_[i]);
    finding.margin = margin_in(finding.measured, allowed);
    finding.tolerance = tolerances_[i];
  }
  return judged;
}

void judge_signs(std::span<Finding> findings, const std::vector<double>& above,
                 const std::vector<double>& below) {
  const auto of_both_sides = [](std::vector<double> tails) {
    for (double& p : tails) p = std::min(1.0, 2 * p);
    return tails;
  };
  const std::vector<bool> holds = stats::holm(of_both_sides(above)),
                          fails = stats::holm(of_both_sides(below));
  for (std::size_t i = 0; i < findings.size(); ++i) {
    findings[i].verdict = decide(holds[i], fails[i]);
    say_corrected(findings[i], 2 * std::min(above[i], below[i]));
    findings[i].margin = margin_in(findings[i].measured, at_least(0));
  }
}

void judge_sides(std::span<Finding> findings, const std::vector<double>& p_values) {
  const std::vector<bool> rejected = stats::holm(p_values);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Finding& finding = findings[i];
    finding.verdict = decide(rejected[i] && finding.measured > finding.predicted, rejected[i]);
    say_corrected(finding, p_values[i]);
    finding.margin = margin_in(finding.measured, at_least(finding.predicted));
  }
}

void judge_diverged(Finding& finding) {
  if (finding.verdict == Verdict::holds) finding.verdict = Verdict::undecided;
}

std::vector<Finding> without_verdict(std::vector<Finding> findings, const std::string& why) {
  for (Finding& finding : findings) {
    finding.verdict = Verdict::none;
    if (const std::size_t at = finding.what.find(kAfterHolm); at != std::string::npos)
      finding.what.erase(at, std::string_view(kAfterHolm).size());
    finding.what += "; " + why;
  }
  return findings;
}

}  // namespace numemu::experiments
