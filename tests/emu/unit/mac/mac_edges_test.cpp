// Rounded multiply-adds where things could go wrong: midpoints, shapes, threads, what is declined.
#include <omp.h>

#include "tests/catch.hpp"
#include "tests/emu/unit/mac/mac_case.hpp"

namespace mac_edges_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("mac: shapes, layouts and depths of more than a slice", "[fast]") {
  const UnitDescription unit = chain_of("hfp16_e6m9"),
                        chunked = chain_of("hfp16_e6m9", "rne", Overflow::ieee, 100);
  const std::int64_t shapes[][3] = {{1, 1, 1},    {1, 40, 9},   {40, 1, 9}, {65, 3, 20},
                                    {4, 32, 257}, {3, 33, 600}, {5, 4, 0}};
  for (const auto& [m, n, k] : shapes) {
    for (const bool transposed : {false, true}) {
      Case c{.m = m, .n = n, .k = k, .with_c = true, .magnitudes = {0x1p-3, 2}};
      c.layout = {transposed, !transposed, true};
      INFO(m << " x " << n << " x " << k);
      CHECK(differing(unit, c) == 0);
      CHECK(differing(chunked, c) == 0);
      c.with_c = false;
      CHECK(differing(unit, c) == 0);
    }
  }
}

TEST_CASE("mac: products half way between two numbers, and a tiny sum", "[fast]") {
  // 3 * 683 = 2049, twelve bits: a midpoint of the register, which the sum before it pushes off by
  // less than the host's last place.
  const auto half = [](double x) {
    return static_cast<std::uint16_t>(
        encode(find_format("float16"), value_of(x), {}, Overflow::ieee).code);
  };
  constexpr std::int64_t kSide = 24;
  std::vector<std::uint16_t> a, b, fast(kSide * kSide), reference(kSide * kSide);
  for (int i = 0; i < kSide; ++i) {
    a.push_back(half((i % 3 - 1) * 0x1p-24));
    a.push_back(half(i % 2 == 0 ? 3.0 : -3.0));
    b.push_back(half(std::ldexp(1.0, i % 4 - 2)));
    b.push_back(half(std::ldexp(683.0, i - 18)));
  }
  const Gather gather = Gather::matrix(kSide, 2);
  for (const std::string& rounding : roundings()) {
    const UnitDescription unit = chain_of("float16", rounding);
    Gemm g;
    g.m = g.n = kSide;
    g.k = 2;
    g.a = {&find_format("float16"), a.data(), &gather};
    g.b = {&find_format("float16"), b.data(), &gather};
    g.d = fast.data();
    INFO(rounding);
    REQUIRE(multiply_mac(unit, g));
    g.d = reference.data();
    const ReferenceDot dot(unit, g);
    for (std::int64_t i = 0; i < kSide * kSide; ++i) dot.write(i / kSide, i % kSide);
    CHECK(fast == reference);
  }
}

TEST_CASE("mac: an infinity that saturates is larger than any sum of finite products", "[fast]") {
  for (const Overflow overflow : kOverflows) {
    for (const char* rounding : {"rna", "rne", "sr(8)"}) {
      const UnitDescription unit = chain_of("e8m7", rounding, overflow);
      INFO(rounding << " " << to_string(overflow));
      CHECK(differing(unit,
                      {.a = "float8_e5m2", .b = "int8", .m = 40, .k = 11, .fill = Fill::any}) == 0);
    }
  }
}

TEST_CASE("mac: the number of threads does not matter", "[fast]") {
  // Large enough for the tile driver to use threads.
  Dice dice(11);
  constexpr std::int64_t kM = 70, kN = 330, kK = 50;
  const OperandData a =
      make_operand("float8_e4m3fn", kM * kK, Gather::matrix(kM, kK), Fill::finite, dice);
  const OperandData b =
      make_operand("float8_e5m2", kN * kK, Gather::matrix(kN, kK), Fill::any, dice);
  for (const char* rounding : {"rne", "rup", "sr(8)", "sr(23)"}) {
    const UnitDescription unit = chain_of("hfp16_e6m9", rounding, Overflow::ieee, 16);
    std::vector<std::vector<std::uint16_t>> results;
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      auto& d = results.emplace_back(kM * kN);
      Gemm g;
      g.m = kM;
      g.n = kN;
      g.k = kK;
      g.a = a.operand();
      g.b = b.operand();
      g.d = d.data();
      REQUIRE(multiply_mac(unit, g));
    }
    INFO(rounding);
    CHECK(results[0] == results[1]);
    CHECK(results[0] == results[2]);
  }
  omp_set_num_threads(omp_get_num_procs());
}

TEST_CASE("mac: declines what it does not know, and writes nothing", "[fast]") {
  const auto declines = [](const auto& change) {
    UnitDescription unit = chain_of("hfp16_e6m9");
    change(unit);
    return differing(unit, {}) == -1;
  };
  CHECK_FALSE(declines([](UnitDescription&) {}));
  CHECK(declines([](UnitDescription& u) { u.accumulator.format = &find_format("dlfloat16"); }));
  CHECK(declines([](UnitDescription& u) { u.accumulator.format = &find_format("e4m3+ftz"); }));
  CHECK(declines([](UnitDescription& u) { u.accumulator.format = &find_format("e9m3"); }));
  CHECK(declines([](UnitDescription& u) { u.d = &find_format("float64"); }));
  CHECK(declines([](UnitDescription& u) { u.c = &find_format("float64"); }));
  const UnitDescription integer = integer_chain(16, 4, IntegerOverflow::wrap);
  CHECK(differing(integer, {.a = "float8_e5m2", .fill = Fill::any}) == -1);
  CHECK(differing(chain_of("float32", "sr(32)"), {}) == -1);
}

TEST_CASE("mac: the host's own half precision", "[fast]") {
  for (const int chunk : {0, 1, 64, 100}) {
    const UnitDescription unit = chain_of("e5m10", "rne", Overflow::ieee, chunk);
    for (const char* a : {"float16", "float8_e5m2", "int8"}) {
      for (Case c : data_sets(a, "float16", {0, 0x1p-10})) {
        c.n += 40;
        c.k = 400;
        INFO(a << " chunk " << chunk << " seed " << c.seed);
        CHECK(differing(unit, c) == 0);
      }
    }
    CHECK(differing(unit, {.m = 3, .n = 70, .k = 0, .with_c = true}) == 0);
  }
}

}  // namespace mac_edges_test
