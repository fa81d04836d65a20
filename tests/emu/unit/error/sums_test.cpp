// Roundings of registers in float64 beside the reference conversion, exhaustively.
#include <cmath>
#include <vector>

#include "emu/unit/error/sum_walk.hpp"
#include "formats/codec.hpp"
#include "formats/value.hpp"
#include "tests/catch.hpp"

namespace sums_test {

using namespace numemu;
using namespace numemu::unit;

TEST_CASE("sums: the register's rounding is that of the format", "[fast]") {
  const Format& narrow = find_format("e5m3");
  const Format& wide = find_format("e5m7");
  for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                  RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd}) {
    const Register r{.format = &narrow, .rounding = {.mode = mode}};
    const Steps steps(r);
    for (const double x : finite_values(wide)) {
      if (std::fabs(x) > largest_value(narrow)) continue;
      const Encoded code = encode(narrow, value_of(x), r.rounding, Overflow::saturate);
      INFO(to_string(r.rounding) << " of " << x);
      CHECK(steps.round(x, 0.5) == to_double(decode(narrow, code.code)));
    }
  }
}

TEST_CASE("sums: expected errors are means over the register's parity", "[fast]") {
  const Format& format = find_format("e8m7");
  for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                  RoundingMode::rup, RoundingMode::rdn, RoundingMode::rodd}) {
    const Register r{.format = &format, .rounding = {.mode = mode}};
    const Steps steps(r);
    for (const bool negative : {false, true}) {
      for (int sixteenth = -40; sixteenth <= 40; ++sixteenth) {
        const double x = sixteenth / 16.0;
        double mean = 0, square = 0;
        const double even = mode == RoundingMode::rodd ? 163 : 160;  // none is
        for (const double parity : {even, 161.0}) {                  // steps of 1 from 128 to 255
          const double sum = negative ? -parity : parity;
          const double error = steps.round(sum + x, 0) - (sum + x);
          mean += error / 2;
          square += error * error / 2;
        }
        const RoundingError expected = rounding_error(r.rounding, x, 1, negative);
        INFO(to_string(r.rounding) << " of " << x << (negative ? " below" : " above"));
        CHECK(expected.mean == mean);
        CHECK(expected.square == square);
      }
    }
  }
}

TEST_CASE("sums: a deck gives every member once", "[fast]") {
  Draws draws(5);
  std::vector<int> seen(100);
  for (int i = 0; i < 300; ++i) ++seen[draws.from_deck(100)];
  for (const int count : seen) CHECK(count == 3);
}

}  // namespace sums_test
