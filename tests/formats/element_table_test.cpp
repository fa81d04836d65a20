// Elements of codebooks and of floats without mantissa bits against the reference, at and beside
// every point where something changes.
#include "formats/element_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "formats/blocks/block_convert.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace numemu::element_table_test {
namespace {

/// The values and the middles under a scale, the float32 numbers beside them, and the ends.
std::vector<float> critical_numbers(const Format& f, double scale) {
  std::vector<double> values = finite_values(f);
  const double largest = std::max(std::fabs(values.front()), std::fabs(values.back()));
  for (const double v : {0.0, largest / 1024, largest / 4096, 1.5 * largest, 2 * largest}) {
    values.push_back(v);
    values.push_back(-v);
  }
  std::sort(values.begin(), values.end());
  std::vector<float> x = {0.0f, -0.0f, 1e-45f, -1e-45f, 3e38f, -3e38f};
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const double v : {values[i], (values[i] + values[i == 0 ? 0 : i - 1]) / 2,
                           0.75 * values[i], 0.5 * values[i]}) {
      const auto at = static_cast<float>(v * scale);
      if (!std::isfinite(at)) continue;
      x.push_back(at);
      x.push_back(std::nextafter(at, 3e38f));
      x.push_back(std::nextafter(at, -3e38f));
    }
  }
  return x;
}

TEST_CASE("element table: the reference at every point where something changes", "[fast]") {
  int compared = 0, opened = 0;
  for (const char* name :
       {"nf4", "af4", "lloyd(normal,4)", "lloyd(normal,5)", "posit(4,1)", "posit(8,2)", "log(4,2)",
        "e2m0+finite", "e3m0", "e4m0+finite", "e5m0+nosub"}) {
    const BlockFormat& group = scaled_format(find_format(name), Span::tensor, 0);
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd"}) {
      const Conversion c{.format = group.element, .rounding = parse_rounding(rounding)};
      const ElementTable* const table = ElementTable::find(c);
      REQUIRE(table != nullptr);
      // 1, 4 and 24 significant bits; a product of 28; and next to the ends of float32.
      for (const double scale :
           {1.0, 0.875, double{0.1f}, 1.25 * double{0.3f}, 0x1p-120, 0x1p100}) {
        const std::vector<float> x = critical_numbers(*c.format, scale);
        const auto n = static_cast<std::int64_t>(x.size());
        std::vector<float> values(x.size());
        std::vector<std::uint8_t> codes(x.size()), flags(x.size()), open(x.size());
        const bool some = table->convert(x.data(), n, scale,
                                         {values.data(), codes.data(), flags.data(), open.data()});
        CHECK(some == (std::count(open.begin(), open.end(), 1) != 0));
        const BlockScale factor{.factor = shortest(value_of(scale))};
        int wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          opened += open[i];
          if (open[i] != 0) continue;
          ++compared;
          const Encoded want = encode_in_block(group, c, factor, x[i], 0);
          const float y = decode_in_block(group, factor, want.code);
          const bool right =
              want.code == codes[i] && want.flags == flags[i] &&
              std::bit_cast<std::uint32_t>(y) == std::bit_cast<std::uint32_t>(values[i]);
          if (!right && wrong++ == 0)
            UNSCOPED_INFO(name << " " << rounding << " scale " << scale << " x " << x[i]
                               << ": code " << int{codes[i]} << " not " << want.code << ", flags "
                               << int{flags[i]} << " not " << int{want.flags} << ", value "
                               << values[i] << " not " << y);
        }
        CHECK(wrong == 0);
      }
    }
  }
  CHECK(compared > 20 * opened);
}

TEST_CASE("element table: what has none", "[fast]") {
  const auto has = [](const char* name, const char* rounding) {
    return ElementTable::find(
               {.format = &find_format(name), .rounding = parse_rounding(rounding)}) != nullptr;
  };
  CHECK(has("nf4", "rne"));
  CHECK_FALSE(has("nf4", "sr(8)"));
  CHECK_FALSE(has("e2m1", "rne"));  // vector loops
  CHECK_FALSE(has("int4", "rne"));
  CHECK_FALSE(has("posit(16,2)", "rne"));
}

}  // namespace
}  // namespace numemu::element_table_test
