// Codes above a minimum in float64 against exact arithmetic: every rounding that is served, ties,
// ends, subnormal and huge numbers, flags, random bits from counters and from words.
#include "formats/minimum_codes.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu {
namespace {

/// Numbers of a block in units of its step: codes, halves, what lies just beside them, random ones.
std::vector<float> probes(float low, float step, int bits) {
  std::vector<float> x;
  const RandomSource random{.seed = 4, .stream = Stream::probe};
  for (int i = 0; i < 4 * (1 << bits) + 8; ++i) {
    const float v = low + step * static_cast<float>(i) / 4;
    x.insert(x.end(), {v, std::nextafter(v, HUGE_VALF), std::nextafter(v, -HUGE_VALF)});
    x.push_back(static_cast<float>(low + double{step} * (1 << bits) *
                                             random.uniform(static_cast<std::uint64_t>(i))));
  }
  x.insert(x.end(),
           {low - step, 0.0f, -0.0f, std::numeric_limits<float>::max(),
            std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()});
  return x;
}

bool same(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST_CASE("minimum codes: float64 gives the codes of exact arithmetic", "[fast]") {
  struct Place {
    float low, step;
  };
  std::int64_t served = 0, all = 0;
  for (const char* name : {"group(uint1,64,bfloat16,min)", "group(uint4,64,float32,min)",
                           "group(uint8,64,float32,min)", "group(uint8,64,float16,min)"}) {
    const BlockFormat& f = find_block_format(name);
    for (const Place& place :
         {Place{-1, 0.125f}, Place{0, 1.0f / 3}, Place{1000, 0x1p-10f}, Place{-3e-40f, 1e-4f},
          Place{-1e-3f, 0x1.8p-20f}, Place{-3e37f, 1e4f}}) {
      const std::uint64_t code =
          encode(*f.scale, value_of(place.step), {RoundingMode::rup}, Overflow::saturate).code;
      const BlockScale s = block_scale(f, {code, std::bit_cast<std::uint32_t>(place.low)}, 1);
      for (const Rounding& rounding :
           {Rounding{RoundingMode::rne}, Rounding{RoundingMode::sr, StochasticVariant::c, 16},
            Rounding{RoundingMode::sr, StochasticVariant::c, 3}}) {
        Conversion c{.format = f.element, .rounding = rounding};
        c.random.seed = 7;
        const MinimumCodes fast(f, rounding, s);
        REQUIRE(fast.encodes());
        const std::vector<float> x =
            probes(place.low, static_cast<float>(to_double(s.factor)), f.element->bits);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const auto k = static_cast<std::int64_t>(i);
          const std::optional<Encoded> got = fast.encode(x[i], c.random_bits(k));
          const Encoded want = encode_in_block(f, c, s, x[i], k);
          ++all;
          served += got.has_value();
          if (got && (got->code != want.code || got->flags != want.flags)) {
            CAPTURE(name, place.low, place.step, to_string(rounding), x[i]);
            CHECK(got->code == want.code);
            CHECK(int{got->flags} == int{want.flags});
          }
          if (!same(fast.decode(want.code), decode_in_block(f, s, want.code))) {
            CAPTURE(name, place.low, place.step, want.code);
            CHECK(fast.decode(want.code) == decode_in_block(f, s, want.code));
          }
        }
      }
    }
  }
  CHECK(served > all / 3);  // the others lie on codes and ties by intent
  CHECK(served < all);
}

TEST_CASE("minimum codes: whole blocks, from words and from counters", "[fast]") {
  const BlockFormat& f = find_block_format("group(uint4,1500,bfloat16,min)");
  std::vector<float> x(3000);
  const RandomSource random{.seed = 9, .stream = Stream::probe};
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i % 3 == 0 ? -1.0f : static_cast<float>(random.uniform(i) * 4 - 1);
  const BlockLayout layout = block_layout(f, {3000}, 0);
  const BlockScale s = block_scale(
      f,
      {encode(*f.scale, value_of(4.0f / 15), {RoundingMode::rup}, Overflow::saturate).code,
       std::bit_cast<std::uint32_t>(-1.0f)},
      1);
  Conversion c{.format = f.element, .rounding = {RoundingMode::sr, StochasticVariant::c, 16}};
  c.random.seed = 5;
  std::vector<std::uint32_t> words;
  for (std::int64_t i = 0; i < 3000; ++i) words.push_back(c.random_bits(i));
  for (const bool given : {false, true}) {
    c.random_words = given ? words.data() : nullptr;
    for (std::int64_t b = 0; b < 2; ++b) {
      std::vector<std::uint8_t> codes(x.size());
      std::vector<float> y(x.size());
      const BlockElements elements = layout.block(b);
      const FlagCounts counts =
          encode_elements(f, c, s, x.data(), elements, 100, 1500, codes.data(), y.data());
      FlagCounts expected{.elements = 1400};
      for (std::int64_t k = 100; k < 1500; ++k) {
        const std::int64_t i = elements.at(k);
        const auto place = static_cast<std::size_t>(i);
        const Encoded want = encode_in_block(f, c, s, x[place], i);
        expected.add(want.flags);
        REQUIRE(codes[place] == want.code);
        REQUIRE(y[place] == decode_in_block(f, s, want.code));
      }
      CHECK(counts == expected);
    }
  }
}

}  // namespace numemu
