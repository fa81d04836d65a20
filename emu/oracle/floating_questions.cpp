#include "emu/oracle/floating_questions.hpp"

#include <algorithm>
#include <set>

namespace numemu::oracle {

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
