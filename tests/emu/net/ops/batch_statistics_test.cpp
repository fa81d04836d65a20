// Statistics of a batch: means, deviations, ranges with the first of equal ends.
#include "emu/net/ops/batch_statistics.hpp"

#include <cmath>
#include <numbers>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

constexpr auto kExact = NormRule::Constant::exact, kPublished = NormRule::Constant::published,
               kRepository = NormRule::Constant::repository;

TEST_CASE("the range factor is that of the published table", "[fast]") {
  const std::vector<std::pair<std::int64_t, double>> table{
      {4, 0.600561},    {16, 0.424661},   {64, 0.346734},   {256, 0.300281},
      {1024, 0.268579}, {4096, 0.245178}, {65536, 0.212330}};
  for (const auto& [n, factor] : table)
    CHECK(range_factor(kPublished, n) == Approx(factor).margin(5e-7).epsilon(0));  // six digits
  CHECK(range_factor(kPublished, 8) == Approx(0.4903562).margin(5e-8).epsilon(0));
}

TEST_CASE("the range factor of the published code is that of its table", "[fast]") {
  const std::vector<std::pair<std::int64_t, double>> table{
      {4, 0.324428},    {16, 0.229405},   {64, 0.187309},   {256, 0.162214},
      {1024, 0.145089}, {4096, 0.132447}, {65536, 0.114703}};
  for (const auto& [n, factor] : table)
    CHECK(range_factor(kRepository, n) == Approx(factor).margin(5e-7).epsilon(0));
  CHECK(range_factor(kRepository, 8) == Approx(0.2648945).margin(5e-8).epsilon(0));
}

TEST_CASE("the exact range factor is 1 / E[range] of normal values", "[fast]") {
  constexpr double kRelative = 1e-11;
  // Closed forms for 2 and 3 values; the others by quadrature with 30 digits.
  const std::vector<std::pair<std::int64_t, double>> expected{{2, 2 / std::sqrt(std::numbers::pi)},
                                                              {3, 3 / std::sqrt(std::numbers::pi)},
                                                              {8, 2.84720061209055551},
                                                              {25, 3.93062921950711316},
                                                              {32, 4.13933765585781389},
                                                              {128, 5.18919473719893337},
                                                              {65536, 8.58225863179291279},
                                                              {1000000, 9.72579497239292544}};
  for (const auto& [n, d2] : expected) {
    CAPTURE(n);
    CHECK(1 / range_factor(kExact, n) == Approx(d2).margin(0).epsilon(kRelative));
  }
}

TEST_CASE("variance is the mean squared deviation even far from zero", "[fast]") {
  Tensor x({1000, 2});
  for (int i = 0; i < 1000; ++i) {
    x.data[2 * i] = 100000 + static_cast<float>(i % 2);
    x.data[2 * i + 1] = static_cast<float>(i % 4);
  }
  const BatchStatistics batch = batch_statistics(x.data.data(), 1000, 2, {});
  CHECK(batch.mean == std::vector<double>{100000.5, 1.5});
  CHECK(batch.variance == std::vector<double>{0.25, 1.25});
  CHECK(batch.largest.empty());
}

TEST_CASE("shifts take a power of two in the place of one factor", "[fast]") {
  Tensor x({4, 1});
  x.data = {1.5f, 4.5f, -1, -5};  // of mean 0: AP2 2, 4, -1, -4
  const BatchStatistics batch =
      batch_statistics(x.data.data(), 4, 1, {.statistic = NormRule::Statistic::shift});
  CHECK(batch.mean == std::vector<double>{0});
  CHECK(batch.variance == std::vector<double>{(3 + 18 + 1 + 20) / 4.0});
  CHECK(batch.largest.empty());
}

TEST_CASE("the range takes the first of equal ends across chunks", "[fast]") {
  Tensor x({1000, 2});
  x.data[2 * 300] = x.data[2 * 900] = 5;
  x.data[2 * 999] = -3;
  x.data[1] = -7;
  x.data[2 * 511 + 1] = x.data[2 * 512 + 1] = 1;
  const BatchStatistics batch = batch_statistics(
      x.data.data(), 1000, 2, {.statistic = NormRule::Statistic::range, .constant = kPublished});
  CHECK(batch.largest == std::vector<std::int64_t>{300, 511});
  CHECK(batch.smallest == std::vector<std::int64_t>{999, 0});
  const double scale = 8 * range_factor(kPublished, 1000);
  CHECK(batch.variance == std::vector<double>{scale * scale, scale * scale});
}

TEST_CASE("the range in chunks is the mean over parts of nearly equal length", "[fast]") {
  // 10 rows in 4 chunks: rows 0-1, 2-4, 5-6, 7-9.
  const std::vector<float> x{1, 4, -2, 5, 5, 0, 8, 3, 3, 3};
  const BatchStatistics batch = batch_statistics(
      x.data(), 10, 1, {.statistic = NormRule::Statistic::range, .constant = kExact, .chunks = 4});
  CHECK(batch.largest == std::vector<std::int64_t>{1, 3, 6, 7});
  CHECK(batch.smallest == std::vector<std::int64_t>{0, 2, 5, 7});
  const double two = range_factor(kExact, 2), three = range_factor(kExact, 3);
  CHECK(batch.share == std::vector<double>{two / 4, three / 4, two / 4, three / 4});
  const double scale = (two * 3 + three * 7 + two * 8 + three * 0) / 4;
  CHECK(batch.variance[0] == Approx(scale * scale).epsilon(1e-15));
}

}  // namespace
}  // namespace numemu::net
