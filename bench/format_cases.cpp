#include "bench/format_cases.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/float32_converter.hpp"
#include "formats/scaling/fast_blocks.hpp"

namespace numemu::bench {
namespace {

constexpr std::uintptr_t kLine = 64;

float* aligned(std::vector<float>& v) {
  float* p = v.data();
  while (reinterpret_cast<std::uintptr_t>(p) % kLine != 0) ++p;
  return p;
}

// Bytes, words and flags that differ are one error message.
void require(bool equal, const std::string& name) {
  if (!equal) throw Error(name + ": differs from the reference");
}

bool same(const float* a, const float* b, std::int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

ConversionCase scalar_case(const std::string& format, const std::string& rounding, bool codes,
                           double instructions) {
  const Conversion c{.format = &find_format(format), .rounding = parse_rounding(rounding)};
  const auto converter = std::make_shared<const Float32Converter>(c);
  ConversionCase result{.name = (codes ? "codes " : "") + format + " " + rounding,
                        .instructions = instructions,
                        .has_flags = true};
  result.run = [converter, codes](Arrays& a, bool with_flags) {
    std::uint8_t* flags = with_flags ? a.flags.data() : nullptr;
    if (codes) {
      converter->encode(a.x, a.n, a.codes.data(), flags);
    } else {
      converter->round(a.x, a.n, a.y, flags);
    }
  };
  result.require_equal = [c, codes, name = result.name, run = result.run](Arrays& a) {
    static const Format& float32 = find_format("float32");
    for (const bool with_flags : {false, true}) {
      run(a, with_flags);
      for (std::int64_t i = 0; i < a.n; ++i) {
        const Encoded want = encode_element(c, value_of(a.x[i]), i);
        const std::uint64_t value =
            encode(float32, decode(*c.format, want.code), {}, Overflow::ieee).code;
        require(codes ? a.codes[i] == want.code : std::bit_cast<std::uint32_t>(a.y[i]) == value,
                name);
        require(!with_flags || a.flags[i] == want.flags, name + " flags");
      }
    }
  };
  return result;
}

// Quantizes and dequantizes rows of 4096 elements; the tensor scale's pass is part of it.
ConversionCase block_case(const std::string& name, double instructions, std::string rule = {}) {
  const BlockFormat& format = find_block_format(name);
  if (rule.empty()) rule = format.default_rule;
  BlockQuantization how{.format = &format, .rule = &find_scale_rule(rule, format)};
  const auto flagged = std::make_shared<const FastBlocks>(how);
  how.count_flags = false;
  const auto bare = std::make_shared<const FastBlocks>(how);
  const auto layout_of = [&format](const Arrays& a) {
    constexpr std::int64_t kColumns = 4096;
    return block_layout(format, {a.n / kColumns, kColumns}, -1);
  };
  ConversionCase result{
      .name = name + " " + rule + " rne", .instructions = instructions, .has_flags = true};
  result.run = [how, layout_of, flagged, bare](Arrays& a, bool with_flags) {
    const BlockLayout layout = layout_of(a);
    const float t = tensor_scale_of(how, a.x, a.n);
    (with_flags ? flagged : bare)->quantize(layout, a.x, t, 0, layout.blocks, {}, a.y);
  };
  result.require_equal = [how, layout_of, name, run = result.run](Arrays& a) {
    std::vector<float> want(static_cast<std::size_t>(a.n));
    quantize_blocks_reference(how, layout_of(a), a.x, {}, want.data());
    for (const bool with_flags : {false, true}) {
      run(a, with_flags);
      require(same(want.data(), a.y, a.n), name);
    }
  };
  return result;
}

ConversionCase decode_case(const std::string& name) {
  const Format& format = find_format(name);
  static const Format& float32 = find_format("float32");
  const Conversion c{.format = &float32, .overflow = Overflow::ieee};
  ConversionCase result{.name = "decode " + name};
  result.prepare = [&format](Arrays& a) {
    for (std::int64_t i = 0; i < a.n; ++i)
      a.codes[i] = static_cast<std::uint8_t>(
          (static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U >> 40) & format.code_mask());
  };
  result.run = [c, &format](Arrays& a, bool) {
    convert_codes(c, format, a.codes.data(), a.n, a.y);
  };
  result.require_equal = [c, &format, name, run = result.run](Arrays& a) {
    std::vector<float> want(static_cast<std::size_t>(a.n));
    convert_codes_reference(c, format, a.codes.data(), a.n, want.data());
    run(a, false);
    require(same(want.data(), a.y, a.n), "decode " + name);
  };
  return result;
}

}  // namespace

std::string to_string(Numbers data) {
  return data == Numbers::normal        ? "normal"
         : data == Numbers::log_uniform ? "log-uniform"
                                        : "special";
}

Arrays::Arrays(std::int64_t count, Numbers data)
    : n(count),
      codes(static_cast<std::size_t>(count)),
      flags(static_cast<std::size_t>(count)),
      x_(static_cast<std::size_t>(count) + kLine),
      y_(static_cast<std::size_t>(count) + kLine) {
  x = aligned(x_);
  y = aligned(y_);
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-20, 20);
  constexpr float kSpecials[] = {0.0F, -0.0F, HUGE_VALF, -HUGE_VALF, NAN, 1e-40F, -1e-44F, 3e38F};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t word = static_cast<std::uint32_t>(generator());
    const float sign = (word & 1) != 0 ? 1.0F : -1.0F;
    if (data == Numbers::normal) x[i] = normal(generator);
    if (data == Numbers::log_uniform) x[i] = sign * std::exp2(exponent(generator));
    if (data == Numbers::special)
      x[i] = word % 4 == 0 ? kSpecials[word / 4 % std::size(kSpecials)] : normal(generator);
  }
}

// Instructions: the steps of formats/simd/round-inl.hpp, and of 16 elements' share of a block.
std::vector<ConversionCase> conversion_cases() {
  std::vector<ConversionCase> cases;
  for (const char* rounding : {"rne", "rtz", "rup", "rdn"})
    cases.push_back(scalar_case("float8_e4m3fn", rounding, false, 7));
  cases.push_back(scalar_case("float8_e4m3fn", "rna", false, 8));
  cases.push_back(scalar_case("float8_e4m3fn", "rodd", false, 10));
  cases.push_back(scalar_case("float8_e5m2", "rne", false, 7));
  cases.push_back(scalar_case("float8_e4m3fnuz", "rne", false, 6));
  cases.push_back(scalar_case("float4_e2m1fn", "rne", false, 8));
  cases.push_back(scalar_case("int8", "rne", false, 6));
  for (const char* format : {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "int8"})
    cases.push_back(scalar_case(format, "rne", true, 13));
  for (const char* rounding : {"sr(8,a)", "sr(8)", "sr(8,b)", "sr(8,odd)"})
    cases.push_back(scalar_case("float8_e4m3fn", rounding, false, 21));
  for (const char* rounding : {"sr(23,a)", "sr(23)", "sr(23,b)", "sr(23,odd)"})
    cases.push_back(scalar_case("float8_e4m3fn", rounding, false, 43));
  for (const char* block : {"mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2"})
    cases.push_back(block_case(block, 12));
  cases.push_back(block_case("nvfp4", 26));
  // Two candidates with the sums of their errors, then the elements; codebooks are searched one
  // element at a time: 16 of them by 5 steps and 3 products.
  cases.push_back(block_case("nvfp4", 100, "four-over-six"));
  cases.push_back(block_case("group(int5,16,float8_e4m3fn,tensor-scale)", 26));
  cases.push_back(block_case("group(int4,32,float16)", 24));
  cases.push_back(block_case("group(nf4,16,float8_e4m3fn,tensor-scale)", 16 * 40));
  for (const char* format : {"float4_e2m1fn", "float6_e3m2fn", "float8_e4m3fn"})
    cases.push_back(decode_case(format));
  return cases;
}

}  // namespace numemu::bench
