// The fast paths of quantize_codes and quantize_values against their references: codes, values,
// flag counts.
#include "formats/quantize.hpp"

#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/simd/quantize_fast.hpp"
#include "tests/catch.hpp"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace numemu::quantize_test {
namespace {

constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::propagate, Overflow::ieee};
constexpr float kScales[] = {
    1.0F, 0.1F, 3.0F, 0x1p-20F, 0x1.fffffep+10F, 1e-41F, 0x1p-149F, 0x1.fffffep+127F, 448.0F / 3};

template <class Out>
using Quantize = FlagCounts (*)(const Conversion&, const float*, std::int64_t, float, Out*,
                                std::int64_t);

// Bytes, so that the sign of zero and the bits of NaN count.
template <class Out>
bool same_bits(const std::vector<Out>& a, const std::vector<Out>& b) {
  return std::memcmp(a.data(), b.data(), b.size() * sizeof(Out)) == 0;
}

template <class Out>
void check_output(Quantize<Out> fast, Quantize<Out> reference, const Conversion& c,
                  const std::vector<float>& x, float scale, std::int64_t first) {
  const auto n = static_cast<std::int64_t>(x.size());
  const Out mark = static_cast<Out>(0xa5);
  std::vector<Out> got(x.size() + 1, mark), want(x.size());
  const FlagCounts counts = fast(c, x.data(), n, scale, got.data(), first);
  const FlagCounts wanted = reference(c, x.data(), n, scale, want.data(), first);
  INFO(c.format->name << " " << to_string(c.rounding) << " scale " << scale << " "
                      << to_string(c.overflow) << " symmetric " << c.symmetric << " first " << first
                      << " bytes " << sizeof(Out));
  CHECK(got.back() == mark);
  CHECK(same_bits(got, want));
  CHECK(counts == wanted);
}

void check_equal(const Conversion& c, const std::vector<float>& x, float scale,
                 std::int64_t first = 0) {
  if (c.format->bits <= 8) {
    check_output<std::uint8_t>(quantize_codes, quantize_codes_reference, c, x, scale, first);
  } else {
    check_output<std::uint16_t>(quantize_codes, quantize_codes_reference, c, x, scale, first);
  }
  if (exact_in_float32(*c.format))
    check_output<float>(quantize_values, quantize_values_reference, c, x, scale, first);
}

std::vector<const Format*> small_formats() {
  std::vector<const Format*> list;
  for (const Format* f : named_formats())
    if (f->bits <= 8) list.push_back(f);
  for (const char* name : {"binary8p1se", "binary8p3sf", "binary6p1uf", "binary8p8ue",
                           "binary7p1ue", "e3m0+finite", "e2m3+nosub", "e4m3+ftz", "e1m6+finite",
                           "e1m7+finite+unsigned", "e4m3b40+nan1+nosub", "e6m0"})
    list.push_back(&find_format(name));
  return list;
}

// Values, midpoints and the thresholds below the smallest normal number, times the scale, and their
// float neighbours.
std::vector<float> probes(const Format& f, float scale) {
  std::vector<double> centres;
  std::vector<double> values = finite_values(f);
  values.push_back(2 * values.back());
  for (std::size_t i = 0; i < values.size(); ++i) {
    centres.push_back(values[i]);
    if (i > 0) centres.push_back(values[i] / 2 + values[i - 1] / 2);
  }
  for (double x = smallest_normal(f); x > smallest_normal(f) / 40; x /= 2)
    for (const double factor : {1.0, 1.0 - std::ldexp(0.25, -f.mantissa_bits),
                                1.0 - std::ldexp(0.5, -f.mantissa_bits), 0.75})
      centres.push_back(x * factor);
  // Where tininess ends in formats whose field 0 is a normal binade.
  centres.push_back(std::ldexp(1 + std::ldexp(0.5, -f.mantissa_bits), -f.bias));
  const double beyond =
      largest_value(f) + std::exp2(std::ilogb(largest_value(f)) - f.mantissa_bits);
  centres.push_back(beyond);
  centres.push_back(largest_value(f) / 2 + beyond / 2);
  std::vector<float> list;
  for (const double centre : centres) {
    const auto x = static_cast<float>(centre * scale);
    for (const float y : {x, std::nextafter(x, HUGE_VALF), std::nextafter(x, -HUGE_VALF)}) {
      if (!std::isfinite(y)) continue;
      list.push_back(y);
      if (f.is_signed) list.push_back(-y);
    }
  }
  return list;
}

TEST_CASE("quantize: fast equals reference around every value and midpoint", "[fast]") {
  for (const Format* f : small_formats()) {
    for (const float scale : kScales) {
      const std::vector<float> x = probes(*f, scale);
      for (const Overflow overflow : kOverflows)
        for (const bool symmetric : {true, false}) {
          if (!symmetric && f->kind != Kind::integer) continue;
          check_equal({.format = f, .overflow = overflow, .symmetric = symmetric}, x, scale);
        }
    }
  }
}

TEST_CASE("quantize: fast equals reference on random bit patterns with NaN and infinities",
          "[fast]") {
  std::mt19937 random(7);
  for (const Format* f : small_formats()) {
    std::vector<float> x(5003);
    for (float& element : x) element = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    // The second chunk has neither NaN nor Inf; uniform exponents would rarely leave one.
    std::normal_distribution<float> normal(0, 3);
    for (std::size_t i = 2048; i < 4096; ++i)
      x[i] = f->is_signed ? normal(random) : std::abs(normal(random));
    for (const Overflow overflow : kOverflows)
      check_equal({.format = f, .overflow = overflow, .symmetric = true}, x, 0.37F);
  }
}

TEST_CASE("quantize: every instruction set of this machine gives the same codes and counts",
          "[fast]") {
  const std::int64_t supported = hwy::SupportedTargets();
  for (std::int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    for (const Format* f : small_formats()) check_equal({.format = f}, probes(*f, 0.37F), 0.37F);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_CASE("quantize: every length of the last vector", "[fast]") {
  const Conversion c{.format = &find_format("float8_e4m3fn")};
  for (std::size_t n = 0; n < 40; ++n) check_equal(c, std::vector<float>(n, 1.3F), 0.7F);
}

TEST_CASE("quantize: the element's index selects its random bits", "[fast]") {
  std::vector<float> x(3000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.001F * static_cast<float>(i);
  // The second part alone equals the second part of the whole, also inside a block of random bits.
  const Conversion sr{.format = &find_format("int4"), .rounding = parse_rounding("sr(8)")};
  std::vector<std::uint8_t> whole(x.size()), part(x.size());
  quantize_codes(sr, x.data(), 3000, 0.9F, whole.data());
  for (const std::int64_t first : {1, 15, 16, 1001}) {
    quantize_codes(sr, x.data() + first, 3000 - first, 0.9F, part.data(), first);
    CHECK(std::equal(whole.begin() + first, whole.end(), part.begin()));
  }
}

TEST_CASE("quantize: the fast path covers named formats of at most 16 bits that have a zero",
          "[fast]") {
  for (const Format* f : named_formats()) {
    if (f->bits > 16 || f->kind == Kind::sign) continue;
    for (const char* rounding :
         {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)", "sr(32,odd)"}) {
      INFO(f->name << " " << rounding);
      const Rounding r = parse_rounding(rounding);
      const bool no_random_gap =
          f->field_zero == FieldZero::normal && r.stochastic() && !has_fused_multiply_add();
      const Conversion c{.format = f, .rounding = r};
      CHECK(plan_quantize(c, 0.3F).has_value() == (f->has_zero() && !no_random_gap));
    }
  }
}

TEST_CASE("quantize: symmetric integers leave out the most negative code", "[fast]") {
  const float x[] = {-128.0F, -127.6F, -127.4F, 127.4F, 200.0F};
  std::uint8_t codes[5];
  const FlagCounts symmetric = quantize_codes({.format = &find_format("int8")}, x, 5, 1, codes);
  CHECK((codes[0] == 0x81 && codes[1] == 0x81 && codes[2] == 0x81 && codes[3] == 127 &&
         codes[4] == 127));
  CHECK(symmetric.overflow == 3);
  CHECK(symmetric.inexact == 5);
  const FlagCounts full =
      quantize_codes({.format = &find_format("int8"), .symmetric = false}, x, 5, 1, codes);
  CHECK((codes[0] == 0x80 && codes[1] == 0x80));
  CHECK(full.overflow == 1);
}

#if defined(__x86_64__)
TEST_CASE("quantize: rounding direction and denormal flags of the caller do not matter", "[fast]") {
  const Conversion c{.format = &find_format("float8_e5m2")};
  const float scale = 1e-41F;  // subnormal, like some of the elements
  const std::vector<float> x = probes(*c.format, scale);
  std::vector<std::uint8_t> want(x.size()), got(x.size());
  const auto n = static_cast<std::int64_t>(x.size());
  const FlagCounts counts = quantize_codes(c, x.data(), n, scale, want.data());
  const unsigned saved = _mm_getcsr();
  const unsigned hostile =
      0x1f80 | 0x8040 | 0x6000;  // flush to zero, denormals are zero, toward zero
  _mm_setcsr(hostile);
  const FlagCounts hostile_counts = quantize_codes(c, x.data(), n, scale, got.data());
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  CHECK((got == want));
  CHECK(counts == hostile_counts);
  CHECK((after & 0xffc0) == (hostile & 0xffc0));
}
#endif

TEST_CASE("quantize: the decode table holds every value, repeated beyond the width", "[fast]") {
  for (const Format* f : small_formats()) {
    INFO(f->name);
    const float* table = decode_table(*f);
    for (std::uint64_t code = 0; code < 256; ++code) {
      const double want = to_double(decode(*f, code & f->code_mask()));
      if (std::isnan(want)) {
        CHECK(std::bit_cast<std::uint32_t>(table[code]) == 0x7fc00000);
      } else {
        CHECK(static_cast<double>(table[code]) == want);
        CHECK(std::signbit(table[code]) == std::signbit(want));
      }
    }
    CHECK(decode_table(*f) == table);
  }
  CHECK_THROWS_AS(decode_table(find_format("float16")), Error);
  CHECK_THROWS_AS(decode_table(find_format("e4m3b300")), Error);
}

}  // namespace
}  // namespace numemu::quantize_test
