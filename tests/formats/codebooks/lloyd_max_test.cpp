// Lloyd-Max levels against published tables, their asymptote and the condition that defines them.
#include "formats/codebooks/lloyd_max.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/analysis/density.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace numemu::lloyd_max_test {
namespace {

using Catch::Contains;

double square_error(const std::vector<double>& levels, const Density& law) {
  double error = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double low = i == 0 ? -HUGE_VAL : (levels[i - 1] + levels[i]) / 2;
    const double high = i + 1 == levels.size() ? HUGE_VAL : (levels[i] + levels[i + 1]) / 2;
    const Density::Moments m = law.moments(low, high);
    error += m.p2 - 2 * levels[i] * m.p1 + levels[i] * levels[i] * m.p0;
  }
  return error;
}

double decibels(double signal, double error) { return 10 * std::log10(signal / error); }

}  // namespace

TEST_CASE("Levels of a normal law are those that Max published", "[fast]") {
  // Max, Quantizing for minimum distortion, IRE Trans. Inform. Theory 1960, table I: four digits.
  const struct {
    std::vector<double> positive;
    int levels;
    double error;
  } published[] = {
      {{0.7980}, 2, 0.3634},
      {{1.224}, 3, 0.1902},
      {{0.4528, 1.510}, 4, 0.1175},
      {{0.7646, 1.724}, 5, 0.07994},
      {{0.2451, 0.7560, 1.344, 2.152}, 8, 0.03454},
      {{0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733}, 16, 0.009497},
  };
  const auto law = normal_density(0, 1);
  for (const auto& row : published) {
    INFO(row.levels);
    const std::vector<double> levels = lloyd_max("normal", row.levels);
    REQUIRE(levels.size() == static_cast<std::size_t>(row.levels));
    const std::size_t first = levels.size() - row.positive.size();
    for (std::size_t i = 0; i < row.positive.size(); ++i)
      CHECK(levels[first + i] == Approx(row.positive[i]).epsilon(6e-4));
    CHECK(square_error(levels, *law) == Approx(row.error).epsilon(6e-4));
  }
}

TEST_CASE("Errors of 4 to 256 levels are the published ones", "[fast]") {
  // Jayant and Noll, Digital Coding of Waveforms, 1984, table 4.8: dB at 1 to 7 bits. Their levels
  // of 6 and 7 bits of a normal law are not quite optimal: these have less error.
  const struct {
    const char* law;
    std::vector<double> db;
  } published[] = {{"normal", {4.40, 9.30, 14.62, 20.22, 26.02, 31.89, 37.81}},
                   {"laplace", {3.01, 7.54, 12.64, 18.13, 23.87, 29.74, 35.69}},
                   {"uniform", {6.02, 12.04, 18.06, 24.08, 30.10, 36.12, 42.14}}};
  for (const auto& row : published) {
    const auto law = std::string_view(row.law) == "normal"    ? normal_density(0, 1)
                     : std::string_view(row.law) == "laplace" ? laplace_density(0, 1)
                                                              : uniform_density(-1, 1);
    const double signal = law->moments(-HUGE_VAL, HUGE_VAL).p2;
    for (int bits = 1; bits <= 7; ++bits) {
      INFO(row.law << " " << bits);
      const double db = decibels(signal, square_error(lloyd_max(row.law, 1 << bits), *law));
      const double known = row.db[static_cast<std::size_t>(bits - 1)];
      CHECK(db > known - 0.011);
      CHECK(db < known + (bits == 7 ? 0.06 : bits == 6 ? 0.03 : 0.011));
    }
  }
  // Panter and Dite: sqrt(3) pi / 2 / N^2 of a normal law; the next term is of order 1/N.
  const double asymptote = std::sqrt(3.0) * std::numbers::pi / 2 / (256.0 * 256.0);
  CHECK(square_error(lloyd_max("normal", 256), *normal_density(0, 1)) ==
        Approx(asymptote).epsilon(3.0 / 256));
}

TEST_CASE("Every level is the mean of its cell", "[fast]") {
  const auto lognormal = lognormal_density(0, 1, 0.5);
  for (const int n : {2, 3, 7, 16, 33, 256}) {
    INFO(n);
    const std::vector<double> levels = lloyd_max("lognormal:1", n);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      CHECK(levels[i] == -levels[levels.size() - 1 - i]);
      const double low = i == 0 ? -HUGE_VAL : (levels[i - 1] + levels[i]) / 2;
      const double high = i + 1 == levels.size() ? HUGE_VAL : (levels[i] + levels[i + 1]) / 2;
      const Density::Moments m = lognormal->moments(low, high);
      // kConverged of the solver and the moments' own accuracy.
      CHECK(m.p1 == Approx(levels[i] * m.p0).epsilon(1e-9).margin(1e-12));
    }
  }
  CHECK(std::ranges::is_sorted(lloyd_max("student-t:3", 64)));
  // Many degrees of freedom: a normal law, to 1/NU.
  CHECK(lloyd_max("student-t:1000", 4)[3] == Approx(1.510).epsilon(4e-3));
  CHECK(lloyd_max("lognormal:1:log2", 4)[3] ==
        Approx(lloyd_max("lognormal:0.6931471805599453", 4)[3]).epsilon(1e-9));
  CHECK(lloyd_max("normal", kMostLevels).size() == kMostLevels);
}

TEST_CASE("Laws and numbers of levels that are refused", "[fast]") {
  CHECK_THROWS_WITH(lloyd_max("norma", 4), Contains("did you mean 'normal'"));
  CHECK_THROWS_WITH(lloyd_max("normal", 1), Contains("1 levels, expected 2 to 4096"));
  CHECK_THROWS_WITH(lloyd_max("student-t:2", 4), Contains("expected a number from 2.5 to 1000"));
  CHECK_THROWS_WITH(lloyd_max("lognormal:nan", 4), Contains("expected a number from 0.01 to 3"));
}

}  // namespace numemu::lloyd_max_test
