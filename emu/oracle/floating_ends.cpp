// Questions at the ends of the formats: zeros, subnormals, overflow, infinities, NaN, block scales.
#include <algorithm>

#include "emu/oracle/floating_questions.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

std::vector<std::uint64_t> special_codes(const Format& f) {
  std::vector<std::uint64_t> codes;
  if (f.kind != Kind::floating) return codes;
  if (f.has_infinity() && f.specials != Specials::top) {
    codes.push_back(f.infinity_code());
    if (f.is_signed) codes.push_back(f.infinity_code(true));
  }
  if (!f.has_nan()) return codes;
  codes.push_back(f.nan_code());
  if (f.specials != Specials::ieee || f.mantissa_bits < 2) return codes;
  codes.push_back(f.infinity_code(true) | 1);  // signals
  codes.push_back(f.nan_code() |
                  (f.sign_bit() | ((f.nan_code() & ~f.infinity_code()) >> 1)));  // payload
  return codes;
}

}  // namespace

void FloatingQuestions::zeros() {
  const Value minus = {.kind = Class::zero, .negative = true};
  for (const bool negative_c : {false, true}) {
    const Value c = negative_c ? minus : Value{};
    Draft none = all_.draft(), all = all_.draft();
    none.c(c);
    all.c(c);
    for (int p = 0; p < kept_; ++p) all.product(p, minus);
    all_.add("zero", none);
    all_.add("zero", all);
    all_.add("zero", all_.draft().c(c).product(0, minus));
    // +0 times a negative number.
    Draft by_minus_one = all_.draft();
    by_minus_one.c(c);
    for (int p = 0; p < kept_; ++p)
      by_minus_one.factors(p, exact_code(ports_.a, 0, number(-1)),
                           exact_code(ports_.b, 0, Value{}));
    all_.add("zero", by_minus_one);
    for (const int j : {1, 2, kept_ - 1})
      all_.add("zero", all_.draft().c(c).product(0, number(1)).product(j, number(-1)));
    // Too small for any result.
    for (const std::int64_t sign : {1, -1})
      all_.add("zero", all_.draft().c(c).product(0, number(sign, product_reach(ports_).least)));
  }
  all_.add("zero", all_.draft().c(number(1)).product(0, number(-1)));
  all_.add("zero", all_.draft().c(number(-1)).product(0, number(1)));
}

/// Zero times a large number beside small ones.
void FloatingQuestions::exponents_of_zeros() {
  const Format &a = *ports_.a, &b = *ports_.b;
  const auto largest = [](const Format& f) { return std::optional(f.largest_code()); };
  const auto zero = [](const Format& f) { return exact_code(&f, 0, Value{}); };
  for (const int distance : {0, 3, 6, 10, 14, 20, 24, 25, 26, 30, 40}) {
    for (const std::int64_t small : {1, 3, -3}) {
      const int e = std::max(product_reach(ports_).least, -126) + distance;
      const Value low = number(small, e), lower = number(small, e - mantissa_ / 2);
      all_.add("exponent of zero",
               all_.draft().factors(0, largest(a), zero(b)).product(1, low).product(2, lower));
      all_.add("exponent of zero", all_.draft().factors(0, zero(a), largest(b)).product(1, low));
      all_.add("exponent of zero",
               all_.draft().factors(0, largest(a), zero(b)).product(1, low).c(-low));
      all_.add("exponent of zero", all_.draft().factors(0, zero(a), largest(b)).c(low));
      all_.add("exponent of zero", all_.draft().product(0, low).c(number(1, e - mantissa_)));
    }
  }
}

void FloatingQuestions::subnormals() {
  const Format& d = *ports_.d;
  const int smallest = normal_reach(d).least, last = smallest - d.mantissa_bits;
  const auto tiny = [](const Format& f) {
    return f.kind == Kind::floating && f.field_zero == FieldZero::subnormal
               ? std::optional<std::uint64_t>(1)
               : std::nullopt;
  };
  for (const Format* f : {ports_.a, ports_.b}) {
    const bool first = f == ports_.a;
    const Format& other = first ? *ports_.b : *ports_.a;
    for (const std::uint64_t code :
         {f->largest_code(), std::uint64_t{1} << std::max(0, f->mantissa_bits - 1),
          std::uint64_t{3}}) {
      const auto subnormal =
          tiny(*f) ? std::optional(code & ((std::uint64_t{1} << f->mantissa_bits) - 1))
                   : std::nullopt;
      for (const Value& by : {number(1), number(-1), number(1, normal_reach(other).greatest)}) {
        const auto factor = exact_code(&other, 0, by);
        all_.add("subnormal operand", first ? all_.draft().factors(0, subnormal, factor)
                                            : all_.draft().factors(0, factor, subnormal));
        if (first && subnormal)
          all_.add("subnormal operand", all_.draft()
                                            .factors(0, *subnormal | f->sign_bit(), factor)
                                            .c({.kind = Class::zero, .negative = true}));
      }
    }
  }
  for (const Value& c :
       {number(1, last), number(-3, last), number(1, smallest - 1), number(-1, smallest - 1)}) {
    all_.add("subnormal C", all_.draft().c(c));
    all_.add("subnormal C", all_.draft().c(c).product(
                                0, number(1, std::max(product_reach(ports_).least, smallest))));
    all_.add("subnormal C", all_.draft().c(c).product(0, -c));
  }
  // Results on both sides of the smallest normal number, and tiny only before they are rounded.
  for (const std::int64_t sign : {1, -1}) {
    for (int below = 1; below <= d.mantissa_bits + 4; ++below) {
      for (const std::int64_t part : {1, 3}) {
        const Value less = number(-sign * part, smallest - below);
        all_.add("subnormal result", all_.draft().c(number(sign, smallest)).product(0, less));
        for (const int j : {1, 2})
          all_.add("subnormal result",
                   all_.draft().product(0, number(sign, smallest)).product(j, less));
        all_.add("subnormal result", all_.draft()
                                         .product(0, number(sign, smallest))
                                         .product(1, less)
                                         .product(2, number(sign, smallest - 1)));
        all_.add("subnormal result",
                 all_.draft().product(0, number(sign * part, smallest - below)));
      }
    }
  }
}

/// The exponents of products, of sums at the ends of the range, and of what leaves it and
/// returns.
void FloatingQuestions::range() {
  const Format& d = *ports_.d;
  const Value largest = decode(d, d.largest_code());
  const int most = normal_reach(d).greatest, reach = product_reach(ports_).greatest;
  for (const bool negative : {false, true}) {
    Value edge = largest;
    edge.negative = negative;
    const std::int64_t sign = negative ? -1 : 1;
    all_.add("overflow", all_.draft().c(edge));
    for (const int below : {0, 1, 2, 3}) {
      const int half = most - d.mantissa_bits - below;
      for (const std::int64_t part : {1, 3, -1})
        all_.add("overflow", all_.draft().c(edge).product(0, number(sign * part, half)));
    }
    for (const int e : {most, most + 1, most + 2, reach}) {
      if (e > reach) continue;
      const Value big = number(sign, e);
      all_.add("overflow", all_.draft().product(0, big));
      for (const int j : {1, 2, kept_ - 1}) {
        all_.add("overflow", all_.draft().product(0, big).product(j, big));
        all_.add("overflow", all_.draft().product(0, big).product(j, -big));
        all_.add("overflow", all_.draft().product(0, big).product(1, big).product(j, -big).product(
                                 kept_ - 2, -big));
        all_.add("overflow", all_.draft().product(0, big).product(j, number(-sign, e - 1)));
      }
      all_.add("overflow", all_.draft().product(0, big).c(edge));
      all_.add("overflow", all_.draft().product(0, -big).c(edge));
    }
  }
}

void FloatingQuestions::specials() {
  const auto code = [](const Format& f, const Value& v) { return exact_code(&f, 0, v); };
  const Format &a = *ports_.a, &b = *ports_.b;
  for (const std::uint64_t x : special_codes(a)) {
    for (const Value& by : {number(1), number(-1), Value{}}) {
      all_.add("infinity and NaN", all_.draft().factors(0, x, code(b, by)));
      all_.add("infinity and NaN", all_.draft().factors(1, x, code(b, by)).c(number(1)));
    }
    for (const std::uint64_t y : special_codes(a)) {
      for (const int j : {1, 2, kept_ - 1})
        all_.add("infinity and NaN",
                 all_.draft().factors(0, x, code(b, number(1))).factors(j, y, code(b, number(1))));
    }
    for (const std::uint64_t y : special_codes(b))
      all_.add("infinity and NaN", all_.draft().factors(0, x, y));
    for (const std::uint64_t c : special_codes(*ports_.c))
      all_.add("infinity and NaN", all_.draft().factors(0, x, code(b, number(1))).c_code(c));
  }
  for (const std::uint64_t y : special_codes(b))
    all_.add("infinity and NaN", all_.draft().factors(0, code(a, number(1)), y));
  for (const std::uint64_t c : special_codes(*ports_.c)) {
    all_.add("infinity and NaN", all_.draft().c_code(c));
    all_.add("infinity and NaN", all_.draft().c_code(c).product(0, number(1, std::min(0, top_))));
  }
}

void FloatingQuestions::scales() {
  if (ports_.scale == nullptr) return;
  const Format& f = *ports_.scale;
  const auto one = exact_code(&f, 0, number(1));
  std::vector<std::uint64_t> codes = {0, 1, f.largest_code(), *one};
  if (f.has_nan()) codes.push_back(f.nan_code());
  if (f.is_signed) codes.push_back(*one | f.sign_bit());
  if (f.mantissa_bits > 0) codes.push_back(*one + 1);
  const auto a = exact_code(ports_.a, 0, number(3, -1)), b = exact_code(ports_.b, 0, number(1));
  for (const std::uint64_t x : codes) {
    for (const std::uint64_t y : codes) {
      const int last = ports_.scales() - 1;
      all_.add("scale", all_.draft().scales(0, x, y).factors(0, a, b));
      all_.add("scale", all_.draft().scales(0, x, y));
      all_.add("scale", all_.draft()
                            .scales(0, x, y)
                            .factors(0, a, b)
                            .factors(kept_ - 1, a, b)
                            .scales(last, one, x));
      all_.add("scale",
               all_.draft().scales(0, x, one).factors(0, a, b).c(number(1)).factors(1, a, b));
    }
  }
}

}  // namespace numemu::oracle
