// Rules of conversions and scalar operations: other roundings of the same exact result.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using unit::leading_exponent;

/// A result from the exact one and the random bits of the record.
using Round = std::function<Encoded(const Value& exact, std::uint32_t random)>;

Rule rounding_rule(const Subject& s, std::string family, std::string name, Round round) {
  return {.family = std::move(family),
          .name = std::move(name),
          .compute = [s, round = std::move(round)](Records& records) {
            const Layout layout = layout_of(s);
            ExactSum sum(s, layout);
            const auto out = static_cast<std::size_t>(find_field(layout, "out"));
            const auto flags = static_cast<std::size_t>(find_field(layout, "flags"));
            const int random = find_field(layout, "random");
            for (std::int64_t i = 0; i < records.size; ++i) {
              const ExactSum::Result exact = sum.of(records, i);
              const std::uint64_t word = random < 0 ? 0 : records.code(random, i);
              const Encoded code = round(exact.value, static_cast<std::uint32_t>(word));
              records.columns[out][static_cast<std::size_t>(i)] = code.code;
              records.columns[flags][static_cast<std::size_t>(i)] = flags_of(s, exact, code);
            }
          }};
}

constexpr int kWideBits = 32;  ///< of the register before a narrow integer

bool floating(const Format& f) { return f.kind == Kind::floating; }

/// The exact value without what lies more than `bits` bits below the last bit of the format at this
/// exponent.
Value without_sticky(const Format& f, Value v, int bits) {
  if (v.kind != Class::finite) return v;
  const int last =
      std::max(leading_exponent(v), unit::smallest_normal_exponent(f)) - f.mantissa_bits;
  const int drop = last - bits - v.exponent;
  v.sticky = false;
  if (drop <= 0) return v;
  v.significand = drop >= 64 ? 0 : v.significand >> drop;
  v.exponent += drop;
  if (v.significand == 0) v.kind = Class::zero;
  return v;
}

/// The value rounded to the format's precision as if every exponent were a normal one.
Value at_full_precision(const Format& f, const Rounding& rounding, const Value& v) {
  if (v.kind != Class::finite) return v;
  // The same significand in the middle of float64's range, or of the format's own, is normal.
  Value moved = v;
  const int shift = leading_exponent(v);
  moved.exponent -= shift;
  Value rounded = decode(f, encode(f, moved, rounding, Overflow::propagate).code);
  rounded.exponent += shift;
  return rounded;
}

/// A subnormal result as a zero of its sign.
Encoded flushed(const Format& f, Encoded e) {
  const std::uint64_t magnitude = e.code & ~f.sign_bit();
  if (magnitude == 0 || magnitude >> f.mantissa_bits != 0) return e;
  e.code = f.has_negative_zero() ? e.code & f.sign_bit() : 0;
  e.flags |= kInexact | kUnderflow;
  return e;
}

void add_roundings(const Subject& s, std::vector<Rule>& rules) {
  const Format& to = *s.to;
  const auto add = [&](const Rounding& rounding) {
    if (rounding == s.rounding) return;
    rules.push_back(rounding_rule(
        s, "rounding",
        fmt::format("rounding {} in place of {}", to_string(rounding), to_string(s.rounding)),
        [&to, rounding, overflow = s.overflow](const Value& v, std::uint32_t random) {
          return encode(to, v, rounding, overflow, random);
        }));
  };
  for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                  RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd})
    add({.mode = mode});
  if (!s.rounding.stochastic()) return;
  for (const StochasticVariant variant :
       {StochasticVariant::a, StochasticVariant::b, StochasticVariant::c, StochasticVariant::odd})
    add({RoundingMode::sr, variant, s.rounding.random_bits});
}

void add_overflows(const Subject& s, std::vector<Rule>& rules) {
  for (const Overflow overflow : {Overflow::saturate, Overflow::propagate, Overflow::ieee}) {
    if (overflow == s.overflow) continue;
    rules.push_back(rounding_rule(
        s, "saturation",
        fmt::format("overflow {} in place of {}", to_string(overflow), to_string(s.overflow)),
        [s, overflow](const Value& v, std::uint32_t random) {
          return encode(*s.to, v, s.rounding, overflow, random);
        }));
  }
}

/// Conversions to integers that keep low bits.
void add_wraps(const Subject& s, std::vector<Rule>& rules) {
  const Format& to = *s.to;
  if (to.kind != Kind::integer || to.bits >= kWideBits) return;
  for (const bool whole : {true, false})
    rules.push_back(
        rounding_rule(s, "saturation",
                      whole ? fmt::format("results beyond the range wrap modulo 2^{}", to.bits)
                            : fmt::format("results are the low {} bits of an int{} that saturates",
                                          to.bits, kWideBits),
                      [s, whole](const Value& v, std::uint32_t random) {
                        Encoded e = encode(*s.to, v, s.rounding, s.overflow, random);
                        if (v.kind != Class::finite && (whole || v.kind == Class::nan)) return e;
                        Format wide;
                        wide.kind = Kind::integer;
                        wide.bits = kWideBits;
                        e.code = encode(wide, v, s.rounding, Overflow::saturate, random).code;
                        // Whole numbers from 2^31 on: those of 64 bits keep their own low bits.
                        if (whole && leading_exponent(v) >= kWideBits - 1) {
                          const int shift = v.exponent;
                          const std::uint64_t low = shift >= 64   ? 0
                                                    : shift >= 0  ? v.significand << shift
                                                    : shift > -64 ? v.significand >> -shift
                                                                  : 0;
                          e.code = v.negative ? ~low + 1 : low;
                        }
                        e.code &= s.to->code_mask();
                        return e;
                      }));
}

void add_flushes(const Subject& s, std::vector<Rule>& rules) {
  const Format& to = *s.to;
  if (floating(to) && to.field_zero == FieldZero::subnormal && to.mantissa_bits > 0) {
    rules.push_back(
        rounding_rule(s, "flush", "subnormal results become zero, as judged after rounding",
                      [s](const Value& v, std::uint32_t random) {
                        return flushed(*s.to, encode(*s.to, v, s.rounding, s.overflow, random));
                      }));
    for (const bool keeps_sign : {true, false})
      rules.push_back(rounding_rule(
          s, "flush",
          fmt::format("subnormal results become {}zero, as judged before rounding",
                      keeps_sign ? "" : "plus "),
          [s, keeps_sign](const Value& v, std::uint32_t random) {
            Encoded e = encode(*s.to, v, s.rounding, s.overflow, random);
            const bool tiny = v.kind == Class::finite &&
                              leading_exponent(v) < unit::smallest_normal_exponent(*s.to);
            const bool minus = keeps_sign && s.to->has_negative_zero() && v.negative;
            if (tiny) e.code = minus ? s.to->sign_bit() : 0;
            return e;
          }));
  }
  const Format& from = *s.a;
  if (!floating(from) || from.field_zero != FieldZero::subnormal || from.mantissa_bits == 0) return;
  rules.push_back({.family = "flush",
                   .name = "subnormal operands count as zero",
                   .inputs = [layout = layout_of(s)](Records& records, const Sample&) {
                     for (std::size_t f = 0; f < layout.size(); ++f) {
                       if (layout[f].result || layout[f].format == nullptr) continue;
                       const Format& own = *layout[f].format;
                       if (!floating(own)) continue;
                       for (std::uint64_t& code : records.columns[f])
                         code = flushed(own, {code, 0}).code;
                     }
                   }});
}

void add_sticky_losses(const Subject& s, std::vector<Rule>& rules) {
  if (!floating(*s.to) || s.rounding.stochastic()) return;
  for (const int bits : {1, 2}) {
    rules.push_back(rounding_rule(
        s, "lost sticky bit",
        bits == 1 ? "the rounding sees one bit below the last and no sticky bit"
                  : "the rounding sees two bits below the last and no sticky bit",
        [s, bits](const Value& v, std::uint32_t) {
          return encode(*s.to, without_sticky(*s.to, v, bits), s.rounding, s.overflow);
        }));
  }
}

/// The second rounding alone raises flags, or both do.
void add_double_roundings(const Subject& s, std::vector<Rule>& rules) {
  const Format& to = *s.to;
  if (!floating(to) || s.rounding.stochastic()) return;
  const auto add = [&](const std::string& name, const Format& wide, const Rounding& rounding) {
    for (const bool both : {false, true})
      rules.push_back(rounding_rule(
          s, "double rounding", name + (both ? ", with the flags of both roundings" : ""),
          [s, &wide, rounding, both](const Value& v, std::uint32_t) {
            const Encoded first = encode(wide, v, rounding, Overflow::ieee);
            Encoded second = encode(*s.to, decode(wide, first.code), s.rounding, s.overflow);
            // A signalling NaN is one of the operand.
            second.flags |= both ? first.flags : first.flags & kInvalid;
            return second;
          }));
  };
  for (const Format* wide : intermediate_formats()) {
    if (wide->mantissa_bits < to.mantissa_bits || wide->name == to.name || wide->name == s.a->name)
      continue;
    for (const Rounding& rounding : {s.rounding, Rounding{}}) {
      add(fmt::format("rounded to {} ({}) first", wide->name, to_string(rounding)), *wide,
          rounding);
      if (s.rounding == Rounding{}) break;
    }
  }
  if (to.field_zero == FieldZero::subnormal)
    rules.push_back(rounding_rule(
        s, "double rounding", "subnormal results rounded to the full precision first",
        [s](const Value& v, std::uint32_t) {
          return encode(*s.to, at_full_precision(*s.to, s.rounding, v), s.rounding, s.overflow);
        }));
}

/// Conversions to integers where IEEE 754 leaves open what results beside NV.
void add_invalid_integers(const Subject& s, std::vector<Rule>& rules) {
  if (row_of(s.operation).arithmetic != Arithmetic::number || s.to->kind != Kind::integer) return;
  const std::uint64_t indefinite = s.to->is_signed ? s.to->sign_bit() : s.to->code_mask();
  const auto add = [&](const char* name, bool nan_alone, std::uint64_t code) {
    rules.push_back(rounding_rule(
        s, "saturation", name, [s, nan_alone, code](const Value& v, std::uint32_t random) {
          Encoded e = encode(*s.to, v, s.rounding, s.overflow, random);
          const bool open =
              v.kind == Class::nan || (!nan_alone && (e.flags & (kOverflow | kInvalid)) != 0);
          if (open) e.code = code;
          return e;
        }));
  };
  add("NaN and what is out of range give one integer, as x86 does", false, indefinite);
  add("NaN gives 0, as Arm does", true, 0);
}

/// Another operation on the same operands.
void add_other_operations(const Subject& s, std::vector<Rule>& rules) {
  const OperationRow& own = row_of(s.operation);
  const Layout layout = layout_of(s);
  for (const std::string_view name : operation_names()) {
    const Operation operation = parse_operation(name);
    const OperationRow& row = row_of(operation);
    if (operation == s.operation || row.arithmetic != own.arithmetic || row.has_c != own.has_c ||
        operation == Operation::dot)
      continue;
    try {
      const Subject theirs = operation_subject(operation, *s.a, *s.to, s.rounding, s.overflow, s.k);
      if (layout_of(theirs) != layout) continue;
      rules.push_back({.family = "operation",
                       .name = fmt::format("{} in place of {}", name, own.name),
                       .compute = [theirs](Records& records) { evaluate(theirs, records); }});
    } catch (const Error&) {  // to_integer gives integers alone
    }
  }
}

/// Integers taken for those with, or without, a sign: FCVT.S.WU as FCVT.S.W.
void add_other_signs(const Subject& s, std::vector<Rule>& rules) {
  const auto other = [](const Format& f) {
    const std::string name(f.name);
    return f.kind != Kind::integer || f.bits < 2 ? nullptr
           : f.is_signed                         ? &find_format("u" + name)
                                                 : &find_format(name.substr(1));
  };
  const auto add = [&](const Format* a, const Format* to, const std::string& name) {
    if (a == nullptr || to == nullptr) return;
    const Subject theirs = operation_subject(s.operation, *a, *to, s.rounding, s.overflow, s.k);
    rules.push_back({.family = "decoding", .name = name, .compute = [theirs](Records& records) {
                       evaluate(theirs, records);
                     }});
  };
  const bool choice = row_of(s.operation).arithmetic == Arithmetic::choice;
  if (const Format* const a = other(*s.a))
    add(a, choice ? a : s.to, fmt::format("operands read as {}", a->name));
  if (const Format* const to = choice ? nullptr : other(*s.to))
    add(s.a, to, fmt::format("results written as {}", to->name));
}

/// Choices that take both zeros for equal, and that of x86's MINPS, which takes B where nothing is
/// less.
void add_equal_zeros(const Subject& s, std::vector<Rule>& rules) {
  if (row_of(s.operation).arithmetic != Arithmetic::choice || !s.to->has_negative_zero()) return;
  const auto add = [&](const char* name, const char* from, bool x86) {
    rules.push_back({.family = "zero", .name = name, .compute = [s, from, x86](Records& records) {
                       evaluate(s, records);
                       const Layout layout = layout_of(s);
                       const auto at = [&](const char* field) {
                         return static_cast<std::size_t>(find_field(layout, field));
                       };
                       const std::size_t a = at("a"), b = at("b"), out = at("out"),
                                         flags = at("flags");
                       for (std::int64_t i = 0; i < records.size; ++i) {
                         const auto n = static_cast<std::size_t>(i);
                         const Class x = decode(*s.a, records.columns[a][n]).kind,
                                     y = decode(*s.a, records.columns[b][n]).kind;
                         const bool nan = x86 && (x == Class::nan || y == Class::nan);
                         if (!nan && (x != Class::zero || y != Class::zero)) continue;
                         records.columns[out][n] = records.columns[at(from)][n];
                         if (nan) records.columns[flags][n] |= kInvalid;
                       }
                     }});
  };
  add("both zeros are equal, and A is the result", "a", false);
  add("both zeros are equal, and B is the result", "b", false);
  add("B where an operand is NaN or both are zero, as x86 does", "b", true);
}

/// Results of one operation as operands of another.
std::vector<std::uint64_t>& column(Records& r, const Layout& layout, const char* name) {
  return r.columns[static_cast<std::size_t>(find_field(layout, name))];
}

/// A quotient as the product with the reciprocal.
void add_reciprocal(const Subject& s, std::vector<Rule>& rules) {
  if (s.operation != Operation::div || s.a != s.to || s.rounding.stochastic()) return;
  rules.push_back({.family = "double rounding",
                   .name = "the reciprocal of b is rounded before the product with a",
                   .compute = [s](Records& records) {
                     const Subject mul =
                         operation_subject(Operation::mul, *s.a, *s.to, s.rounding, s.overflow);
                     const Layout layout = layout_of(s);
                     Records inverse(layout, records.size), times(layout, records.size);
                     const Value one{Class::finite, false, false, 0, 1};
                     column(inverse, layout, "a")
                         .assign(static_cast<std::size_t>(records.size),
                                 encode(*s.a, one, {}, Overflow::saturate).code);
                     column(inverse, layout, "b") = column(records, layout, "b");
                     numemu::oracle::evaluate(s, inverse);
                     column(times, layout, "a") = column(records, layout, "a");
                     column(times, layout, "b") = column(inverse, layout, "out");
                     numemu::oracle::evaluate(mul, times);
                     column(records, layout, "out") = column(times, layout, "out");
                     auto& flags = column(records, layout, "flags");
                     for (std::size_t i = 0; i < flags.size(); ++i)
                       flags[i] =
                           column(inverse, layout, "flags")[i] | column(times, layout, "flags")[i];
                   }});
}

/// fma, of any signs, as two operations.
void add_unfused(const Subject& s, std::vector<Rule>& rules) {
  const OperationRow& row = row_of(s.operation);
  const bool fused =
      row.arithmetic == Arithmetic::products && row.has_c && s.operation != Operation::dot;
  if (!fused || s.a != s.to || s.rounding.stochastic()) return;
  for (const bool both : {true, false})
    rules.push_back({.family = "double rounding",
                     .name = fmt::format("the product is rounded before the addition{}",
                                         both ? "" : ", with the flags of the addition alone"),
                     .compute = [s, both](Records& records) {
                       const Subject mul =
                           operation_subject(Operation::mul, *s.a, *s.to, s.rounding, s.overflow);
                       const OperationRow& own_row = row_of(s.operation);
                       const Subject add =
                           operation_subject(own_row.negates_last ? Operation::sub : Operation::add,
                                             *s.to, *s.to, s.rounding, s.overflow);
                       const Layout own = layout_of(s), one = layout_of(mul), two = layout_of(add);
                       Records product(one, records.size), sum(two, records.size);
                       column(product, one, "a") = column(records, own, "a");
                       column(product, one, "b") = column(records, own, "b");
                       numemu::oracle::evaluate(mul, product);
                       column(sum, two, "a") = column(product, one, "out");
                       if (own_row.negates_products) {
                         for (std::uint64_t& code : column(sum, two, "a"))
                           code = negated(two[0], code);
                       }
                       column(sum, two, "b") = column(records, own, "c");
                       numemu::oracle::evaluate(add, sum);
                       column(records, own, "out") = column(sum, two, "out");
                       auto& flags = column(records, own, "flags");
                       for (std::size_t i = 0; i < flags.size(); ++i)
                         flags[i] = (both ? column(product, one, "flags")[i] : 0) |
                                    column(sum, two, "flags")[i];
                     }});
}

}  // namespace

std::vector<Rule> operation_rules(const Subject& s) {
  std::vector<Rule> rules;
  if (row_of(s.operation).arithmetic != Arithmetic::comparison) {
    add_roundings(s, rules);
    add_overflows(s, rules);
    add_wraps(s, rules);
    add_invalid_integers(s, rules);
  }
  add_flushes(s, rules);
  if (row_of(s.operation).arithmetic != Arithmetic::comparison) {
    add_sticky_losses(s, rules);
    add_double_roundings(s, rules);
  }
  add_reciprocal(s, rules);
  add_unfused(s, rules);
  add_other_operations(s, rules);
  add_other_signs(s, rules);
  add_equal_zeros(s, rules);
  return rules;
}

}  // namespace numemu::oracle
