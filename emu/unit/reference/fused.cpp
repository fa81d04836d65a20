// The fused step: align to the largest exponent, cut, add exactly, round once (tensor cores).
#include <algorithm>
#include <optional>

#include "emu/unit/reference/alignment.hpp"
#include "emu/unit/reference/register.hpp"
#include "emu/unit/reference/step.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

Value times_power(Value v, int exponent) {
  v.exponent += exponent;
  return v;
}

/// Infinities and NaN of the addends decide before anything is aligned.
std::optional<Value> special_sum(std::span<const Term> terms) {
  bool nan = false, positive = false, negative = false;
  for (const Term& t : terms) {
    nan |= t.value.kind == Class::nan;
    if (t.value.kind == Class::infinite) (t.value.negative ? negative : positive) = true;
  }
  if (nan || (positive && negative)) return Value{.kind = Class::nan};
  if (positive || negative) return Value{.kind = Class::infinite, .negative = negative};
  return std::nullopt;
}

/// A product beyond float32 counts as infinite where the unit defines it so.
Value infinite_if_beyond(const Machine& m, const Value& v) {
  constexpr int kFloat32Top = 128;
  if (!m.unit.products_overflow || v.kind != Class::finite) return v;
  if (leading_exponent(v) < kFloat32Top) return v;
  m.flags |= kOverflow | kInexact;
  return {.kind = Class::infinite, .negative = v.negative};
}

class FusedStep {
 public:
  /// `c_name` is what the trace calls the register before the step.
  FusedStep(const Machine& machine, std::span<const Factors> products, const char* c_name)
      : m_(machine), unit_(machine.unit), c_name_(c_name) {
    terms_.reserve(products.size() + 1);
    if (m_.trace != nullptr) trace_ = &add_step(m_, step_name(*m_.trace, products));
    nan_operand_ = any_nan(products);
    if (unit_.scaling.point == Scaling::Point::groups) {
      add_groups(products);
    } else {
      for (const Factors& f : products) add_product(f);
    }
  }

  /// The register after the step.
  Value run(const Value& c) {
    const Alignment& al = unit_.alignment;
    const Term c_term{c, exponent_of(m_.c, c, al.zero_c_counts ? al.zero_exponent : std::nullopt)};
    terms_.push_back(c_term);
    if (const auto special = special_sum(terms_)) {
      check_invalid(m_, *special, nan_operand_ || c.kind == Class::nan);
      // Nothing is aligned then: the trace shows the addends as they are.
      if (trace_ != nullptr) {
        for (const std::size_t at : traced_) trace_->terms[at].kept = trace_->terms[at].product;
        trace_->terms.push_back(start_term(m_, c_name_, c));
      }
      return finish(*special);
    }
    const bool meets_later = unit_.c_entry == CEntry::after_alignment;
    if (meets_later) terms_.pop_back();
    const Value sum = meets_later ? meet(c_term) : add(0, 1);
    if (trace_ != nullptr && !meets_later) note_aligned(c_name_, c_term, c_kept_);
    return finish(sum);
  }

 private:
  void add_product(const Factors& f) {
    const auto& of_zero = unit_.alignment.zero_exponent;
    const auto ea = exponent_of(m_.a, f.a, of_zero), eb = exponent_of(m_.b, f.b, of_zero);
    Term& term = terms_.emplace_back();
    term.value = exact_product(f.a, f.b);
    if (ea && eb) term.exponent = *ea + *eb;
    if (unit_.scaling.point == Scaling::Point::exponents) scale(f, term);
    term.value = infinite_if_beyond(m_, term.value);
    if (trace_ != nullptr) note(f, term);
  }

  void scale(const Factors& f, Term& term) const {
    if (f.scale_a.kind == Class::nan || f.scale_b.kind == Class::nan) {
      term.value = {.kind = Class::nan};
      return;
    }
    const int exponent = scale_of(*unit_.scaling.format, f.scale_a).exponent +
                         scale_of(*unit_.scaling.format, f.scale_b).exponent;
    term.value = times_power(term.value, exponent);
    if (term.exponent) *term.exponent += exponent;
  }

  /// Sums of 16 products, exact, times both significands of their scales, are the addends. Their
  /// exponent is that of the scales alone.
  void add_groups(std::span<const Factors> products) {
    constexpr std::size_t kGroup = 16;
    for (std::size_t first = 0; first < products.size(); first += kGroup) {
      const auto group = products.subspan(first, std::min(kGroup, products.size() - first));
      const Factors& f = group.front();
      Term term;
      if (f.scale_a.kind == Class::nan || f.scale_b.kind == Class::nan) {
        term.value = {.kind = Class::nan};
      } else {
        m_.sum.clear();
        for (const Factors& one : group) m_.sum.add_product(one.a, one.b);
        const Scale a = scale_of(*unit_.scaling.format, f.scale_a);
        const Scale b = scale_of(*unit_.scaling.format, f.scale_b);
        term.exponent = a.exponent + b.exponent;
        term.value = m_.sum.sum();
        if (term.value.kind == Class::finite) {
          const int low = std::countr_zero(term.value.significand);
          term.value.significand >>= low;
          term.value.significand *= a.significand * b.significand;
          term.value.exponent += low + *term.exponent - a.fraction - b.fraction;
          if (term.value.significand == 0) term.value = {};
        }
      }
      terms_.push_back(term);
      if (trace_ != nullptr) {
        for (const Factors& one : group) {
          const Value product = exact_product(one.a, one.b);
          trace_->terms.push_back(product_term(m_, one, product, product));
        }
        traced_.push_back(trace_->terms.size());
        note_aligned("scaled sum of 16", term, {});
        trace_->terms.back().scale_a = f.scale_a;
        trace_->terms.back().scale_b = f.scale_b;
      }
    }
  }

  void note(const Factors& f, const Term& term) {
    traced_.push_back(trace_->terms.size());
    trace_->terms.push_back(product_term(m_, f, term.value, {}));
    trace_->terms.back().exponent = term.exponent;
  }

  void note_aligned(const std::string& what, const Term& term, const Value& kept) {
    trace_->terms.push_back(sum_term(what, term.value, kept));
    trace_->terms.back().exponent = term.exponent;
  }

  /// Exponent of every `stride`-th term from `first` on.
  int largest(std::size_t first, std::size_t stride) const {
    std::optional<int> most = unit_.alignment.floor;
    for (std::size_t i = first; i < terms_.size(); i += stride) {
      const std::optional<int>& exponent = terms_[i].exponent;
      if (exponent && (!most || *exponent > *most)) most = exponent;
    }
    return most.value_or(0);
  }

  /// The exact sum of every `stride`-th term from `first` on, each cut F bits below the largest
  /// exponent among them, which exponent_ is then.
  Value add(std::size_t first, std::size_t stride) {
    exponent_ = largest(first, stride);
    const int unit = exponent_ - unit_.alignment.fraction_bits;
    WideInteger sum = 0;
    for (std::size_t i = first; i < terms_.size(); i += stride) {
      const WideInteger kept = cut_term(terms_[i].value, unit, unit_.alignment.rounding);
      sum += kept;
      if (trace_ == nullptr) continue;
      if (i < traced_.size()) {
        trace_->terms[traced_[i]].kept = value_of_sum(kept, unit);
      } else {
        c_kept_ = value_of_sum(kept, unit);
      }
    }
    if (trace_ != nullptr) trace_->largest_exponent = exponent_;
    return value_of_sum(sum, unit);
  }

  /// A cut that loses nonzero bits is inexact.
  WideInteger cut_term(const Value& v, int unit, RoundingMode rounding) const {
    if (!is_multiple(v, unit)) m_.flags |= kInexact;
    return cut(v, unit, rounding);
  }

  /// CDNA3: the products' sum, one or two parts, then C; every cut downwards.
  Value meet(const Term& c);

  Value finish(const Value& sum) {
    const Value result = round_exact(m_, sum, true);
    if (trace_ != nullptr) {
      trace_->sum = sum;
      end_step(m_, result);
    }
    return result;
  }

  const Machine& m_;
  const UnitDescription& unit_;
  const char* c_name_;
  std::vector<Term> terms_;
  std::vector<std::size_t> traced_;  ///< positions of the terms in the trace
  Value c_kept_;
  TraceStep* trace_ = nullptr;
  bool nan_operand_ = false;
  int exponent_ = 0;  ///< of the sum of the last add()
};

Value FusedStep::meet(const Term& c) {
  const int fraction = unit_.alignment.fraction_bits;
  Value sum;
  int exponent = 0;
  if (unit_.alignment.parts == 1) {
    sum = add(0, 1);
    exponent = exponent_;
  } else {
    const Value even = add(0, 2);
    const int even_exponent = exponent_;
    const Value odd = add(1, 2);
    exponent = std::max(even_exponent, exponent_);
    const int unit = exponent - fraction;
    const WideInteger even_part = cut_term(even, unit, RoundingMode::rdn);
    const WideInteger odd_part = cut_term(odd, unit, RoundingMode::rdn);
    sum = value_of_sum(even_part + odd_part, unit);
    if (trace_ != nullptr) {
      note_aligned("sum of even k", {even, even_exponent}, value_of_sum(even_part, unit));
      note_aligned("sum of odd k", {odd, exponent_}, value_of_sum(odd_part, unit));
    }
  }
  const int c_exponent = c.exponent.value_or(exponent);
  const SecondAlignment& second = unit_.second;
  const bool dropped = second.c_dropped && c_exponent < exponent - *second.c_dropped;
  const int most = dropped ? exponent : std::max(exponent, c_exponent);
  const int fine = most - std::max(second.fraction_bits, second.c_fraction_bits);
  const int sum_unit = most - second.fraction_bits, c_unit = most - second.c_fraction_bits;
  const Value product_part = value_of_sum(cut_term(sum, sum_unit, RoundingMode::rdn), sum_unit);
  if (dropped && c.value.kind == Class::finite) m_.flags |= kInexact;
  const Value c_part =
      dropped ? Value{} : value_of_sum(cut_term(c.value, c_unit, RoundingMode::rdn), c_unit);
  if (trace_ != nullptr) {
    trace_->largest_exponent = most;
    note_aligned("sum of products", {sum, exponent}, product_part);
    note_aligned(c_name_, c, c_part);
  }
  return value_of_sum(
      cut(product_part, fine, RoundingMode::rdn) + cut(c_part, fine, RoundingMode::rdn), fine);
}

}  // namespace

Value run_fused(const Machine& m, std::span<const Factors> products, const Value& c) {
  const bool later = m.unit.c_entry == CEntry::after_rounding;
  Value sum = later ? Value{} : c;
  const auto size =
      static_cast<std::size_t>(step_size(m.unit, static_cast<std::int64_t>(products.size())));
  for (std::size_t first = 0; first < products.size(); first += size) {
    const auto step = products.subspan(first, std::min(size, products.size() - first));
    sum = FusedStep(m, step, start_name(m, first == 0)).run(sum);
  }
  return later ? add_c(m, c, sum) : sum;
}

}  // namespace numemu::unit
