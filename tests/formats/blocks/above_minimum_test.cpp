// Numbers of codes above a minimum against exact arithmetic, where the sum is exact in float64 and
// where it is not, is zero, subnormal, too large or not a number.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "formats/blocks/block_convert.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"

namespace above_minimum_test {

using namespace numemu;

TEST_CASE("above minimum: float64 gives the numbers of exact arithmetic", "[fast]") {
  for (const char* name : {"group(uint1,64,bfloat16,min)", "group(uint8,64,float32,min)",
                           "group(uint8,64,float16,min)"}) {
    const BlockFormat& f = find_block_format(name);
    for (const float step : {0.125f, 1.0f / 3, 0x1p-14f, 0x1.8p-20f, 1e4f}) {
      const std::uint64_t code =
          encode(*f.scale, value_of(step), {RoundingMode::rup}, Overflow::saturate).code;
      for (const float low : {-1.0f, 0.0f, -0.0f, -0.125f, 1000.0f, -3e-40f, -1e-3f, -3e37f,
                              0x1.fffffep127f, -HUGE_VALF, std::bit_cast<float>(0x7fc00000u)}) {
        const BlockScale s = block_scale(f, {code, std::bit_cast<std::uint32_t>(low)}, 1);
        for (std::uint64_t c = 0; c <= f.element->largest_code(); ++c) {
          const float want = decode_in_block(f, s, c);
          const float got = above_minimum(f, s, c, to_double(s.factor), to_double(s.minimum));
          if (std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(want)) {
            CAPTURE(name, step, low, c, got, want);
            CHECK(std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want));
          }
        }
      }
    }
  }
}

TEST_CASE("above minimum: every code of signed elements gives its number", "[fast]") {
  const BlockFormat& f = find_block_format("group(int8,64,float32,min)");
  CHECK_FALSE(counts_above_minimum(f));
  CHECK(counts_above_minimum(find_block_format("group(uint8,64,float32,min)")));
  const BlockLayout layout = block_layout(f, {256}, 0);
  std::vector<std::uint8_t> codes(256);
  for (std::size_t c = 0; c < codes.size(); ++c) codes[c] = static_cast<std::uint8_t>(c);
  for (const float low : {0.0f, 0.25f}) {
    const std::vector<float> scales(4, 1), minima(4, low);
    std::vector<float> y(256);
    BlockSource source;
    source.codes = codes.data();
    source.scales = scales.data();
    source.zero_points = minima.data();
    dequantize_blocks(f, layout, source, y.data());
    for (int c = 0; c < 256; ++c)
      CHECK(y[static_cast<std::size_t>(c)] == static_cast<float>(c < 128 ? c : c - 256) + low);
  }
}

}  // namespace above_minimum_test
