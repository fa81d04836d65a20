// Counted signs, tables of products, patches, and every instruction set of the portable kernels.
#include <hwy/targets.h>

#include "tests/emu/unit/integer/tally.hpp"

namespace integer_plan_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using namespace numemu::unit::test::integers;

namespace {

/// Runs `body` with every instruction set of this machine.
template <class Body>
void for_each_target(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace

TEST_CASE("integer: signs are counted, padding of words is not", "[fast]") {
  Tally tally;
  std::uint64_t seed = 1;
  const Format& sign = find_format("sign1");
  for (const int bits : {8, 10, 16, 32}) {
    for (const std::int64_t k : {0, 1, 31, 32, 33, 63, 64, 65, 511, 512, 513, 1300, 9000}) {
      UnitDescription unit = integer_unit(bits);
      unit.core = CoreKind::xnor;
      if (seed % 3 == 1) unit.accumulator.integer = IntegerOverflow::saturate_once;
      if (seed % 3 == 2) unit.accumulator.integer = IntegerOverflow::saturate_each;
      tally.check(integer_problem(unit, sign, sign,
                                  {19, 35, k, seed % 2 == 0, seed % 5 < 2, seed % 4 != 0},
                                  seed % 7 == 0 ? Codes::lowest : Codes::any, seed));
      ++seed;
    }
  }
  CHECK(tally.taken(IntegerPath::best) == 52);
  UnitDescription padded = integer_unit(32, IntegerOverflow::wrap, 0, 64);
  padded.core = CoreKind::xnor;
  tally.check(integer_problem(padded, sign, sign, {3, 3, 65}, Codes::any, 1));
  CHECK(tally.taken(IntegerPath::best) == 52);
}

TEST_CASE("integer: products from a table", "[fast]") {
  Tally tally;
  std::uint64_t seed = 1;
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1], &s4 = integer_formats()[2];
  for (const auto& [a, b] : std::vector<std::pair<const Format*, const Format*>>{
           {&s8, &s8}, {&u8, &s4}, {&s4, &u8}, {&s4, &s4}}) {
    for (const IntegerOverflow overflow :
         {IntegerOverflow::wrap, IntegerOverflow::saturate_once, IntegerOverflow::saturate_each}) {
      for (const bool large : {false, true}) {
        Dice dice(seed);
        std::vector<std::int32_t> entries(std::size_t{1} << (a->bits + b->bits));
        for (auto& entry : entries)
          entry = static_cast<std::int32_t>(dice.bits()) >> (large ? 0 : 16);
        UnitDescription unit =
            integer_unit(seed % 2 == 0 ? 32 : 18, overflow, seed % 3 == 0 ? 4 : 0);
        unit.core = CoreKind::table;
        unit.products = std::make_shared<const std::vector<std::int32_t>>(std::move(entries));
        tally.check(integer_problem(unit, *a, *b, {18, 37, 68, seed % 2 == 0, seed % 3 == 0},
                                    Codes::any, seed));
        ++seed;
      }
    }
  }
  CHECK(tally.taken(IntegerPath::best) == 24);
}

TEST_CASE("integer: patches with padding, dilation and short runs", "[fast]") {
  Tally tally;
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1], &s16 = integer_formats()[6];
  const Format& sign = find_format("sign1");
  std::uint64_t seed = 1;
  for (const Convolution& shape :
       {Convolution{2, 9, 9, 1, 3, 1, 1, 1}, Convolution{1, 8, 7, 3, 5, 2, 2, 1},
        Convolution{1, 6, 6, 17, 3, 1, 1, 2}, Convolution{1, 5, 5, 70, 3, 1, 1, 1},
        Convolution{3, 12, 12, 2, 1, 0, 1, 1}}) {
    for (const Format* format : {&s8, &u8, &s16, &sign}) {
      for (const bool weight_gradient : {false, true}) {
        Dice dice(seed);
        IntegerProblem p{integer_unit(), 0, 0, 0, {}, {}, {}};
        if (format == &sign) p.unit.core = CoreKind::xnor;
        Gather gather = patches(shape);
        if (weight_gradient) std::swap(gather.row, gather.depth);
        p.m = static_cast<std::int64_t>(gather.row.size());
        p.k = static_cast<std::int64_t>(gather.depth.size());
        p.n = 9;
        p.a = integer_operand(*format, std::move(gather), Codes::any, dice);
        p.b = integer_operand(format == &sign ? sign : s8, Gather::matrix(p.n, p.k, seed % 3 == 0),
                              Codes::any, dice);
        tally.check(p);
        std::swap(p.m, p.n);
        std::swap(p.a, p.b);
        tally.check(p);
        ++seed;
      }
    }
  }
  CHECK(tally.taken(IntegerPath::best) == 80);
}

TEST_CASE("integer: every instruction set of the portable paths", "[fast]") {
  const Format &s8 = integer_formats()[0], &u8 = integer_formats()[1], &s12 = integer_formats()[8],
               &s4 = integer_formats()[2];
  const Format& sign = find_format("sign1");
  for_each_target([&] {
    Tally tally;
    for (const bool transposed : {false, true}) {
      const IntegerShape shape{19, 37, 133, transposed, transposed};
      tally.check(integer_problem(integer_unit(), s8, u8, shape, Codes::any, 1));
      tally.check(integer_problem(integer_unit(16), s12, s8, shape, Codes::any, 2));
      tally.check(integer_problem(integer_unit(12, IntegerOverflow::saturate_once, 4), s8, s12,
                                  shape, Codes::any, 3));
      UnitDescription xnor = integer_unit();
      xnor.core = CoreKind::xnor;
      tally.check(integer_problem(xnor, sign, sign, shape, Codes::any, 4));
      UnitDescription table = integer_unit();
      table.core = CoreKind::table;
      std::vector<std::int32_t> entries(256);
      for (std::size_t i = 0; i < entries.size(); ++i)
        entries[i] = static_cast<std::int32_t>(i * i) - 700;
      table.products = std::make_shared<const std::vector<std::int32_t>>(entries);
      tally.check(integer_problem(table, s4, s4, shape, Codes::any, 5));
    }
    CHECK(tally.taken(IntegerPath::portable) == 8);
    CHECK(tally.taken(IntegerPath::best) == 10);
  });
}

}  // namespace integer_plan_test
