#include "emu/unit/reference/running_sums.hpp"

#include <algorithm>
#include <string_view>

#include "emu/unit/reference/register.hpp"

namespace numemu::unit {
namespace {

bool has_term(const TraceStep& step, std::string_view what) {
  return std::any_of(step.terms.begin(), step.terms.end(),
                     [&](const TraceTerm& t) { return t.what == what; });
}

class Reader {
 public:
  Reader(const UnitDescription& unit, const Trace& trace) : unit_(unit), trace_(trace) {}

  RunningSums run() {
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) {
      const TraceStep& step = trace_.steps[i];
      if (step.outer || step.what.starts_with("addition of ")) {
        join(i);
      } else {
        const bool from_zero = has_term(step, "start");
        if (from_zero) apart_ = true;
        if (has_term(step, "C") || has_term(step, "no C")) apart_ = false;
        add_products(i, from_zero);
      }
    }
    return std::move(out_);
  }

 private:
  /// The products of a step: of the register, or of a sum that joins it later.
  void add_products(std::size_t index, bool from_zero) {
    const TraceStep& step = trace_.steps[index];
    // The first sum from +0 is the register's until something joins it.
    const bool counts = !apart_ || (out_.order.empty() && !joined_ && (!from_zero || !pending()));
    bool each = false;
    for (std::size_t t = 0; t < step.terms.size(); ++t) {
      const TraceTerm& term = step.terms[t];
      if (term.k >= 0) (apart_ ? waiting_ : out_.order).push_back(term.k);
      if (!term.after) continue;
      each = true;
      if (counts) note(!apart_, index, t, *term.after);
    }
    if (counts && !each) note(!apart_, index, {}, held_after(unit_, step));
  }

  bool pending() const { return !waiting_.empty(); }

  /// Chains are added to each other first; then, as chunks, to C or the register.
  void join(std::size_t index) {
    const TraceStep& step = trace_.steps[index];
    const bool with_c = has_term(step, "C") || has_term(step, "no C") || has_term(step, "register");
    const bool last = index + 1 == trace_.steps.size();
    if (!with_c && !last) return;
    joined_ = true;
    out_.order.insert(out_.order.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
    note(with_c, index, {}, held_after(unit_, step));
  }

  void note(bool with_c, std::size_t step, std::optional<std::size_t> term, const Value& value) {
    const auto products = static_cast<std::int64_t>(out_.order.size() + waiting_.size());
    RunningSum sum{products, with_c, step, term, value};
    const bool again = !out_.sums.empty() && out_.sums.back().products == products &&
                       out_.sums.back().with_c == with_c;
    if (again) {
      out_.sums.back() = sum;
    } else {
      out_.sums.push_back(sum);
    }
  }

  const UnitDescription& unit_;
  const Trace& trace_;
  RunningSums out_;
  std::vector<std::int64_t> waiting_;  ///< products of sums that have not joined the register
  bool apart_ = false, joined_ = false;
};

}  // namespace

Value held_after(const UnitDescription& unit, const TraceStep& step) {
  if (!step.result) return {.kind = Class::nan};
  const Register& r = step.outer ? unit.outer.accumulator : unit.accumulator;
  std::uint64_t code = *step.result;
  if (r.format != nullptr) code <<= r.format->container_shift;
  return read_element(r.format, r, &code, 0);
}

RunningSums running_sums(const UnitDescription& unit, const Trace& trace) {
  return Reader(unit, trace).run();
}

}  // namespace numemu::unit
