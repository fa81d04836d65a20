// Blocks with real scales: the fast path against the reference, in codes, values and counts.
#include <bit>
#include <cmath>

#include "formats/scaling/fast_real.hpp"
#include "tests/catch.hpp"

namespace fast_real_test {

using namespace numemu;

namespace {

constexpr std::int64_t kElements = 3000;  // more than a batch, and short last blocks

enum class Data { normal, relu, grid, shifted, wide, constant, huge, tiny };

std::vector<float> numbers(Data data) {
  const RandomSource random{.seed = 5};
  std::vector<float> x(kElements);
  for (std::int64_t i = 0; i < kElements; ++i) {
    const auto u = [&](std::int64_t k) {
      return random.uniform(static_cast<std::uint64_t>(8 * i + k));
    };
    const double sum = u(0) + u(1) + u(2) - u(3) - u(4) - u(5);
    const double z = data == Data::relu       ? std::fmax(0.0, sum)
                     : data == Data::grid     ? std::floor(16 * u(0)) / 8 - 1
                     : data == Data::shifted  ? 1 + sum * 0x1p-20
                     : data == Data::wide     ? std::ldexp(sum, static_cast<int>(80 * u(6)) - 70)
                     : data == Data::constant ? -0.1
                     : data == Data::huge     ? sum * 0x1p126
                     : data == Data::tiny     ? sum * 0x1p-140
                                              : sum;
    x[static_cast<std::size_t>(i)] = static_cast<float>(z);
  }
  if (data == Data::relu) x[7] = -0.0f;
  return x;
}

struct Result {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint32_t> y;
  BlockCounts counts;
  bool operator==(const Result&) const = default;
};

Result quantized(const BlockQuantization& q, const std::vector<float>& x, bool reference) {
  const BlockLayout layout = block_layout(*q.format, {2, kElements / 2}, 1);
  std::vector<float> y(x.size()), scales(static_cast<std::size_t>(layout.blocks)), minima(scales);
  Result result;
  result.codes.resize(x.size());
  const BlockArrays arrays{result.codes.data(), scales.data(), minima.data()};
  result.counts = (reference ? quantize_blocks_reference : quantize_blocks)(q, layout, x.data(),
                                                                            arrays, y.data());
  for (const float v : y) result.y.push_back(std::bit_cast<std::uint32_t>(v));
  return result;
}

BlockQuantization how(const std::string& format, const char* rounding) {
  BlockQuantization q;
  q.format = &find_block_format(format);
  q.rule = &find_scale_rule("absmax", *q.format);
  q.element.rounding = parse_rounding(rounding);
  q.element.random.seed = 9;
  return q;
}

}  // namespace

TEST_CASE("fast real: the bits of the reference", "[fast]") {
  for (const char* format :
       {"group(uint2,tensor,float32,min)", "group(uint3,row,float32,min)",
        "group(uint8,tensor,float32,min)", "group(uint4,100,float32,min)",
        "group(int5,64,bfloat16,min)", "group(uint8,7,float32,min)", "group(int8,256,float32)",
        "group(uint8,100,float32)", "group(float8_e4m3fn,tensor,float32)",
        "group(e5m3+finite+unsigned,64,float32)", "group(int4,row,bfloat16)"}) {
    for (const char* rounding : {"rne", "sr(1)", "sr(8)", "sr(14)", "sr(16)", "sr(24)"}) {
      const BlockQuantization q = how(format, rounding);
      REQUIRE(FastReal(q).serves());
      for (int data = 0; data <= static_cast<int>(Data::tiny); ++data) {
        INFO(format << " " << rounding << " data " << data);
        const std::vector<float> x = numbers(static_cast<Data>(data));
        CHECK(quantized(q, x, false) == quantized(q, x, true));
      }
      std::vector<float> x = numbers(Data::normal);
      x[3] = INFINITY;
      x[kElements - 1] = NAN;
      x[kElements - 2] = -INFINITY;
      for (const Nonfinite what : {Nonfinite::propagate, Nonfinite::ignore}) {
        BlockQuantization other = q;
        other.nonfinite = what;
        CHECK(quantized(other, x, false) == quantized(other, x, true));
      }
    }
  }
}

TEST_CASE("fast real: random words that are given", "[fast]") {
  std::vector<std::uint32_t> words(kElements);
  for (std::int64_t i = 0; i < kElements; ++i)
    words[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(i) * 2654435761U;
  for (const char* format : {"group(uint4,100,float32,min)", "group(uint8,tensor,float32,min)",
                             "group(uint8,100,float32)"}) {
    for (const char* rounding : {"sr(1)", "sr(8)", "sr(24)"}) {
      BlockQuantization q = how(format, rounding);
      const std::vector<float> x = numbers(Data::normal);
      const Result drawn = quantized(q, x, true);
      q.element.random_words = words.data();
      INFO(format << " " << rounding);
      REQUIRE(FastReal(q).serves());
      const Result given = quantized(q, x, true);
      CHECK(quantized(q, x, false) == given);
      CHECK_FALSE(drawn == given);
    }
  }
}

TEST_CASE("fast real: what it leaves to the reference", "[fast]") {
  const std::string format = "group(uint4,64,float32,min)";
  for (const char* rounding : {"rtz", "rna", "rup", "rodd", "sr(25)", "sr(8,a)", "sr(8,b)"}) {
    INFO(rounding);
    CHECK_FALSE(FastReal(how(format, rounding)).serves());
  }
  CHECK_FALSE(FastReal(how("group(uint4,64,float32,zp)", "rne")).serves());
  CHECK_FALSE(FastReal(how("nvfp4", "rne")).serves());
}

}  // namespace fast_real_test
