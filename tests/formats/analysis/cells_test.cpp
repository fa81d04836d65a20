// The step function of a format against the encoder, at every boundary and its float32 neighbours.
#include "formats/analysis/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace cells_test {

using namespace numemu;

namespace {

const char* const kModes[] = {"rne", "rna", "rtz", "rup", "rdn", "rodd"};

bool integer_at_most(const Format& f, int bits) {
  return f.kind == Kind::integer && f.bits <= bits;
}

/// The value x becomes, through the encoder with saturation.
double quantized(const Format& f, float x, const Rounding& rounding, bool symmetric) {
  double value = to_double(decode(f, encode(f, value_of(x), rounding, Overflow::saturate).code));
  if (symmetric && f.kind == Kind::integer && f.is_signed)
    value = std::max(value, -largest_value(f));
  return value;
}

/// The value x becomes by its cell.
double by_cell(const std::vector<Cell>& list, float x) {
  double value = list.front().value;
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (x >= float_threshold(list[i].low, list[i].low_closed)) value = list[i].value;
  }
  return value;
}

void check_against_encoder(const Format& f, const Rounding& rounding, bool symmetric) {
  const std::vector<Cell> list = cells(f, rounding, symmetric);
  int wrong = 0;
  const auto probe = [&](double at) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const auto x = static_cast<float>(at);
    for (const float y : {std::nextafterf(x, -kInf), x, std::nextafterf(x, kInf)}) {
      // Unsigned formats encode negatives as NaN, which no cell describes.
      if (!std::isfinite(y) || (!f.is_signed && y < 0)) continue;
      const double expected = quantized(f, y, rounding, symmetric), got = by_cell(list, y);
      if (got == expected) continue;
      if (++wrong == 1)
        UNSCOPED_INFO(f.name << " at " << y << ": cell " << got << ", encoder " << expected);
    }
  };
  for (const Cell& cell : list) {
    probe(cell.low);
    probe(cell.value);
    if (std::isfinite(cell.low) && std::isfinite(cell.high)) probe((cell.low + cell.high) / 2);
  }
  probe(1e30);
  probe(-1e30);
  INFO(f.name);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every cell of every named format of at most 8 bits is the encoder's, in six modes",
          "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 8) continue;
    for (const char* mode : kModes) {
      INFO(mode);
      check_against_encoder(*f, parse_rounding(mode), true);
      if (integer_at_most(*f, 8)) check_against_encoder(*f, parse_rounding(mode), false);
    }
  }
}

TEST_CASE("cells of formats that flush, have no subnormals, no mantissa or no sign", "[fast]") {
  for (const char* name :
       {"e4m3+ftz", "e3m0+finite+ftz", "e3m2+nosub", "e4m0+finite", "e3m2+finite+unsigned",
        "binary6p1se", "binary6p3uf", "e5m2+nosub+finite"}) {
    for (const char* mode : kModes) {
      INFO(mode);
      check_against_encoder(find_format(name), parse_rounding(mode), true);
    }
  }
}

TEST_CASE("cells touch, ascend, reach infinity and know their binades", "[fast]") {
  for (const char* name :
       {"float8_e4m3fn", "float4_e2m1fn", "int4", "uint4", "hfp8_e4m3_nosub", "float16"}) {
    const Format& f = find_format(name);
    INFO(name);
    const std::vector<Cell> list = cells(f, parse_rounding("rne"), true);
    const std::size_t dropped = f.kind == Kind::integer && f.is_signed ? 1 : 0;
    REQUIRE(list.size() == finite_values(f).size() - dropped);
    CHECK(std::isinf(list.front().low));
    CHECK(std::isinf(list.back().high));
    CHECK(list.back().value == largest_value(f));
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      REQUIRE(list[i].high == list[i + 1].low);
      REQUIRE(list[i].value < list[i + 1].value);
      // Codes alternate, and so do the owners of ties; the first cell's low is not a tie.
      if (i > 0) REQUIRE(list[i].low_closed != list[i + 1].low_closed);
    }
    for (const Cell& c : list) {
      REQUIRE(c.normal == (f.kind == Kind::floating && std::abs(c.value) >= smallest_normal(f)));
    }
  }
}

TEST_CASE("brackets are the gaps between neighbours", "[fast]") {
  const std::vector<Cell> gaps = brackets(find_format("float4_e2m1fn"), true);
  const double values[] = {-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6};
  REQUIRE(gaps.size() == 14);
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    CHECK(gaps[i].low == values[i]);
    CHECK(gaps[i].value == values[i]);
    CHECK(gaps[i].high == values[i + 1]);
    CHECK(gaps[i].normal == (std::abs(values[i]) >= 1 && std::abs(values[i + 1]) >= 1));
  }
  CHECK(brackets(find_format("int4"), true).front().low == -7);
  CHECK(brackets(find_format("int4"), false).front().low == -8);
}

TEST_CASE("what has no cells is refused", "[fast]") {
  CHECK_THROWS_AS(cells(find_format("int4"), parse_rounding("sr(8)"), true), Error);
  CHECK_THROWS_AS(cells(find_format("tfloat32"), parse_rounding("rne"), true), Error);
  CHECK_THROWS_AS(brackets(find_format("e4m3+ftz"), true), Error);
}

TEST_CASE("a float threshold decides as the double bound does", "[fast]") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const double bounds[] = {0.0,   -0.0,   1.0,      1.0 + 0x1p-30, 1.0 - 0x1p-30, -1.0 - 0x1p-40,
                           1e-46, -1e-46, 0x1p-149, 3e38,          3.5e38,        -3.5e38,
                           1e300, 0.1,    -0.3};
  for (const double bound : bounds) {
    for (const bool closed : {true, false}) {
      const float t = float_threshold(bound, closed);
      const auto near = static_cast<float>(std::clamp(bound, -3.4e38, 3.4e38));
      for (const float x :
           {near, std::nextafterf(near, kInf), std::nextafterf(near, -kInf), 0.0F, -0.0F, 1.0F,
            std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}) {
        INFO("bound " << bound << " closed " << closed << " x " << x);
        CHECK((x >= t) == (closed ? x >= bound : x > bound));
      }
    }
  }
}

TEST_CASE("block lookup finds the last threshold at or below each value", "[fast]") {
  for (const int size : {0, 1, 2, 3, 7, 8, 15, 100, 256, 300}) {
    std::vector<float> thresholds;
    for (int i = 0; i < size; ++i)
      thresholds.push_back(static_cast<float>(i / 2) - 10);  // every one twice
    const CellSearch search(thresholds);
    std::vector<float> x;
    for (int i = 0; i < CellSearch::kBlock - 3; ++i) x.push_back(static_cast<float>(i) * 2.5F - 12);
    x.insert(x.end(), {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(), NAN});
    std::vector<std::uint32_t> index(x.size());
    search.find(x.data(), static_cast<int>(x.size()), index.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto expected =
          std::count_if(thresholds.begin(), thresholds.end(), [&](float t) { return x[i] >= t; });
      INFO("size " << size << " x " << x[i]);
      CHECK(index[i] == static_cast<std::uint32_t>(expected));
    }
  }
}

}  // namespace cells_test
