// Scale rule mse(exact): the least squared error of all scales, by exact fractions and by every
// quadratic between two breakpoints.
#include <numeric>

#include "formats/analysis/cells.hpp"
#include "formats/random.hpp"
#include "formats/scaling/element_grid.hpp"
#include "tests/catch.hpp"
#include "tests/formats/scaling/rules/exponents.hpp"

namespace mse_test {

using namespace numemu;
using namespace numemu::test;

namespace {

/// The sum of squared errors of x under s.
oracle::Fraction squared_error(const std::vector<oracle::Element>& list, const float* x,
                               std::int64_t n, int s, RoundingMode mode) {
  oracle::Fraction sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const oracle::Fraction step = oracle::power_of_two(s);
    const oracle::Fraction d =
        oracle::rounded(list, oracle::fraction(x[i]) / step, mode).value * step -
        oracle::fraction(x[i]);
    sum += d * d;
  }
  return sum;
}

/// The best of all exponents around floor: from floor + 1 down, ties to the larger; above it there
/// is none with less error.
template <class Error>
int best_exponent(int floor, const Error& error) {
  int best = floor + 1;
  oracle::Fraction least = error(best);
  for (int e = floor + 3; e >= floor - 3; --e) {
    const oracle::Fraction sum = error(e);
    if (e > floor + 1) {
      REQUIRE(sum >= least);
    } else if (sum < least) {
      best = e;
      least = sum;
    }
  }
  return best;
}

double error_of(const ElementGrid& line, const std::vector<float>& x, double step) {
  return squared_error(line, x.data(), static_cast<std::int64_t>(x.size()), step).sum;
}

/// The least squared error over all float32 scales: the numbers around the least value of every
/// quadratic between two scales at which an element changes its piece, and around these scales
/// themselves, by brute force.
double least_error(const Conversion& c, const std::vector<float>& x) {
  const ElementGrid line = ElementGrids(c).line;
  const bool stochastic = c.rounding.stochastic();
  const std::vector<Cell> list =
      stochastic ? brackets(*c.format, c.symmetric) : cells(*c.format, c.rounding, c.symmetric);
  std::vector<double> breaks;
  for (const float v : x)
    for (const Cell& cell : list)
      if (double{v} * cell.low > 0 && std::isfinite(cell.low)) breaks.push_back(v / cell.low);
  if (stochastic)
    for (const float v : x)
      if (v * list.back().high > 0) breaks.push_back(v / list.back().high);
  std::sort(breaks.begin(), breaks.end());
  double least = HUGE_VAL;
  const auto around = [&](double s) {
    const auto near = static_cast<float>(s);
    for (const float t : {std::nextafter(near, 0.0f), near, std::nextafter(near, HUGE_VALF)})
      least = std::min(least, error_of(line, x, t));
  };
  // The error is not continuous: one scale may be better than all around it.
  const bool jumps = !stochastic && c.rounding.mode != RoundingMode::rne;
  for (std::size_t k = 0; jumps && k < breaks.size(); ++k) around(breaks[k]);
  for (std::size_t k = 0; k + 1 < breaks.size(); ++k) {
    const double from = breaks[k], to = breaks[k + 1];
    if (!(from < to)) continue;
    double a = 0, b = 0, d = 0;  // a - 2 b s + d s^2
    for (const float v : x) {
      const double middle = std::midpoint(from, to), y = v / middle;
      double low = 0, high = 0;
      for (const Cell& cell : list) {
        if (!(cell.low <= y && y <= cell.high)) continue;
        low = cell.value;
        high = stochastic ? cell.high : cell.value;
      }
      if (stochastic && y > list.back().high) low = high = list.back().high;
      if (stochastic && y < list.front().low) low = high = list.front().low;
      const double sign = low == high ? 1 : -1;
      a += sign * v * v;
      b += sign * v * (low + high) / 2;
      d += sign * low * high;
    }
    for (const double s : {d > 0 ? std::clamp(b / d, from, to) : from, from, to}) {
      if (a - 2 * b * s + d * s * s <= least * (1 + 1e-4)) around(s);
    }
  }
  return least;
}

std::vector<float> normal_like(std::uint64_t seed, std::uint64_t n) {
  const RandomSource random{.seed = seed};
  std::vector<float> x;
  for (std::uint64_t i = 0; i < n; ++i) {
    double sum = -4;
    for (std::uint64_t k = 0; k < 8; ++k) sum += random.uniform(8 * i + k);
    x.push_back(static_cast<float>(sum));
  }
  return x;
}

double error_of(const Conversion& c, const std::vector<float>& x, double step) {
  return error_of(element_grids(c).line, x, step);
}

}  // namespace

TEST_CASE("mse takes the least squared error, ties to the larger", "[fast]") {
  const RandomSource random{.seed = 9};
  int differs = 0;
  for (const char* name : {"mxfp4", "mxfp6_e3m2", "mxint8", "bfp(4,16)"}) {
    const BlockFormat& f = find_block_format(name);
    const auto list = oracle::elements_of(*f.element, f.element_exponent, true);
    const int emax = floor_log2(largest_fraction(f), 0);
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rup}) {
      Conversion conversion;
      conversion.format = f.element;
      conversion.rounding.mode = mode;
      constexpr int kBlocks = 60;
      std::vector<float> x, amax;
      std::vector<std::int64_t> offsets = {0};
      for (std::uint64_t b = 0; b < kBlocks; ++b) {
        float largest = 0;
        for (std::uint64_t i = 0; i < b % 32 + 1; ++i) {
          const double u = random.uniform(1000 * b + i) - random.uniform(1000 * b + 500 + i);
          x.push_back(static_cast<float>(std::ldexp(u, static_cast<int>(b % 40) - 20)));
          largest = std::max(largest, std::fabs(x.back()));
        }
        amax.push_back(largest);
        offsets.push_back(static_cast<std::int64_t>(x.size()));
      }
      std::vector<std::int32_t> s(kBlocks);
      find_scale_rule("mse", f).exponents(
          {&f, &conversion, kBlocks, amax.data(), x.data(), offsets.data(), s.data()});
      for (std::size_t b = 0; b < kBlocks; ++b) {
        const int floor = std::ilogb(amax[b]) - emax;
        const int best = best_exponent(floor, [&](int e) {
          return squared_error(list, x.data() + offsets[b], offsets[b + 1] - offsets[b], e, mode);
        });
        CAPTURE(name, static_cast<int>(mode), b);
        REQUIRE(s[b] == best);
        differs += best != floor;
      }
    }
  }
  CHECK(differs > 50);
}

TEST_CASE("mse sees terms that a float64 sum absorbs", "[fast]") {
  const BlockFormat& f = find_block_format("mxfp8_e5m2");
  Conversion conversion;
  conversion.format = f.element;
  // 2^-14 and 2^-15 give 1.1 the same error, 0.0225; only 2^-15 represents 4e-10 at all well.
  const float x[2] = {1.1f, 4e-10f};
  const std::int64_t offsets[2] = {0, 2};
  std::int32_t s = 0;
  find_scale_rule("mse", f).exponents({&f, &conversion, 1, x, x, offsets, &s});
  CHECK(s == -15);
}

TEST_CASE("mse of a wide range of numbers, against the exact search", "[fast]") {
  const RandomSource random{.seed = 31};
  int close = 0;
  for (const char* name : {"mxfp8_e5m2", "mxfp8_e4m3", "mxfp6_e3m2", "mxfp4", "mx(bf16,8)"}) {
    const BlockFormat& f = find_block_format(name);
    const auto list = oracle::elements_of(*f.element, f.element_exponent, true);
    const int emax = floor_log2(largest_fraction(f), 0);
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rup}) {
      Conversion conversion;
      conversion.format = f.element;
      conversion.rounding.mode = mode;
      for (std::uint64_t b = 0; b < 30; ++b) {
        constexpr std::uint64_t kSize = 6;
        float x[kSize], amax = 0;
        for (std::uint64_t i = 0; i < kSize; ++i) {
          // The first number leads, the others lie up to 2^-80 below it, some at the same place.
          const std::uint64_t at = 100 * b + 3 * i;
          const int e = i == 0 ? 0 : -static_cast<int>(random.bits(at, 32) % (b % 2 ? 80 : 40));
          const double u = 1 + random.uniform(at + 1);
          x[i] = static_cast<float>(std::ldexp(random.bits(at + 2, 1) != 0 ? -u : u, e));
          amax = std::max(amax, std::fabs(x[i]));
        }
        const std::int64_t offsets[2] = {0, kSize};
        std::int32_t s = 0;
        find_scale_rule("mse", f).exponents({&f, &conversion, 1, &amax, x, offsets, &s});
        const int floor = std::ilogb(amax) - emax;
        int best = floor + 1;
        oracle::Fraction least = squared_error(list, x, kSize, best, mode);
        for (const int e : {floor, floor - 1}) {
          const oracle::Fraction error = squared_error(list, x, kSize, e, mode);
          const oracle::Fraction gap = error < least ? least - error : error - least;
          close += gap != 0 && gap < least * oracle::power_of_two(-50);
          if (!(error < least)) continue;
          best = e;
          least = error;
        }
        CAPTURE(name, static_cast<int>(mode), b);
        REQUIRE(s == best);
      }
    }
  }
  CHECK(close > 20);  // float64 sums could not decide these
}

TEST_CASE("mse under stochastic rounding: wide ranges against the exact search", "[fast]") {
  const RandomSource random{.seed = 5};
  Conversion conversion;
  conversion.rounding = parse_rounding("sr(8)");
  for (const char* name : {"mxfp8_e5m2", "mxfp4"}) {
    const BlockFormat& f = find_block_format(name);
    conversion.format = f.element;
    const auto list = oracle::elements_of(*f.element, f.element_exponent, true);
    const int emax = floor_log2(largest_fraction(f), 0);
    // The neighbours of x under 2^e, (x - low) (high - x); beyond the ends the square.
    const auto expected = [&](float x, int e) {
      const oracle::Fraction step = oracle::power_of_two(e), q = oracle::fraction(x) / step;
      const oracle::Fraction low =
          oracle::rounded(list, q, RoundingMode::rdn).value * step - oracle::fraction(x);
      const oracle::Fraction high =
          oracle::rounded(list, q, RoundingMode::rup).value * step - oracle::fraction(x);
      const oracle::Fraction product = low * high;
      return product < 0 ? oracle::Fraction(-product) : product;
    };
    for (std::uint64_t b = 0; b < 100; ++b) {
      const float x[3] = {
          static_cast<float>(1 + random.uniform(3 * b)),
          static_cast<float>(std::ldexp(random.uniform(3 * b + 1), -static_cast<int>(b % 70))),
          static_cast<float>(-random.uniform(3 * b + 2))};
      const std::int64_t offsets[2] = {0, 3};
      std::int32_t s = 0;
      find_scale_rule("mse", f).exponents({&f, &conversion, 1, x, x, offsets, &s});
      const int floor = std::ilogb(x[0]) - emax;
      const int best = best_exponent(floor, [&](int e) {
        return oracle::Fraction(expected(x[0], e) + expected(x[1], e) + expected(x[2], e));
      });
      CAPTURE(name, b);
      REQUIRE(s == best);
    }
  }
}

TEST_CASE("mse of powers of two: ties, ends and zeros", "[fast]") {
  // 2 is exact under 2^0 (4 under 2^-1 too, 1 under 2^1): the larger of the exact ones.
  CHECK(exponent("mse", "mxfp4", 2.0f) == 0);
  CHECK(exponent("mse", "mxfp4", 4.0f) == 1);
  // 6 and 12 are exact, 3 is too: s = 1.
  CHECK(exponent("mse", "mxfp4", 6.0f) == 1);
  // Just above 7: floor saturates by more than 1, 2^1 gives 8.
  CHECK(exponent("mse", "mxfp4", 7.5f) == 1);
  CHECK(exponent("mse", "mxfp4", 0.0f) == -127);
  CHECK(exponent("mse", "mxfp4", 0x1p-149f) == -127);
  CHECK(exponent("mse", "mxint8", 0x1.fffffep127f) == 127);
}

TEST_CASE("mse under stochastic rounding weighs the expected error", "[fast]") {
  const BlockFormat& f = find_block_format("mxfp4");
  // 5 lies in [4, 6] under 2^0: variance 1; in [4, 6] under 2^1 (2, 3): 1; 2^-1: 10 saturates at 6.
  CHECK(exponents("mse", f, {5.0f}, parse_rounding("sr(8)"))[0] == 1);
  // 3.5 under 2^0: (3.5 - 3)(4 - 3.5) = 0.25; the floor rule's 2^-1 saturates.
  CHECK(exponents("mse", f, {3.5f}, parse_rounding("sr(8)"))[0] == 0);
}

TEST_CASE("mse of real scales is the least of every quadratic", "[fast]") {
  int better = 0, blocks = 0;
  for (const char* element : {"float4_e2m1fn", "int4", "int8", "float8_e4m3fn", "float8_e5m2",
                              "e2m3+ftz", "uint4", "e3m2+nosub"}) {
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr(8)"}) {
      Conversion c;
      c.format = &find_format(element);
      c.rounding = parse_rounding(rounding);
      if (c.rounding.stochastic() && c.format->field_zero == FieldZero::flush) continue;
      for (std::uint64_t b = 0; b < 4; ++b) {
        const std::vector<float> x = normal_like(40 * b + 7, 3 + 7 * b);
        const auto n = static_cast<std::int64_t>(x.size());
        const float widest = find_scale_rule("absmax").scale({x.data(), n, &c});
        const float scale = find_scale_rule("mse").scale({x.data(), n, &c});
        CAPTURE(element, rounding, b, widest, scale);
        const double error = error_of(c, x, scale), least = least_error(c, x);
        CHECK(error <= least * (1 + 1e-6));
        ++blocks;
        better += scale > widest && error < error_of(c, x, widest);
      }
    }
  }
  CHECK(better > blocks / 8);  // above absmax, where 17 candidates never look
}

TEST_CASE("mse of multiples of a scale finds it, though all around it are worse", "[fast]") {
  const RandomSource random{.seed = 4};
  for (const char* element : {"int4", "int8"}) {
    for (const char* rounding : {"rne", "rna", "rtz", "rup", "rdn", "rodd"}) {
      Conversion c;
      c.format = &find_format(element);
      c.rounding = parse_rounding(rounding);
      for (std::uint64_t b = 0; b < 60; ++b) {
        std::vector<float> whole, rounded;
        for (std::uint64_t i = 0; i < 8; ++i) {
          const float k = static_cast<float>(random.bits(8 * b + i, 32) % 15) - 7;
          whole.push_back(k);
          rounded.push_back(k * 0.37f);  // the scale that reaches all of one sign differs
        }
        CAPTURE(element, rounding, b, whole);
        const float scale = find_scale_rule("mse").scale({whole.data(), 8, &c});
        // A scale of 24 bits beside the exact one is as good, where one is (see kSearchTolerance).
        const double squares = std::inner_product(whole.begin(), whole.end(), whole.begin(), 0.0);
        CHECK(error_of(c, whole, scale) <= 0x1p-44 * squares);
        if (b % 6 != 0) continue;
        const float near = find_scale_rule("mse").scale({rounded.data(), 8, &c});
        CHECK(error_of(c, rounded, near) <= least_error(c, rounded) * (1 + 1e-6) + 1e-12);
      }
    }
  }
}

TEST_CASE("mse leaves out scales under which an element leaves float32", "[fast]") {
  std::vector<float> x(64, 3.4e38f);
  const auto finite = [&](const Conversion& c, double step) {
    const ElementGrid& line = element_grids(c).line;
    return std::all_of(x.begin(), x.end(), [&](float v) {
      std::size_t k = line.size() - 1;
      while (k > 0 && !line.reaches(k, v, step)) --k;
      return std::isfinite(static_cast<float>(line.low[k] * step)) &&
             std::isfinite(static_cast<float>(line.high[k] * step));
    });
  };
  CHECK(exponent("mse", "mxfp4", 3.4e38f) == 125);  // 2^126 and 2^127 would make it 2^128
  const RandomSource random{.seed = 12};
  for (const char* name :
       {"mxfp4", "mxint8", "group(int4,8,float32)", "group(float8_e4m3fn,8,float32)"}) {
    const BlockFormat& f = find_block_format(name);
    for (const char* rounding : {"rne", "rup", "rtz", "sr(8)"}) {
      Conversion c;
      c.format = f.element;
      c.rounding = parse_rounding(rounding);
      for (std::uint64_t b = 0; b < 12; ++b) {
        x.clear();
        for (std::uint64_t i = 0; i < 8; ++i) {
          const double u = random.uniform(16 * b + 2 * i);
          const double top = i < b % 4 ? 1 - u * 0x1p-5 : u;
          x.push_back(static_cast<float>((random.bits(16 * b + 2 * i + 1, 1) != 0 ? -1 : 1) * top *
                                         0x1.fffffep127));
        }
        CAPTURE(name, rounding, b, x);
        if (std::string_view(name).starts_with("mx")) {
          const float amax = largest_magnitude(x.data(), 8);
          const std::int64_t offsets[2] = {0, 8};
          std::int32_t s = 0;
          find_scale_rule("mse", f).exponents({&f, &c, 1, &amax, x.data(), offsets, &s});
          double least = HUGE_VAL;
          for (int e = -127; e <= 127; ++e) {
            const double step = std::ldexp(1.0, e + f.element_exponent);
            if (finite(c, step)) least = std::min(least, error_of(c, x, step));
          }
          const double step = std::ldexp(1.0, s + f.element_exponent);
          CHECK(finite(c, step));
          CHECK(error_of(c, x, step) == least);
          continue;
        }
        const double scale = find_scale_rule("mse", f).scale({x.data(), 8, &c, &f});
        CHECK(finite(c, scale));
        const double error = error_of(c, x, scale);
        for (int i = 0; i < 400; ++i) {
          const double other = static_cast<float>(std::ldexp(1 + i % 40 / 40.0, 127 - i / 40));
          if (!finite(c, other)) continue;
          CHECK(error <= error_of(c, x, other) * (1 + 1e-6));
        }
      }
    }
  }
}

TEST_CASE("mse of few scales is the least of every code, exactly", "[fast]") {
  for (const char* name : {"group(float4_e2m1fn,16,float8_e4m3fn)", "group(int4,16,float8_e5m2)",
                           "group(float6_e2m3fn,16,e3m2+finite)"}) {
    const BlockFormat& f = find_block_format(name);
    const auto list = oracle::elements_of(*f.element, 0, true);
    Conversion c;
    c.format = f.element;
    for (std::uint64_t b = 0; b < 12; ++b) {
      std::vector<float> x = normal_like(b + 90, 16);
      for (float& v : x) v = std::ldexp(v, static_cast<int>(b) - 8);  // to the subnormal scales
      oracle::Fraction least = -1;
      for (std::uint64_t code = 1; code <= f.scale->largest_code(); ++code) {
        const oracle::Fraction s = oracle::fraction(to_double(decode(*f.scale, code)));
        oracle::Fraction sum = 0;
        for (const float v : x) {
          const oracle::Fraction d =
              oracle::rounded(list, oracle::fraction(v) / s, RoundingMode::rne).value * s -
              oracle::fraction(v);
          sum += d * d;
        }
        if (least < 0 || sum < least) least = sum;
      }
      const float scale = find_scale_rule("mse", f).scale({x.data(), 16, &c, &f});
      oracle::Fraction sum = 0;
      const oracle::Fraction s = oracle::fraction(scale);
      for (const float v : x) {
        const oracle::Fraction d =
            oracle::rounded(list, oracle::fraction(v) / s, RoundingMode::rne).value * s -
            oracle::fraction(v);
        sum += d * d;
      }
      CAPTURE(name, b, scale);
      CHECK(sum == least);
    }
  }
}

TEST_CASE("a finer scale format never loses: what 17 candidates could not promise", "[fast]") {
  const std::vector<float> x = normal_like(3, 16 * 256);
  const auto sqnr = [&](const char* name, const char* rule) {
    const BlockFormat& f = find_block_format(name);
    Conversion c;
    c.format = f.element;
    double error = 0, signal = 0;
    for (std::size_t b = 0; b < x.size(); b += 16) {
      const std::vector<float> block(x.begin() + static_cast<std::ptrdiff_t>(b),
                                     x.begin() + static_cast<std::ptrdiff_t>(b + 16));
      error += error_of(c, block, find_scale_rule(rule, f).scale({block.data(), 16, &c, &f}));
      for (const float v : block) signal += double{v} * v;
    }
    return 10 * std::log10(signal / error);
  };
  const char *fine = "group(float4_e2m1fn,16,float32)",
             *coarse = "group(float4_e2m1fn,16,float8_e4m3fn)";
  CHECK(sqnr(fine, "mse(17)") < sqnr(coarse, "mse(17)"));
  CHECK(sqnr(fine, "mse(exact)") > sqnr(coarse, "mse(exact)") + 0.2);
  CHECK(sqnr(fine, "mse(exact)") > sqnr(fine, "mse(17)") + 0.8);
}

TEST_CASE("mse of a large tensor: a fine grid of scales finds nothing better", "[fast]") {
  const std::vector<float> x = normal_like(5, 20000);
  for (const char* element : {"int4", "float8_e4m3fn"}) {
    Conversion c;
    c.format = &find_format(element);
    const float scale = find_scale_rule("mse").scale({x.data(), 20000, &c});
    const float widest = find_scale_rule("absmax").scale({x.data(), 20000, &c});
    const double error = error_of(c, x, scale);
    for (int i = 0; i < 200; ++i)
      CHECK(error <= error_of(c, x, widest * (0.3 + 0.01 * i)) * (1 + 1e-6));
  }
}

TEST_CASE("mse where overflow gives infinities never clips", "[fast]") {
  const std::vector<float> x = normal_like(8, 300);
  for (const char* overflow : {"saturate", "ieee", "propagate"}) {
    Conversion c;
    c.format = &find_format("int3");
    c.overflow = parse_overflow(overflow);
    const double amax = largest_magnitude(x.data(), 300);
    const float scale = find_scale_rule("mse").scale({x.data(), 300, &c});
    CAPTURE(overflow, scale);
    CHECK((amax <= scale * largest_value(*c.format)) == (c.overflow != Overflow::saturate));
  }
}

TEST_CASE("mse keeps absmax where nothing is lost, and one number has nothing to gain", "[fast]") {
  Conversion c;
  c.format = &find_format("int8");
  for (const float v : {1.0f, 0.1f, 3e38f, 1e-30f}) {
    const float widest = find_scale_rule("absmax").scale({&v, 1, &c});
    CHECK(find_scale_rule("mse").scale({&v, 1, &c}) == widest);
  }
  const std::vector<float> whole = {127, -3, 50, 0};
  CHECK(find_scale_rule("mse").scale({whole.data(), 4, &c}) == 1);
}

TEST_CASE("mse passes over NaN and infinities", "[fast]") {
  Conversion c;
  c.format = &find_format("int4");
  const std::vector<float> x = normal_like(21, 40);
  std::vector<float> odd = x;
  for (const float v : {NAN, INFINITY, -INFINITY}) odd.insert(odd.begin() + 7, v);
  CHECK(find_scale_rule("mse").scale({odd.data(), 43, &c}) ==
        find_scale_rule("mse").scale({x.data(), 40, &c}));
}

TEST_CASE("mse of 16-bit elements ends, with no more error than absmax", "[fast]") {
  const std::vector<float> x = normal_like(22, 2000);
  Conversion c;
  c.format = &find_format("float16");
  for (const char* rounding : {"rne", "rodd"}) {
    c.rounding = parse_rounding(rounding);
    CHECK(error_of(c, x, find_scale_rule("mse").scale({x.data(), 2000, &c})) <=
          error_of(c, x, find_scale_rule("absmax").scale({x.data(), 2000, &c})));
  }
}

}  // namespace mse_test
