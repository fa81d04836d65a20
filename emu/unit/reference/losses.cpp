#include "emu/unit/reference/losses.hpp"

#include <algorithm>

#include "emu/unit/kulisch.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/running_sums.hpp"

namespace numemu::unit {
namespace {

/// `wanted` minus `got`, where that is a number other than zero.
std::optional<Value> loss(std::initializer_list<Value> wanted, const Value& got) {
  std::vector<Value> terms(wanted);
  if (!is_finite(got) || !std::all_of(terms.begin(), terms.end(), is_finite)) return {};
  Exponents range;
  bool sticky = false;
  terms.push_back(-got);
  for (const Value& v : terms) {
    range.include(v);
    sticky |= v.sticky;
  }
  if (range.empty()) return {};
  Kulisch sum(range, static_cast<std::int64_t>(terms.size()));
  for (const Value& v : terms) sum.add(v);
  Value lost = sum.sum();
  lost.sticky |= sticky;
  if (lost.kind == Class::zero && !lost.sticky) return {};
  return lost;
}

std::vector<std::optional<Value>> term_losses(const TraceStep& step) {
  std::vector<std::optional<Value>> losses;
  const TraceTerm* before = nullptr;
  for (const TraceTerm& t : step.terms) {
    std::optional<Value> lost;
    if (t.error) {
      // Compensated sums lose nothing yet: the next product is corrected by it.
    } else if (t.after && before != nullptr && before->after) {
      lost = loss({*before->after, t.product}, *t.after);
    } else if (!t.after) {
      lost = loss({t.product}, t.kept);
    }
    losses.push_back(lost);
    before = &t;
  }
  return losses;
}

}  // namespace

std::vector<StepLosses> find_losses(const UnitDescription& unit, const Gemm& gemm, std::int64_t i,
                                    std::int64_t j, const Trace& trace) {
  std::vector<StepLosses> all;
  for (const TraceStep& step : trace.steps) {
    StepLosses& losses = all.emplace_back();
    losses.terms = term_losses(step);
    if (!step.sum || !step.result) continue;
    losses.rounding = loss({*step.sum}, held_after(unit, step));
  }
  const UnitDescription stored = as_stored(unit);
  const ReferenceDot dot(stored, gemm);
  const RunningSums running = running_sums(unit, trace);
  std::vector<Value> exact[2];  // without C, with C
  for (const RunningSum& sum : running.sums) {
    std::vector<Value>& sums = exact[sum.with_c ? 1 : 0];
    if (sums.empty()) sums = dot.exact_sums(i, j, running.order, sum.with_c);
    StepLosses& losses = all[sum.step];
    losses.exact = sums[static_cast<std::size_t>(sum.products)];
    losses.off = loss({sum.held}, *losses.exact);
  }
  return all;
}

Value exact_sum(std::initializer_list<Value> terms) {
  Exponents range{0, 1};
  for (const Value& v : terms) range.include(v);
  Kulisch sum(range, static_cast<std::int64_t>(terms.size()));
  for (const Value& v : terms) sum.add(v);
  return sum.sum();
}

bool is_finite(const Value& v) { return v.kind == Class::zero || v.kind == Class::finite; }

}  // namespace numemu::unit
