// The search for a scale: the same code as ever on many tensors, whatever makes it faster.
#include "formats/scaling/scale_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "formats/digest.hpp"
#include "formats/random.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "tests/catch.hpp"

namespace scale_search_test {

using namespace numemu;

namespace {

enum class Numbers { normal, relu, levels, wide, subnormal, constant, specials };

/// Tensors as training has them, and what is hard: ties, zeros, many binades, numbers that are
/// none.
std::vector<float> tensor(Numbers kind, std::uint64_t seed, std::uint64_t n) {
  const RandomSource random{.seed = seed};
  std::vector<float> x(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    double sum = -2;
    for (std::uint64_t k = 0; k < 4; ++k) sum += random.uniform(4 * i + k);
    const std::uint32_t bits = random.bits(4 * i, 32);
    const double binade = std::ldexp(sum, -static_cast<int>(bits % 60));
    switch (kind) {
      case Numbers::normal:
        x[i] = static_cast<float>(sum);
        break;
      case Numbers::relu:
        x[i] = static_cast<float>(std::fmax(sum, 0));
        break;
      case Numbers::levels:
        x[i] = static_cast<float>(std::round(16 * sum) / 255);
        break;
      case Numbers::wide:
        x[i] = static_cast<float>(binade);
        break;
      case Numbers::subnormal:
        x[i] = static_cast<float>(std::ldexp(sum, -146));
        break;
      case Numbers::constant:
        x[i] = bits % 3 == 0 ? -0.37f : 0.37f;
        break;
      case Numbers::specials:
        x[i] = bits % 7 == 0   ? NAN
               : bits % 7 == 1 ? (bits % 2 == 0 ? INFINITY : -INFINITY)
                               : static_cast<float>(sum);
        break;
    }
  }
  return x;
}

}  // namespace

TEST_CASE("mse chooses the scales that it chose before it became faster", "[fast]") {
  std::string all;
  for (const char* element :
       {"int2", "int3", "int4", "float4_e2m1fn", "int8", "uint4", "float8_e4m3fn"}) {
    for (const char* rounding : {"rne", "rtz", "rup", "sr(8)"}) {
      for (const Numbers kind : {Numbers::normal, Numbers::relu, Numbers::levels, Numbers::wide,
                                 Numbers::subnormal, Numbers::constant, Numbers::specials}) {
        for (const std::uint64_t n : {1, 7, 300, 2000, 20000}) {
          if (n == 20000 && std::string(rounding) != "rne") continue;
          Conversion c;
          c.format = &find_format(element);
          c.rounding = parse_rounding(rounding);
          c.symmetric = n % 2 == 0;
          const std::vector<float> x = tensor(kind, n + static_cast<std::uint64_t>(kind), n);
          const float scale =
              find_scale_rule("mse").scale({x.data(), static_cast<std::int64_t>(n), &c});
          const auto bits = std::bit_cast<std::uint32_t>(scale);
          for (int byte = 0; byte < 4; ++byte) all.push_back(static_cast<char>(bits >> (8 * byte)));
        }
      }
    }
  }
  CHECK(all.size() == 4 * 7 * 7 * (4 * 4 + 1));
  CHECK(sha256_hex(all) == "e6dba3b139789289dce538d705e4b2a1cb8822cadc2cf30237b3fddc08705ee9");
}

TEST_CASE("sort magnitudes: the order of comparisons", "[fast]") {
  const RandomSource random{.seed = 3};
  for (const std::size_t n : {0, 1, 2, 127, 128, 1000, 1023, 1024, 5000}) {
    for (const int digits : {32, 20, 8}) {  // few bits: many equal ones, and digits that all share
      std::vector<float> x;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t bits = random.bits(i, 32) >> (32 - digits) << (digits == 8 ? 20 : 0);
        x.push_back(std::bit_cast<float>(bits % 0x7f800001U));  // up to infinity
      }
      std::vector<float> want = x;
      std::sort(want.begin(), want.end());
      std::vector<float> other(n);
      const float* const sorted = sort_magnitudes(x.data(), other.data(), n);
      CHECK((sorted == x.data() || sorted == other.data()));
      CHECK(std::equal(want.begin(), want.end(), sorted));
    }
  }
}

}  // namespace scale_search_test
