// The vector path of block formats against the reference: codes, values, scales and counts.
#include "formats/scaling/fast_blocks.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "formats/simd/block_elements.hpp"
#include "tests/catch.hpp"

namespace numemu::fast_blocks_test {
namespace {

constexpr const char* kFormats[] = {"mxfp4",
                                    "mxfp6_e2m3",
                                    "mxfp6_e3m2",
                                    "mxfp8_e4m3",
                                    "mxfp8_e5m2",
                                    "mxint8",
                                    "nvfp4",
                                    "mx(e2m1,16)",
                                    "mx(e2m1,20)",
                                    "bfp(6,16)",
                                    "mx(float8_e4m3fnuz,32)",
                                    "group(e4m3fn,128,float32)",
                                    "group(e5m2,20,float32)",
                                    "group(int8,32,float32)",
                                    "group(int5,16,float8_e4m3fn,tensor-scale)",
                                    "group(int2,16,float8_e5m2,tensor-scale)",
                                    "group(int8,16,float16,tensor-scale)",
                                    "group(int4,20,float8_e4m3fn)",
                                    "group(e2m1,16,float16)",
                                    "group(e2m3,20,bfloat16)",
                                    "group(e6m1,16,float8_e4m3fn,tensor-scale)",
                                    "group(nf4,20,float8_e5m2,tensor-scale)",
                                    "group(nf4,16,float8_e4m3fn)",
                                    "group(af4,16,float32)",
                                    "group(lloyd(normal,4),16,float8_e4m3fn,tensor-scale)",
                                    "group(posit(4,1),16,float16)",
                                    "group(e3m0+finite,16,float8_e4m3fn,tensor-scale)",
                                    "mx(nf4,32)",
                                    "mx(lloyd(normal,4),16)",
                                    "mx(e4m0,32)"};
constexpr const char* kRules[] = {"floor",
                                  "ceil",
                                  "even",
                                  "nearest",
                                  "absmax",
                                  "four-over-six",
                                  "pow2(absmax,up)",
                                  "detuned(absmax,0.7)"};
constexpr const char* kRoundings[] = {"rne",   "rtz",    "rup",    "rdn",     "rna",
                                      "sr(8)", "sr(14)", "sr(16)", "sr(23,b)"};

enum class Data { normal, bits, wide, grid, tiny, huge };
constexpr Data kData[] = {Data::normal, Data::bits, Data::wide, Data::grid, Data::tiny, Data::huge};

std::vector<float> make_data(Data data, std::int64_t n, std::mt19937& generator) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) {
    const auto word = static_cast<std::uint32_t>(generator());
    const float z = normal(generator);
    switch (data) {
      case Data::normal:
        v = z;
        break;
      case Data::bits:
        v = std::bit_cast<float>(word);
        break;
      case Data::wide:
        v = z * std::exp2(static_cast<float>(word % 200) - 100.0F);
        break;
      case Data::grid:
        v = (static_cast<float>(word % 17) - 8) / 4;
        break;
      case Data::tiny:
        v = z * (word % 3 == 0 ? 1e-43F : 1e-38F);
        break;
      case Data::huge:
        v = std::bit_cast<float>((word & 0x83ffffff) | 0x7c000000);
        if (!std::isfinite(v)) v = 1e38F;
        break;
    }
  }
  if (data == Data::normal) x[static_cast<std::size_t>(n / 2)] = std::nanf("");
  if (data == Data::grid) std::fill_n(x.begin(), 32, -0.0F);
  return x;
}

// 0 if the reference and the vector path agree in everything; a message for the first that does
// not.
std::string compare(const BlockQuantization& how, const BlockLayout& layout,
                    const std::vector<float>& x, int& served) {
  const float t = tensor_scale_of(how, x.data(), layout.elements());
  const FastBlocks fast(how);
  if (!fast.serves(layout, t)) return "";
  ++served;
  const auto blocks = static_cast<std::size_t>(layout.blocks);
  std::vector<float> y(x.size()), fast_y(x.size()), bare_y(x.size());
  const std::size_t bytes_of_scales =
      blocks * static_cast<std::size_t>(how.format->scale->bits / 8);
  std::vector<std::uint8_t> codes(x.size()), fast_codes(x.size()), scales(bytes_of_scales),
      fast_scales(bytes_of_scales);
  BlockCounts want = quantize_blocks_reference(
      how, layout, x.data(), {.codes = codes.data(), .scales = scales.data()}, y.data());
  want.tensor_scale = 1;  // quantize() gets the tensor scale
  const BlockCounts got =
      fast.quantize(layout, x.data(), t, 0, layout.blocks,
                    {.codes = fast_codes.data(), .scales = fast_scales.data()}, fast_y.data());
  BlockQuantization without = how;
  without.count_flags = false;
  FastBlocks(without).quantize(layout, x.data(), t, 0, layout.blocks, {}, bare_y.data());
  const std::size_t bytes = x.size() * sizeof(float);
  if (scales != fast_scales) return "scales";
  if (codes != fast_codes) return "codes";
  if (std::memcmp(y.data(), fast_y.data(), bytes) != 0) return "values";
  if (std::memcmp(y.data(), bare_y.data(), bytes) != 0) return "values without flags";
  if (!(want == got)) return "counts";
  return "";
}

void compare_all(const char* const* formats, std::size_t count, std::int64_t rows) {
  std::mt19937 generator(5);
  int served = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const BlockFormat& format = find_block_format(formats[k]);
    for (const char* rule : kRules) {
      BlockQuantization how{.format = &format};
      try {
        how.rule = &find_scale_rule(rule, format);
      } catch (const Error&) {
        continue;
      }
      for (const char* rounding : kRoundings)
        for (const Data data : kData)
          for (const std::int64_t columns : {64, 200}) {
            how.element.rounding = parse_rounding(rounding);
            how.element.random.seed = 3;
            const BlockLayout layout = block_layout(format, {rows, columns}, -1);
            INFO(format.name << " " << rule << " " << rounding << " data " << static_cast<int>(data)
                             << " columns " << columns);
            CHECK(compare(how, layout, make_data(data, rows * columns, generator), served) == "");
          }
    }
  }
  CHECK(served > 0);
}

TEST_CASE("fast blocks: every format, rule and rounding agrees with the reference", "[fast]") {
  compare_all(kFormats, std::size(kFormats), 8);
}

TEST_CASE("fast blocks: real scales under every rounding agree with the reference", "[fast]") {
  std::mt19937 generator(11);
  int served = 0;
  for (const char* name : {"group(e4m3fn,128,float32)", "group(e5m2,20,float32)",
                           "group(int5,16,float8_e4m3fn)", "group(nf4,20,float16)"}) {
    const BlockFormat& format = find_block_format(name);
    BlockQuantization how{.format = &format, .rule = &find_scale_rule("absmax", format)};
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rup,
                                    RoundingMode::rdn, RoundingMode::rna}) {
      how.scale_rounding = mode;
      for (const Data data : kData) {
        const BlockLayout layout = block_layout(format, {8, 200}, -1);
        INFO(name << " scales " << static_cast<int>(mode) << " data " << static_cast<int>(data));
        CHECK(compare(how, layout, make_data(data, 8 * 200, generator), served) == "");
      }
    }
  }
  CHECK(served > 0);
}

TEST_CASE("fast blocks: every instruction set gives the same bits", "[fast]") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    INFO(hwy::TargetName(target));
    const char* formats[] = {"mxfp8_e4m3"};
    compare_all(formats, 1, 3);
    if (simd::has_quotients()) {
      const char* quotients[] = {"nvfp4"};
      compare_all(quotients, 1, 3);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

/// `x` with all but the largest element of each block moved to a midpoint between two values of the
/// block, or up to three float32 numbers beside it.
std::vector<float> at_midpoints(const BlockQuantization& how, const BlockLayout& layout,
                                std::vector<float> x) {
  const BlockFormat& f = *how.format;
  const float t = tensor_scale_of(how, x.data(), layout.elements());
  std::vector<std::uint32_t> scales(static_cast<std::size_t>(layout.blocks));
  std::vector<float> y(x.size());
  quantize_blocks_reference(how, layout, x.data(), {.codes = nullptr, .scales = scales.data()},
                            y.data());
  const std::vector<double> values = finite_values(*f.element);
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const double scale =
        f.scale->bits <= 8
            ? double{decode_table(*f.scale)[reinterpret_cast<std::uint8_t*>(scales.data())[b]]} * t
            : std::bit_cast<float>(scales[static_cast<std::size_t>(b)]);
    const BlockElements block = layout.block(b);
    float* const from = x.data() + block.first;
    const auto largest = std::max_element(
        from, from + block.count, [](float p, float q) { return std::fabs(p) < std::fabs(q); });
    for (std::int64_t i = 0; i < block.count; ++i) {
      const auto number = static_cast<std::size_t>(b + 7 * i);
      const std::size_t k = number % (values.size() - 1);
      auto moved = static_cast<float>((values[k] + values[k + 1]) / 2 * scale);
      const int steps = static_cast<int>(number / 3 % 7) - 3;
      for (int step = 0; step < std::abs(steps); ++step)
        moved = std::nextafter(moved, steps < 0 ? -HUGE_VALF : HUGE_VALF);
      if (from + i != largest && std::fabs(moved) < std::fabs(*largest)) from[i] = moved;
    }
  }
  return x;
}

TEST_CASE("fast blocks: quotients next to midpoints are those of the reference", "[fast]") {
  std::mt19937 generator(31);
  int served = 0;
  for (const char* name :
       {"nvfp4", "nvfp4(32)", "group(e4m3fn,128,float32)",
        "group(int5,16,float8_e4m3fn,tensor-scale)", "group(nf4,16,float8_e4m3fn,tensor-scale)"}) {
    const BlockFormat& format = find_block_format(name);
    const BlockQuantization how{.format = &format, .rule = &find_scale_rule("absmax", format)};
    for (const Data data : {Data::normal, Data::huge}) {
      const BlockLayout layout = block_layout(format, {32, 256}, -1);
      std::vector<float> x = make_data(data, layout.elements(), generator);
      for (float& v : x)
        if (std::isnan(v)) v = 1;
      x = at_midpoints(how, layout, std::move(x));
      for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
        hwy::SetSupportedTargetsForTest(target);
        INFO(name << " data " << static_cast<int>(data) << " " << hwy::TargetName(target));
        CHECK(compare(how, layout, x, served) == "");
      }
      hwy::SetSupportedTargetsForTest(0);
    }
  }
  CHECK(served > 0);
}

TEST_CASE("fast blocks: many random nvfp4 blocks agree with the reference", "[slow]") {
  std::mt19937 generator(23);
  const BlockFormat& format = find_block_format("nvfp4");
  BlockQuantization how{.format = &format, .rule = &find_scale_rule("absmax", format)};
  int served = 0;
  for (int round = 0; round < 2000; ++round)
    for (const Data data : {Data::normal, Data::wide, Data::grid}) {
      const BlockLayout layout = block_layout(format, {16, 256}, -1);
      CHECK(compare(how, layout, make_data(data, 16 * 256, generator), served) == "");
    }
  CHECK(served > 0);
}

TEST_CASE("fast blocks: random bits of symmetric integers", "[fast]") {
  // 127 x + r / 2^16 lies close to a whole number: a quotient of 24 bits is too coarse.
  std::vector<float> x(256, 0.0F);
  std::vector<std::uint32_t> words(256, 0);
  x[0] = 1;
  x[1] = 0x1.c0d344p-1F, words[1] = 43928;
  x[2] = 0x1.7ee0ccp-1F, words[2] = 1853;
  const BlockFormat& format = find_block_format("group(int8,256,float32)");
  BlockQuantization how{.format = &format, .rule = &find_scale_rule("absmax", format)};
  how.element.symmetric = true;
  how.scale_rounding = RoundingMode::rne;
  how.element.rounding = parse_rounding("sr(16)");
  how.element.random_words = words.data();
  const BlockLayout layout = block_layout(format, {1, 256}, -1);
  std::vector<std::uint8_t> codes(256), want(256);
  std::vector<float> scales(1);
  quantize_blocks(how, layout, x.data(), {.codes = codes.data(), .scales = scales.data()}, nullptr);
  quantize_blocks_reference(how, layout, x.data(), {.codes = want.data(), .scales = scales.data()},
                            nullptr);
  CHECK(scales[0] == 0x1.020408p-7F);
  CHECK(want[1] == 111);
  CHECK(want[2] == 95);
  CHECK(codes == want);
}

TEST_CASE("fast blocks: what it does not serve it says", "[fast]") {
  const auto serves = [](const char* name, const char* rounding, int axis) {
    const BlockFormat& format = find_block_format(name);
    BlockQuantization how{.format = &format, .rule = &find_scale_rule(format.default_rule, format)};
    how.element.rounding = parse_rounding(rounding);
    return FastBlocks(how).serves(block_layout(format, {64, 64}, axis), 1);
  };
  CHECK(serves("mxfp4", "rne", -1));
  CHECK_FALSE(serves("mxfp4", "rne", 0));
  CHECK_FALSE(serves("mxfp4", "rodd", -1));
  CHECK(serves("nvfp4", "sr(8)", -1));
  CHECK_FALSE(serves("nvfp4", "sr(23)", -1));
  CHECK(serves("group(float8_e4m3fn,128,float32)", "rne", -1));
  CHECK(serves("group(int4,32,float16)", "rne", -1));
  CHECK(serves("group(nf4,16,float8_e4m3fn,tensor-scale)", "rne", -1));
  CHECK(serves("mx(e3m0+finite,32)", "rup", -1));
  CHECK_FALSE(serves("group(nf4,16,float8_e4m3fn)", "sr(8)", -1));
  CHECK_FALSE(serves("group(nf4,16,float16,tensor-scale)", "rne", -1));
  CHECK_FALSE(serves("group(int4,16,float8_e4m3fn,zp)", "rne", -1));
  CHECK_FALSE(serves("group(e5m10,16,float8_e4m3fn)", "rne", -1));
}

}  // namespace
}  // namespace numemu::fast_blocks_test
