#include "emu/oracle/identify/floating_questions.hpp"

#include <algorithm>
#include <set>

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

FloatingQuestions::FloatingQuestions(Sheet& all)
    : all_(all), ports_(all.ports()), kept_(ports_.kept()), mantissa_(ports_.d->mantissa_bits) {
  const Reach products = product_reach(ports_), results = normal_reach(*ports_.d);
  top_ = std::min(products.greatest, results.greatest - 2);
  bottom_ = std::max(products.least, last_exponent(*ports_.d));
}

void FloatingQuestions::make() {
  order();
  distances();
  ties();
  products();
  counted();
  carries();
  inputs();
  zeros();
  exponents_of_zeros();
  subnormals();
  range();
  specials();
  scales();
}

std::vector<int> FloatingQuestions::positions() const {
  std::set<int> some = {0, kept_ - 1, kept_ - 2};
  for (int p = 1; p < kept_; p *= 2) some.insert({p - 1, p, p + 1});
  for (int p = 0; p < std::min(kept_, 8); ++p) some.insert(p);
  std::vector<int> inside;
  for (const int p : some) {
    if (p >= 0 && p < kept_) inside.push_back(p);
  }
  return inside;
}

void FloatingQuestions::mask(int i, int j, int large, int distance) {
  Draft draft = all_.draft();
  const auto put = [&](int place, const Value& v) {
    if (place < 0) {
      draft.c(v);
    } else {
      draft.product(place, v);
    }
  };
  // A block's scales follow its first product.
  put(i, number(1, large));
  put(j, number(-1, large));
  for (int p = 0; p < kept_; ++p) {
    if (p != i && p != j) draft.product(p, number(1, large - distance));
  }
  all_.add("order", draft);
}

void FloatingQuestions::order() {
  const std::vector<int> places = positions();
  const int c_top = normal_reach(*ports_.c).greatest - 2;
  for (const int distance : {mantissa_ + 8, top_ - bottom_}) {
    for (const int j : places) {
      mask(0, j, top_, distance);
      mask(j, kept_ - 1, top_, distance);
      mask(j, j ^ 1, top_, distance);
      mask(-1, j, std::min(top_, c_top), distance);
    }
  }
  // A pair in front of a small product, and the small product in front of the pair.
  for (const int j : places) {
    for (const int i : places) {
      if (i == j || (i ^ 1) == j) continue;
      all_.add("order", all_.draft()
                            .product(i, number(1, top_))
                            .product(i ^ 1, number(-1, top_))
                            .product(j, number(1, std::max(bottom_, top_ - 60))));
      if (i < 3)
        all_.add("order", all_.draft()
                              .c(number(-1, top_))
                              .product(i, number(1, top_))
                              .product(j, number(1, std::max(bottom_, top_ - 60))));
    }
  }
}

/// A large and a small number at every distance; the large one is taken away again or not.
void FloatingQuestions::distances() {
  const int c_bottom = last_exponent(*ports_.c);
  const int farthest = std::min(70, top_ - bottom_);
  for (int distance = 0; distance <= farthest; ++distance) {
    for (const std::int64_t small : {1, -1, 3}) {
      const Value low = number(small, top_ - distance), high = number(1, top_);
      all_.add("kept bits", all_.draft().product(0, high).product(1, low));
      all_.add("kept bits", all_.draft().product(0, high).product(1, low).c(-high));
      all_.add("kept bits", all_.draft().product(1, high).product(0, low).c(-high));
      all_.add("kept bits", all_.draft().product(0, high).product(1, -high).product(2, low));
      all_.add("entry of C", all_.draft().c(high).product(0, low));
      all_.add("entry of C", all_.draft().c(high).product(0, -high).product(1, low));
      if (top_ - distance < c_bottom) continue;
      all_.add("entry of C", all_.draft().c(low).product(0, high));
      all_.add("entry of C", all_.draft().c(low).product(0, high).product(1, -high));
    }
  }
}

/// Sums on and beside the midpoint of two results, even and odd, of both signs.
void FloatingQuestions::ties() {
  const int one = std::clamp(0, bottom_, top_);
  for (const int mantissa : {mantissa_, 7, 10, 13, 23}) {
    if (mantissa > mantissa_) continue;
    for (const std::int64_t low : {0, 1}) {
      for (const std::int64_t sign : {1, -1}) {
        for (const int sticky : {0, 1, -1}) {
          for (const int deeper : {2, 3, 9, 12}) {
            Draft draft = all_.draft();
            draft.c(number(sign * ((std::int64_t{1} << mantissa) + low), one - mantissa));
            draft.product(0, number(sign, one - mantissa - 1));
            if (sticky != 0) draft.product(1, number(sign * sticky, one - mantissa - deeper));
            all_.add("tie", draft);
          }
        }
      }
    }
  }
  // Quarters, beside C and among products.
  for (const std::int64_t quarters : {1, 2, 3, 5, 6, 7, -1, -2, -3, -5, -6, -7}) {
    all_.add("rounding",
             all_.draft().c(number(1, one)).product(0, number(quarters, one - mantissa_ - 2)));
    all_.add("rounding",
             all_.draft().c(number(-1, one)).product(0, number(quarters, one - mantissa_ - 2)));
    all_.add(
        "rounding",
        all_.draft().product(0, number(1, one)).product(1, number(quarters, one - mantissa_ - 2)));
    all_.add(
        "rounding",
        all_.draft().product(0, number(-1, one)).product(1, number(quarters, one - mantissa_ - 2)));
  }
}

/// Significands whose product has more bits than the register.
void FloatingQuestions::products() {
  const auto full = [](const Format& f) {
    return f.kind == Kind::floating
               ? exact_code(&f, 0,
                            number((std::int64_t{2} << f.mantissa_bits) - 1, -f.mantissa_bits))
               : std::nullopt;
  };
  const auto a = full(*ports_.a), b = full(*ports_.b);
  for (const int other : {1, 2, kept_ - 1}) {
    all_.add("product", all_.draft().factors(0, a, b).product(other, number(-1, 2)));
    all_.add("product", all_.draft().factors(0, a, b).factors(other, a, b).c(number(-1, 3)));
    all_.add("product", all_.draft().factors(other, a, b).product(0, number(1, -20)));
  }
  all_.add("product", all_.draft().factors(0, a, b).c(number(-1, 2)));
  all_.add("product", all_.draft().factors(0, a, b).c(number(-1, 12)));
  all_.add("product", all_.draft().factors(0, a, b));
}

/// Half and smaller parts of the last bit of C, many times over: how often it is rounded.
void FloatingQuestions::counted() {
  for (const std::int64_t sign : {1, -1}) {
    for (const std::int64_t parts : {2, 3, 4, 6, 8, 16}) {
      for (int count = 1; count <= kept_; count *= 2) {
        for (const int stride : {1, 2, 4, 8, 16}) {
          if ((count - 1) * stride >= kept_) continue;
          const int last = std::max(bottom_, 0);
          Draft draft = all_.draft();
          draft.c(number((std::int64_t{1} << mantissa_) + 1, last - mantissa_));
          for (int p = 0; p < count; ++p)
            draft.product(p * stride, number(sign * parts, last - mantissa_ - 3));
          all_.add("steps", draft);
        }
      }
    }
  }
}

/// Sums that carry as far as the products of a step can, above one small bit at every distance:
/// what a register drops that is narrower than the widest sum. Elsewhere sums rarely reach it.
void FloatingQuestions::carries() {
  const auto greatest = [](const Format& f) {
    return exact_code(&f, 0,
                      number((std::int64_t{2} << f.mantissa_bits) - 1,
                             normal_reach(f).greatest / 2 - f.mantissa_bits));
  };
  const auto a = greatest(*ports_.a), b = greatest(*ports_.b);
  const int top = normal_reach(*ports_.a).greatest / 2 + normal_reach(*ports_.b).greatest / 2;
  for (int count = 2; count < 2 * kept_; count *= 2) {
    const int last = std::min(count, kept_) - 1;
    for (int distance = 8; distance <= std::min(40, top - bottom_); ++distance) {
      for (const std::int64_t small : {1, -1}) {
        Draft draft = all_.draft();
        for (int p = 0; p < last; ++p) draft.factors(p, a, b);
        all_.add("carry", draft.product(last, number(small, top - distance)));
      }
    }
  }
}

/// Every bit of an operand alone beside 1: which of them are multiplied.
void FloatingQuestions::inputs() {
  const auto one_a = exact_code(ports_.a, 0, number(1)), one_b = exact_code(ports_.b, 0, number(1));
  const auto bits = [](const Format& f) { return f.kind == Kind::floating ? f.mantissa_bits : 0; };
  for (int bit = 1; bit <= bits(*ports_.a); ++bit) {
    for (const std::int64_t low : {1, 3}) {
      const auto x = exact_code(ports_.a, 0, number((std::int64_t{1} << bit) + low, -bit));
      all_.add("operand", all_.draft().factors(0, x, one_b).c(number(-1)));
    }
  }
  for (int bit = 1; bit <= bits(*ports_.b); ++bit) {
    const auto x = exact_code(ports_.b, 0, number((std::int64_t{1} << bit) + 1, -bit));
    all_.add("operand", all_.draft().factors(0, one_a, x).c(number(-1)));
  }
}

}  // namespace numemu::oracle
