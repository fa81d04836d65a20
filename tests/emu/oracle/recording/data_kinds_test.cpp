// Kinds of data that spread, cancel or dominate have what they are named for: counted on a thousand
// tiles for every type and sparsity.
#include <algorithm>
#include <set>

#include "emu/oracle/recording/data.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/decoded_tile.hpp"

namespace numemu::oracle::recording::data_kinds_test {
namespace {

__extension__ using Wide = unsigned __int128;

bool equal_magnitudes(const Value& x, const Value& y) {
  return x.kind == y.kind && x.significand == y.significand && x.exponent == y.exponent;
}

TEST_CASE("every type of operand is looked at", "[fast]") {
  std::set<Element> types, all;
  for (const int number : chosen()) {
    const Instruction& i = instructions()[static_cast<std::size_t>(number)];
    types.insert({i.a, i.b, i.c, i.scale});
  }
  for (const Instruction& i : instructions()) all.insert({i.a, i.b, i.c, i.scale});
  CHECK(types == all);
}

TEST_CASE("narrow to wide kinds spread exponents as far as they say", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (is_integer(i.a)) return;
    const Parts a(i.a), c(i.c);
    const int spreads[] = {1, 4, 8, i.a == Element::f64 ? 60 : 24};
    for (const DataKind kind :
         {DataKind::narrow, DataKind::mixed, DataKind::broad, DataKind::wide}) {
      int least = 9999, most = -9999;
      std::size_t special = 0, long_mantissas = 0;
      each_tile(number, kind, [&](const Decoded& d) {
        for (const Line& row : d.a)
          for (const Value& v : row.values) {
            if (v.kind == Class::nan || v.kind == Class::infinite) ++special;
            if (v.kind != Class::finite) continue;
            least = std::min(least, exponent_of(v));
            most = std::max(most, exponent_of(v));
            const int zeros = std::countr_zero(v.significand);
            if (width(v.significand) - zeros > 3 && d.turn % 2 == 1) ++long_mantissas;
          }
      });
      INFO(name(kind));
      const int spread = spreads[static_cast<int>(kind)];
      const int normal = 1 - a.bias, smallest = normal - info(i.a).mantissa_bits;
      CHECK(special == 0);
      CHECK(most == std::min({spread, a.exponent_of(a.top), (c.exponent_of(c.top) - 5) / 2}));
      if (-spread >= normal) {
        CHECK(least == -spread);
      } else {
        CHECK(least <= std::max(normal - 6, smallest));  // subnormals
      }
      CHECK((long_mantissas == 0) == (kind != DataKind::wide || info(i.a).mantissa_bits < 3));
    }
  });
}

TEST_CASE("cancelling pairs cancel: three of four exactly", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (!info(i.a).has_sign && !info(i.b).has_sign) return;
    std::int64_t pairs = 0, exact = 0, not_opposite = 0, b_differs = 0;
    each_tile(number, DataKind::cancelling, [&](const Decoded& d) {
      for (std::size_t row = 0; row < d.a.size(); row += 3)
        for (std::size_t column = 0; column < d.b.size(); column += 3) {
          Value first_a, first_b;
          each_product(i, d, row, column, [&](std::size_t j, const Value& a, const Value& b) {
            if (j % 2 == 1) {
              // Factors of equal magnitude: products are opposite where their signs are.
              ++pairs;
              if (!equal_magnitudes(b, first_b)) ++b_differs;
              const bool opposite =
                  (a.negative != b.negative) != (first_a.negative != first_b.negative);
              const bool zero = b.kind == Class::zero || a.kind == Class::zero;
              const bool equal = equal_magnitudes(a, first_a);
              if (equal && !opposite && !zero) ++not_opposite;
              if (equal && (opposite || zero)) ++exact;
            }
            first_a = a;
            first_b = b;
          });
        }
    });
    CAPTURE(pairs, exact);
    CHECK(pairs >= 1800);
    CHECK(b_differs == 0);
    CHECK(not_opposite == 0);
    CHECK(exact * 100 > pairs * 70);
    CHECK(exact * 100 < pairs * 80);
  });
}

TEST_CASE("where no factor has a sign C cancels the sum", "[fast]") {
  int seen = 0;
  for_each([&seen](int number, const Instruction& i) {
    if (info(i.a).has_sign || info(i.b).has_sign) return;
    ++seen;
    int beyond = 0;
    each_tile(number, DataKind::cancelling, [&](const Decoded& d) {
      for (std::size_t row = 0; row < d.a.size(); ++row)
        for (std::size_t column = 0; column < d.b.size(); ++column) {
          std::int64_t sum = integer(d.c[row].values[column]);
          each_product(i, d, row, column, [&](std::size_t, const Value& a, const Value& b) {
            sum += integer(a) * integer(b);
          });
          if (sum < -8 || sum > 7) ++beyond;
        }
    });
    CHECK(beyond == 0);
  });
  CHECK(seen >= 4);
}

TEST_CASE("a dominating accumulator is above every product", "[fast]") {
  for_each([](int number, const Instruction& i) {
    if (is_integer(i.a)) return;
    std::int64_t not_above = 0;
    std::set<int> distances;
    each_tile(number, DataKind::accumulator, [&](const Decoded& d) {
      for (std::size_t row = 0; row < d.a.size(); ++row)
        for (std::size_t column = 0; column < d.b.size(); ++column) {
          const Value& c = d.c[row].values[column];
          if (c.kind != Class::finite) ++not_above;
          each_product(i, d, row, column, [&](std::size_t j, const Value& a, const Value& b) {
            if (a.kind == Class::zero || b.kind == Class::zero) return;
            int exponent = a.exponent + b.exponent;
            Wide significand = a.significand;
            significand *= b.significand;
            if (i.block != 0) {
              const auto block = j / static_cast<std::size_t>(i.block);
              for (const Value& scale :
                   {d.scale_a[row].values[block], d.scale_b[column].values[block]}) {
                significand *= scale.significand;
                exponent += scale.exponent;
              }
            }
            const auto high = static_cast<std::uint64_t>(significand >> 64);
            exponent +=
                high != 0 ? 63 + width(high) : width(static_cast<std::uint64_t>(significand)) - 1;
            if (exponent_of(c) <= exponent) ++not_above;
            distances.insert(exponent_of(c) - exponent);
          });
        }
    });
    CHECK(not_above == 0);
    const bool small_c = i.c == Element::f16 || info(i.a).exponent_bits < 4;
    CHECK(*distances.rbegin() >= (small_c ? 10 : 24));
  });
}

TEST_CASE("integer accumulators lie at the ends and sums leave and return", "[fast]") {
  constexpr std::int64_t kMost = INT32_MAX, kLeast = INT32_MIN;
  for_each([](int number, const Instruction& i) {
    if (!is_integer(i.a)) return;
    std::int64_t inside = 0, most = 0, least = 0, leave = 0, back = 0;
    std::int64_t unordered = 0, negative_starts = 0;
    each_tile(number, DataKind::accumulator, [&](const Decoded& d) {
      for (std::size_t row = 0; row < d.a.size(); ++row)
        for (std::size_t column = 0; column < d.b.size(); ++column) {
          const std::int64_t c = integer(d.c[row].values[column]);
          if (c < kMost - (1 << 20) && c > kLeast + (1 << 20)) ++inside;
          if (c == kMost) ++most;
          if (c == kLeast) ++least;
          std::int64_t sum = c;
          bool left = false;
          int signs[2][2] = {};  // of the halves of k: positive, negative products
          each_product(i, d, row, column, [&](std::size_t j, const Value& a, const Value& b) {
            const std::int64_t product = integer(a) * integer(b);
            sum += product;
            left = left || sum > kMost || sum < kLeast;
            const bool second = 2 * d.place[row][j] >= i.k;
            if (product != 0) ++signs[second ? 1 : 0][product < 0 ? 1 : 0];
          });
          const bool positive_first = signs[0][1] == 0 && signs[1][0] == 0;
          const bool negative_first = signs[0][0] == 0 && signs[1][1] == 0;
          if (d.turn % 2 == 1 && !positive_first && !negative_first) ++unordered;
          if (d.turn % 2 == 1 && !positive_first) ++negative_starts;
          if (!left) continue;
          ++(sum > kMost || sum < kLeast ? leave : back);
        }
    });
    CAPTURE(most, least, leave, back);
    CHECK(inside == 0);
    CHECK(most > 100);
    CHECK(least > 100);
    CHECK(leave > 100);
    if (!info(i.a).has_sign && !info(i.b).has_sign) {
      CHECK(back == 0);
      return;
    }
    CHECK(back > 100);
    CHECK(unordered == 0);
    CHECK(negative_starts > 100);
  });
}

}  // namespace
}  // namespace numemu::oracle::recording::data_kinds_test
