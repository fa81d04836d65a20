// Codebooks by name: their numbers from independent sources, and as elements of block formats.
#include "formats/codebooks/named_codebooks.hpp"

#include <cmath>

#include "formats/blocks/block_convert.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "tests/catch.hpp"

namespace numemu::named_codebooks_test {
namespace {

using Catch::Contains;

/// The formula of the Posit Standard 2022, section 3.3, on the bits as they are: no complement.
/// Its constants for ES = 2 are written for any ES.
double posit_by_formula(std::uint32_t bits, int n, int es) {
  if (bits == 0) return 0;
  const int s = static_cast<int>(bits >> (n - 1) & 1);
  std::vector<int> rest;  // behind the sign, with zeros behind the last bit
  for (int i = n - 2; i >= 0; --i) rest.push_back(static_cast<int>(bits >> i & 1));
  std::size_t k = 0;
  while (k < rest.size() && rest[k] == rest[0]) ++k;
  const int r = rest[0] == 0 ? -static_cast<int>(k) : static_cast<int>(k) - 1;
  std::size_t at = k + 1;
  const auto next = [&] { return at < rest.size() ? rest[at++] : (++at, 0); };
  int e = 0;
  for (int i = 0; i < es; ++i) e = 2 * e + next();
  double f = 0;
  for (double unit = 0.5; at < rest.size(); unit /= 2) f += unit * next();
  return ((1 - 3 * s) + f) * std::ldexp(1.0, (1 - 2 * s) * ((r << es) + e + s));
}

}  // namespace

TEST_CASE("Every posit of every size is that of the standard's formula", "[fast]") {
  for (int n = 3; n <= 16; ++n) {
    for (int es = 0; es <= 5 && (n - 2) << es <= 1022; ++es) {
      INFO(n << " " << es);
      const Format& f = find_format("posit(" + std::to_string(n) + "," + std::to_string(es) + ")");
      const std::uint32_t codes = 1u << n, nar = codes / 2;
      REQUIRE(f.bits == n);
      REQUIRE(f.last_code() + 1 == codes - 1);
      std::uint32_t wrong = 0;
      for (std::uint32_t bits = 0; bits < codes; ++bits) {
        if (bits == nar) continue;
        const double value = posit_by_formula(bits, n, es);
        const std::uint64_t index = (bits + codes - nar - 1) % codes;
        wrong += posit_value(bits, n, es) != value || to_double(decode(f, index)) != value;
      }
      CHECK(wrong == 0);
    }
  }
  // The standard's table of 8-bit extremes: 2^-24 and 2^24.
  CHECK(smallest_value(find_format("posit(8)")) == 0x1p-24);
  CHECK(largest_value(find_format("posit(8)")) == 0x1p24);
  CHECK(find_format("posit(8)").name == "posit(8,2)");
  CHECK(&find_format("posit(8)") == &find_format("posit( 8, 2 )"));
}

TEST_CASE("NF4 and AF4 are the published constants", "[fast]") {
  // QLoRA's appendix and the table of arXiv 2306.06965, as decimals.
  const double nf4[] = {-1.0,
                        -0.6961928009986877,
                        -0.5250730514526367,
                        -0.39491748809814453,
                        -0.28444138169288635,
                        -0.18477343022823334,
                        -0.09105003625154495,
                        0.0,
                        0.07958029955625534,
                        0.16093020141124725,
                        0.24611230194568634,
                        0.33791524171829224,
                        0.44070982933044434,
                        0.5626170039176941,
                        0.7229568362236023,
                        1.0};
  const Format& f = find_format("nf4");
  for (std::uint64_t i = 0; i < 16; ++i) CHECK(to_double(decode(f, i)) == nf4[i]);
  const std::vector<double> af4 = finite_values(find_format("af4"));
  REQUIRE(af4.size() == 16);
  CHECK(af4[1] == static_cast<double>(-0.69441008f));
  CHECK(af4[14] == static_cast<double>(0.72424863f));
  CHECK(af4[7] == 0);
}

TEST_CASE("Logarithmic numbers are powers of two to the nearest float32", "[fast]") {
  CHECK(finite_values(find_format("log(3)")) == std::vector<double>{-2, -1, -0.5, 0, 0.5, 1, 2});
  const std::vector<double> v = finite_values(find_format("log(5,2)"));
  REQUIRE(v.size() == 31);
  for (int e = -7; e <= 7; ++e)
    CHECK(v[static_cast<std::size_t>(23 + e)] ==
          static_cast<double>(static_cast<float>(std::pow(2.0, e / 4.0))));
  CHECK(find_format("log(5,2)").bits == 5);
  CHECK(find_format("lloyd(normal,15)").has_zero());
  CHECK_FALSE(find_format("lloyd(normal,16)").has_zero());
}

TEST_CASE("Names of codebooks that are refused", "[fast]") {
  CHECK_THROWS_WITH(find_format("posit(2)"), Contains("N is '2', expected 3 to 16"));
  CHECK_THROWS_WITH(find_format("posit(8,6)"), Contains("ES is '6', expected 0 to 5"));
  CHECK_THROWS_WITH(find_format("posit"), Contains("posit(N,ES)"));
  CHECK_THROWS_WITH(find_format("log(12)"), Contains("beyond float32"));
  CHECK_THROWS_WITH(find_format("lloyd(normal)"), Contains("expected lloyd(LAW,N)"));
  CHECK_THROWS_WITH(find_format("lloyd(cauchy,4)"), Contains("unknown law 'cauchy'"));
  CHECK_THROWS_WITH(find_format("nf5"), Contains("did you mean 'nf4'"));
  CHECK_THROWS_WITH(find_format("nf4(16)"), Contains("expected nf4"));
}

TEST_CASE("Comparisons give the codes, values and flags of the reference", "[fast]") {
  for (const char* name : {"nf4", "af4", "posit(8)", "posit(5,1)", "log(5,1)", "lloyd(normal,16)",
                           "lloyd(laplace,200)"}) {
    const Conversion c{.format = &find_format(name)};
    const std::vector<double> entries = finite_values(*c.format);
    for (const float scale : {1.0f, 0.3f, 0x1p-40f, 7.7e10f}) {
      std::vector<float> x = {0.0f, -0.0f, 1e-45f, -1e-30f, 3e38f, -3e38f};
      for (std::size_t k = 0; k < entries.size(); ++k) {
        const double middle = (entries[k] + entries[k == 0 ? 0 : k - 1]) / 2;
        for (const double at : {entries[k] * scale, middle * scale}) {
          const auto near = static_cast<float>(at);
          for (const float v : {near, std::nextafter(near, 1e38f), std::nextafter(near, -1e38f)})
            x.push_back(v);
        }
      }
      INFO(name << " " << scale);
      const auto n = std::ssize(x);
      std::vector<std::uint8_t> codes(x.size()), want(x.size());
      CHECK(quantize_codes(c, x.data(), n, scale, codes.data()) ==
            quantize_codes_reference(c, x.data(), n, scale, want.data()));
      CHECK(codes == want);
      std::vector<float> y(x.size()), expected(x.size());
      CHECK(quantize_values(c, x.data(), n, scale, y.data()) ==
            quantize_values_reference(c, x.data(), n, scale, expected.data()));
      CHECK(y == expected);
    }
  }
}

TEST_CASE("What a block of a codebook means is one product, rounded once", "[fast]") {
  const BlockFormat& f = find_block_format("group(nf4,16,float32)");
  const float scale = 0.3f;
  const BlockLayout layout = block_layout(f, {16}, 0);
  std::uint8_t codes[16];
  float y[16];
  for (int i = 0; i < 16; ++i) codes[i] = static_cast<std::uint8_t>(i);
  dequantize_blocks(f, layout, {.codes = codes, .scales = &scale}, y);
  const std::vector<double> entries = finite_values(*f.element);
  // Two significands of 24 bits: a double holds their product.
  for (std::size_t i = 0; i < 16; ++i)
    CHECK(y[i] == static_cast<float>(entries[i] * double{scale}));
}

TEST_CASE("Codebooks of float32 numbers are elements of block formats", "[fast]") {
  CHECK(find_block_format("group(nf4, 64, float32)").name == "group(nf4,64,float32)");
  CHECK(find_block_format("mx(posit(8),32)").name == "mx(posit(8,2),32)");
  CHECK(find_block_format("group(lloyd(normal,16),64,bfloat16)").bits_per_element() == 4.25);
  CHECK_THROWS_WITH(find_block_format("group(posit(16,5),32,float32)"),
                    Contains("a codebook of float32 numbers"));
  CHECK_THROWS_WITH(find_block_format("group(nf4,64,float32,zp)"), Contains("needs integer"));
}

}  // namespace numemu::named_codebooks_test
