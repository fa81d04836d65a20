// Whole tensors by blocks: against exact fractions, by hand, and the same bits for any threads.
#include "formats/scaling/quantize_blocks.hpp"

#include <omp.h>

#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/formats/blocks/block_oracle.hpp"

namespace quantize_blocks_test {

using namespace numemu;
using Catch::Contains;
using oracle::Fraction;
using Shape = std::vector<std::int64_t>;

namespace {

/// A quantized tensor with all its arrays.
struct Quantized {
  std::vector<float> y, minima;
  std::vector<std::uint64_t> codes, scales, zero_points;
  float tensor_scale = 1;
  BlockCounts counts;
  friend bool operator==(const Quantized& a, const Quantized& b) {
    const auto bits = [](const std::vector<float>& v) {
      std::vector<std::uint32_t> out;
      for (const float f : v) out.push_back(std::bit_cast<std::uint32_t>(f));
      return out;
    };
    return bits(a.y) == bits(b.y) && bits(a.minima) == bits(b.minima) && a.codes == b.codes &&
           a.scales == b.scales && a.zero_points == b.zero_points &&
           a.tensor_scale == b.tensor_scale && a.counts == b.counts;
  }
};

BlockQuantization how(const char* format, const char* rule = "") {
  BlockQuantization q;
  q.format = &find_block_format(format);
  q.rule = &find_scale_rule(*rule == 0 ? q.format->default_rule : rule, *q.format);
  return q;
}

Quantized run(const BlockQuantization& q, const Shape& shape, const std::vector<float>& x,
              int axis = -1, bool reference = false) {
  const BlockFormat& f = *q.format;
  const BlockLayout layout = block_layout(f, shape, axis);
  REQUIRE(layout.elements() == static_cast<std::int64_t>(x.size()));
  const auto blocks = static_cast<std::size_t>(layout.blocks);
  std::vector<std::uint32_t> codes(x.size()), scales(blocks), zeros(blocks);
  Quantized out;
  out.y.resize(x.size());
  out.minima.resize(f.affine == Affine::min ? blocks : 0);
  const BlockArrays arrays{
      codes.data(), scales.data(),
      f.affine == Affine::min ? static_cast<void*>(out.minima.data()) : zeros.data(),
      &out.tensor_scale};
  out.counts = (reference ? quantize_blocks_reference : quantize_blocks)(q, layout, x.data(),
                                                                         arrays, out.y.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    out.codes.push_back(load_code(*f.element, codes.data(), static_cast<std::int64_t>(i)));
  for (std::size_t b = 0; b < blocks; ++b) {
    out.scales.push_back(load_code(*f.scale, scales.data(), static_cast<std::int64_t>(b)));
    if (f.affine == Affine::zp)
      out.zero_points.push_back(load_code(*f.element, zeros.data(), static_cast<std::int64_t>(b)));
  }
  return out;
}

/// Numbers of many magnitudes; some zeros.
std::vector<float> sample(std::size_t n, std::uint64_t seed, int binades = 12) {
  const RandomSource random{.seed = seed};
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = random.uniform(3 * i) - random.uniform(3 * i + 1);
    const auto e = static_cast<int>(random.bits(3 * i + 2, 16)) % binades;
    x[i] = e == 0 ? 0 : static_cast<float>(std::ldexp(u, e - binades));
  }
  return x;
}

float amax_of(const std::vector<float>& x, const BlockElements& e) {
  float amax = 0;
  for (std::int64_t k = 0; k < e.size(); ++k)
    amax = std::max(amax, std::fabs(x[static_cast<std::size_t>(e.at(k))]));
  return amax;
}

}  // namespace

TEST_CASE("a block of MXFP4 by hand", "[fast]") {
  // amax 6: s = 2 - 2, X = 1. 5 and 2.5, 0.75, 0.25 are ties: to the even codes of 4, 2, 1, 0.
  const std::vector<float> x = {6, 5, 2.5f, -0.75f, 0.25f, -0.0f, 3.5f, 0.26f};
  const Quantized q = run(how("mx(e2m1,8)"), {8}, x);
  CHECK(q.scales == std::vector<std::uint64_t>{127});
  CHECK(q.codes == std::vector<std::uint64_t>{7, 6, 4, 0xa, 0, 8, 6, 1});
  CHECK(q.y == std::vector<float>{6, 4, 2, -1, 0, -0.0f, 4, 0.5f});
  CHECK(q.counts.elements ==
        FlagCounts{.elements = 8, .inexact = 6, .underflow = 3, .overflow = 0, .invalid = 0});
  // 7 saturates under floor, not under ceil.
  CHECK(run(how("mxfp4"), {2}, {7, 1}).y == std::vector<float>{6, 1});
  CHECK(run(how("mxfp4", "ceil"), {2}, {7, 1}).y == std::vector<float>{8, 1});
  CHECK(run(how("mxfp4", "ceil"), {2}, {7, 1}).scales == std::vector<std::uint64_t>{128});
}

TEST_CASE("MXINT8 saturates symmetrically unless told otherwise", "[fast]") {
  const std::vector<float> x = {-1.999f, 1.999f, 1 / 128.0f, 0.5f};
  Quantized q = run(how("mxint8"), {4}, x);
  CHECK(q.codes == std::vector<std::uint64_t>{0x81, 0x7f, 0, 32});
  CHECK(q.y == std::vector<float>{-127 / 64.0f, 127 / 64.0f, 0, 0.5f});
  CHECK(q.counts.elements.overflow == 2);
  BlockQuantization full = how("mxint8");
  full.element.symmetric = false;
  q = run(full, {4}, x);
  CHECK(q.codes == std::vector<std::uint64_t>{0x80, 0x7f, 0, 32});
  CHECK(q.y[0] == -2);
  CHECK(run(how("bfp(4,16)"), {3}, {-7.9f, 7.9f, 3}).codes == std::vector<std::uint64_t>{9, 7, 3});
}

TEST_CASE("every power-of-two format and rule against fractions, on every axis", "[fast]") {
  const Shape shape = {5, 7, 9};
  const std::vector<float> x = sample(5 * 7 * 9, 1);
  for (const char* name : {"mx(e2m1,4)", "mx(e3m2,5)", "mx(e2m3,3)", "mx(e4m3fn,4)", "mx(e5m2,2)",
                           "mx(int8,4)", "bfp(4,3)", "mxfp4"}) {
    for (const char* rule : {"floor", "ceil", "even", "nearest", "mse"}) {
      const BlockQuantization q = how(name, rule);
      const auto list = oracle::elements_of(*q.format->element, q.format->element_exponent, true);
      for (int axis = 0; axis < 3; ++axis) {
        const Quantized got = run(q, shape, x, axis);
        const BlockLayout layout = block_layout(*q.format, shape, axis);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const auto b = static_cast<std::size_t>(layout.block_of(static_cast<std::int64_t>(i)));
          const Fraction scale = oracle::power_of_two(static_cast<int>(got.scales[b]) - 127);
          const oracle::Element want =
              oracle::rounded(list, oracle::fraction(x[i]) / scale, RoundingMode::rne);
          CAPTURE(name, rule, axis, i);
          REQUIRE(oracle::fraction(got.y[i]) == want.value * scale);
        }
        const float amax = amax_of(x, layout.block(0));
        if (std::string(rule) == "floor" && amax > 0)
          REQUIRE(static_cast<int>(got.scales[0]) - 127 ==
                  std::ilogb(amax) - std::ilogb(to_double(largest_element(*q.format))));
      }
    }
  }
}

TEST_CASE("NVFP4 against fractions", "[fast]") {
  const BlockQuantization q = how("nvfp4");
  const auto elements = oracle::elements_of(find_format("e2m1"), 0, true);
  const auto scales = oracle::elements_of(find_format("e4m3fn"), 0, true);
  for (const int exponent : {0, -60, 100, -140}) {
    std::vector<float> x = sample(7 * 37, 2);
    for (float& v : x) v = std::ldexp(v, exponent);
    const Quantized got = run(q, {7, 37}, x);
    const BlockLayout layout = block_layout(*q.format, {7, 37}, -1);
    CHECK(layout.scale_shape == Shape{7, 3});
    const float amax = amax_of(x, {0, 1, 0, 7 * 37, 1});
    const float t = std::max(oracle::nearest_float(oracle::fraction(amax) / 2688), 0x1p-126f);
    CHECK(got.tensor_scale == t);
    CHECK(got.counts.tensor_scale == t);
    for (std::int64_t b = 0; b < layout.blocks; ++b) {
      const float largest = amax_of(x, layout.block(b));
      Fraction s = oracle::rounded(scales, oracle::fraction(largest) / (6 * oracle::fraction(t)),
                                   RoundingMode::rne)
                       .value;
      if (s == 0 && largest > 0) s = oracle::power_of_two(-9);
      CAPTURE(exponent, b);
      REQUIRE(oracle::fraction(to_double(
                  decode(find_format("e4m3fn"), got.scales[static_cast<std::size_t>(b)]))) == s);
      for (std::int64_t k = 0; k < layout.block(b).size(); ++k) {
        const auto i = static_cast<std::size_t>(layout.block(b).at(k));
        const Fraction scale = s * oracle::fraction(t);
        const Fraction want =
            s == 0 ? Fraction(0)
                   : oracle::rounded(elements, oracle::fraction(x[i]) / scale, RoundingMode::rne)
                         .value;
        REQUIRE(got.y[i] == (want == 0 ? 0.0f : oracle::nearest_float(want * scale)));
      }
    }
  }
}

TEST_CASE("NVFP4's two levels by hand", "[fast]") {
  // amax 2688: t = 1; the block of 6 has scale 1, the one of 2688 has 448.
  std::vector<float> x(32, 0.0f);
  x[0] = 2688;
  x[1] = 1000;
  x[16] = 6;
  x[17] = -2.6f;
  Quantized q = run(how("nvfp4"), {32}, x);
  CHECK(q.tensor_scale == 1);
  CHECK(q.scales == std::vector<std::uint64_t>{0x7e, 0x38});
  CHECK(q.y[0] == 2688);
  CHECK(q.y[1] == 896);
  CHECK(q.y[17] == -3);
  // A tiny block beside a large one keeps the smallest scale; zeros keep scale 0 and their signs.
  x[16] = 1e-4f;
  x[17] = 0;
  CHECK(run(how("nvfp4"), {32}, x).scales[1] == 1);
  x[16] = -0.0f;
  q = run(how("nvfp4"), {32}, x);
  CHECK(q.scales[1] == 0);
  CHECK(q.codes[16] == 8);
  CHECK(std::signbit(q.y[16]));
  // Nothing but zeros: t = 1. Without the second level: t = 1 and saturation at 448 * 6.
  CHECK(run(how("nvfp4"), {3}, {0, 0, 0}).tensor_scale == 1);
  BlockQuantization flat = how("nvfp4");
  flat.use_tensor_scale = false;
  q = run(flat, {2}, {1e6f, 1});
  CHECK(q.tensor_scale == 1);
  CHECK(q.y[0] == 2688);
  CHECK(q.counts.elements.overflow == 1);
}

TEST_CASE("zero, subnormal and non-finite blocks", "[fast]") {
  const float nan = std::nanf(""), inf = HUGE_VALF;
  const std::vector<float> x = {0,         -0.0f,     0,    0,  // zeros
                                0x1p-149f, 0x1p-128f, 0,    0,  // below 2^-127
                                1,         nan,       2,    3,  //
                                1,         2,         -inf, 3};
  Quantized q = run(how("mx(e2m1,4)"), {16}, x);
  CHECK(q.scales == std::vector<std::uint64_t>{0, 0, 0xff, 0xff});
  CHECK(q.codes[1] == 8);
  CHECK(q.y[5] == 0x1p-128f);  // 0.5 * 2^-127
  CHECK(q.y[4] == 0);
  for (std::size_t i = 8; i < 16; ++i) {
    CHECK(q.codes[i] == 0);
    CHECK(std::bit_cast<std::uint32_t>(q.y[i]) == 0x7fc00000);
  }
  CHECK(q.counts.blocks == 4);
  CHECK(q.counts.zero_blocks == 1);
  CHECK(q.counts.nan_blocks == 2);
  CHECK(q.counts.elements.elements == 16);
  BlockQuantization ignore = how("mx(e2m1,4)");
  ignore.nonfinite = Nonfinite::ignore;
  q = run(ignore, {16}, x);
  CHECK(q.scales[2] == 126);
  CHECK(q.y[8] == 1);
  CHECK(q.y[9] == 3);  // NaN: the largest element, as in a format without NaN
  CHECK(q.y[14] == -3);
  CHECK(q.counts.nan_blocks == 0);
  CHECK(q.counts.elements.invalid == 1);
  const Quantized nv = run(how("nvfp4"), {16}, x);
  CHECK(nv.scales == std::vector<std::uint64_t>{0x7f});
  CHECK(nv.tensor_scale == oracle::nearest_float(Fraction(3) / 2688));
  CHECK(run(how("group(int4,4,float16)"), {16}, x).scales ==
        std::vector<std::uint64_t>{0x3c00, 1, 0x7e00, 0x7e00});
  CHECK_THROWS_WITH(run(how("group(int4,4,hfp8_e4m3)"), {16}, x), Contains("has no NaN"));
  // Even where only later batches hold one.
  std::vector<float> many(20000, 1.0f);
  many[19999] = nan;
  CHECK_THROWS_WITH(run(how("group(int4,4,hfp8_e4m3)"), {20000}, many), Contains("has no NaN"));
}

TEST_CASE("affine groups by hand", "[fast]") {
  Quantized q = run(how("group(uint4,4,float32,zp)"), {4}, {-5, 0, 10, 3.4f});
  CHECK(q.zero_points == std::vector<std::uint64_t>{5});
  CHECK(q.codes == std::vector<std::uint64_t>{0, 5, 15, 8});
  CHECK(q.y == std::vector<float>{-5, 0, 10, 3});
  q = run(how("group(int4,4,float32,zp)"), {4}, {0, 3, 15, 7.4f});
  CHECK(q.zero_points == std::vector<std::uint64_t>{8});
  CHECK(q.codes == std::vector<std::uint64_t>{8, 0xb, 7, 0xf});
  q = run(how("group(uint4,4,float32,min)"), {4}, {-105, -100, -90, -101.6f});
  CHECK(q.minima == std::vector<float>{-105});
  CHECK(q.codes == std::vector<std::uint64_t>{0, 5, 15, 3});
  CHECK(q.y == std::vector<float>{-105, -100, -90, -102});
  q = run(how("group(uint4,4,float32,min)"), {3}, {7, 7, 7});
  CHECK(q.y == std::vector<float>{7, 7, 7});
  BlockQuantization ignore = how("group(uint4,4,float32,min)");
  ignore.nonfinite = Nonfinite::ignore;
  q = run(ignore, {4}, {-5, HUGE_VALF, 10, -HUGE_VALF});
  CHECK(q.y == std::vector<float>{-5, 10, 10, -5});
}

TEST_CASE("group scales are rounded up so that nothing clips", "[fast]") {
  const std::vector<float> x = sample(64 * 40, 5);
  for (const char* name : {"group(int4,32,float16)", "group(int8,16,bf16)", "group(int8,32,e8m0)",
                           "group(int4,channel,float16)", "group(int4,row,float32)",
                           "group(int4,tensor,float16)", "group(uint4,32,float16,min)"}) {
    CAPTURE(name);
    CHECK(run(how(name), {64, 40}, x).counts.elements.overflow == 0);
  }
  BlockQuantization nearest = how("group(int8,32,e4m3fn)");
  CHECK(run(nearest, {64, 40}, x).counts.elements.overflow == 0);
  nearest.scale_rounding = RoundingMode::rne;
  CHECK(run(nearest, {64, 40}, x).counts.elements.overflow > 0);
}

TEST_CASE("the random bits are those of the element's place in the tensor", "[fast]") {
  // Under scale 1 on every axis the codes are one encode() each, with the tensor's index.
  std::vector<float> x = sample(6 * 8, 6);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 8 == i / 8 ? 4 : x[i];
  for (int axis = 0; axis < 2; ++axis) {
    BlockQuantization q = how("mx(e2m1,64)");
    q.element.rounding = parse_rounding("sr(8)");
    q.element.random.seed = 42;
    std::vector<float> square(x.begin(), x.end());
    for (std::size_t c = 0; c < 8; ++c) square[c] = 4;  // amax 4 in every column too
    const Quantized got = run(q, {6, 8}, square, axis);
    Conversion c = q.element;
    c.format = q.format->element;
    for (std::size_t i = 0; i < square.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      REQUIRE(got.codes[i] == encode_element(c, value_of(square[i]), index).code);
    }
    std::vector<std::uint32_t> words(square.size());
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = q.element.random.bits(i, 8);
    BlockQuantization supplied = q;
    supplied.element.random.seed = 0;
    supplied.element.random_words = words.data();
    CHECK(run(supplied, {6, 8}, square, axis) == got);
  }
}

TEST_CASE("the same bits as the reference for any number of threads", "[fast]") {
  const int before = omp_get_max_threads();
  std::vector<float> x = sample(60 * 1500, 7);
  x[77] = HUGE_VALF;
  x[89999] = std::nanf("");
  for (const char* name :
       {"mxfp4", "mxint8", "nvfp4", "group(uint4,128,float16,zp)", "group(int8,tensor,float32)",
        "group(int8,channel,bf16)", "group(e4m3fn,row,float32)", "group(e5m2,5000,float32)",
        "group(uint8,7,float32,min)"}) {
    for (int axis = 0; axis < 2; ++axis) {
      for (const Nonfinite nonfinite : {Nonfinite::propagate, Nonfinite::ignore}) {
        BlockQuantization q = how(name);
        q.nonfinite = nonfinite;
        q.element.rounding = parse_rounding(axis == 0 ? "rne" : "sr(8)");
        const Quantized reference = run(q, {60, 1500}, x, axis, true);
        for (const int threads : {1, 3}) {
          omp_set_num_threads(threads);
          CAPTURE(name, axis, threads);
          CHECK(run(q, {60, 1500}, x, axis) == reference);
        }
      }
    }
  }
  omp_set_num_threads(before);
}

TEST_CASE("what is decoded from the arrays is y", "[fast]") {
  const std::vector<float> x = sample(9 * 50, 8);
  for (const char* name :
       {"mxfp6_e3m2", "nvfp4", "bfp(5,16)", "group(int4,32,float16)", "group(uint4,32,float16,zp)",
        "group(int8,row,float32)", "group(uint3,channel,bf16,min)", "mx(float16,8)"}) {
    const BlockQuantization q = how(name);
    const BlockLayout layout = block_layout(*q.format, {9, 50}, 0);
    const auto blocks = static_cast<std::size_t>(layout.blocks);
    std::vector<std::uint32_t> codes(x.size()), scales(blocks), zeros(blocks);
    std::vector<float> y(x.size()), z(x.size());
    float t = 1;
    quantize_blocks(q, layout, x.data(), {codes.data(), scales.data(), zeros.data(), &t}, y.data());
    dequantize_blocks(*q.format, layout, {codes.data(), scales.data(), zeros.data(), t}, z.data());
    CAPTURE(name);
    CHECK(y == z);
    // Omitted outputs do not change the others.
    std::vector<float> alone(x.size());
    quantize_blocks(q, layout, x.data(), {}, alone.data());
    CHECK(alone == y);
    // What is representable stays (idempotence), where the scale can be found again.
    if (q.format->affine == Affine::sym && q.format->power_of_two_scale()) {
      quantize_blocks(q, layout, y.data(), {}, z.data());
      CHECK(z == y);
    }
  }
}

TEST_CASE("a tile is a block of its elements", "[fast]") {
  const std::int64_t rows = 11, columns = 21;
  const std::vector<float> x = sample(2 * 11 * 21, 5);
  for (const char* name : {"group(e4m3fn,4x8,float32)", "group(nf4,3x16,bfloat16)",
                           "mx(e2m1,16x16)", "group(int8,1x8,float16,min)", "nvfp4(4x4)"}) {
    CAPTURE(name);
    const BlockQuantization q = how(name);
    const Quantized got = run(q, {2, rows, columns}, x);
    CHECK(got == run(q, {2, rows, columns}, x, -1, true));
    // The same elements as a line of one block, under the tensor scale of all.
    BlockFormat line = *q.format;
    line.span = Span::block;
    line.size *= line.rows;
    const std::int64_t r = line.rows, c = q.format->size;
    line.rows = 1;
    std::size_t b = 0;
    for (std::int64_t m = 0; m < 2; ++m) {
      for (std::int64_t r0 = 0; r0 < rows; r0 += r) {
        for (std::int64_t c0 = 0; c0 < columns; c0 += c, ++b) {
          std::vector<float> tile, values;
          for (std::int64_t i = r0; i < std::min(rows, r0 + r); ++i) {
            for (std::int64_t j = c0; j < std::min(columns, c0 + c); ++j) {
              const auto at = static_cast<std::size_t>((m * rows + i) * columns + j);
              tile.push_back(x[at]);
              values.push_back(got.y[at]);
            }
          }
          BlockQuantization alone = q;
          alone.format = &line;
          alone.tensor_scale = got.tensor_scale;
          const Quantized one = run(alone, {static_cast<std::int64_t>(tile.size())}, tile);
          CHECK(one.y == values);
          REQUIRE(one.scales == std::vector<std::uint64_t>{got.scales[b]});
        }
      }
    }
    CHECK(b == got.scales.size());
  }
}

TEST_CASE("a tensor scale beside powers of two and of a group", "[fast]") {
  // amax 7: t = 7 / 6 and X = 1 for the first block; 1.75 / t = 1.5 = amax of the second: X = 1/4.
  const Quantized mx = run(how("mx(e2m1,2,tensor-scale)"), {4}, {7, -3.5f, 1.75f, 0});
  CHECK(mx.tensor_scale == 7 / 6.0f);
  CHECK(mx.scales == std::vector<std::uint64_t>{127, 125});
  CHECK(mx.y == std::vector<float>{6 * (7 / 6.0f), -3 * (7 / 6.0f), 1.5f * (7 / 6.0f), 0});
  const std::vector<float> x = sample(64 * 96, 9);
  for (const char* name : {"group(int4,32,e4m3fn,tensor-scale)", "nvfp4(32)", "nvfp4(8)",
                           "group(nf4,64,e4m3fn,tensor-scale)", "mx(e2m1,32,tensor-scale)",
                           "group(int8,row,float16,tensor-scale)"}) {
    CAPTURE(name);
    const BlockQuantization q = how(name);
    const Quantized got = run(q, {64, 96}, x);
    CHECK(got == run(q, {64, 96}, x, -1, true));
    CHECK(got.tensor_scale != 1);
  }
  CHECK(run(how("nvfp4(16)"), {64, 96}, x) == run(how("nvfp4"), {64, 96}, x));
}

TEST_CASE("given scales take the place of the rule's", "[fast]") {
  const std::vector<float> x = sample(12 * 32, 3);
  for (const char* name : {"mxfp4", "nvfp4", "group(int4,16,float16)", "group(int4,16,float16,zp)",
                           "group(e4m3fn,channel,float32)"}) {
    CAPTURE(name);
    BlockQuantization q = how(name, "");
    const Quantized chosen = run(q, {12, 32}, x);
    const BlockFormat& f = *q.format;
    std::vector<std::uint8_t> scales(chosen.scales.size() *
                                     static_cast<std::size_t>(container_bytes(*f.scale)));
    for (std::size_t b = 0; b < chosen.scales.size(); ++b)
      store_code(*f.scale, scales.data(), static_cast<std::int64_t>(b), chosen.scales[b]);
    q.scales = scales.data();
    CHECK(run(q, {12, 32}, x) == chosen);
    CHECK(run(q, {12, 32}, x, -1, true) == chosen);
    q.rule = &find_scale_rule(f.power_of_two_scale() ? "ceil" : "absmax", f);
    CHECK(run(q, {12, 32}, x).y == chosen.y);
  }
  // Half of the scale: everything above half of the largest element saturates.
  const float half[] = {0.5f};
  BlockQuantization q = how("group(int4,4,float32)");
  q.scales = half;
  CHECK(run(q, {4}, {7, 1, -0.5f, -9}).y == std::vector<float>{3.5f, 1, -0.5f, -3.5f});
}

TEST_CASE("empty tensors have no blocks, or scales of nothing", "[fast]") {
  CHECK(run(how("mxfp4"), {0}, {}).counts.blocks == 0);
  CHECK(run(how("group(int8,tensor,float32)"), {0}, {}).scales ==
        std::vector<std::uint64_t>{0x3f800000});
  CHECK(run(how("group(uint8,row,float32,zp)"), {2, 0}, {}).counts.zero_blocks == 2);
}

}  // namespace quantize_blocks_test
