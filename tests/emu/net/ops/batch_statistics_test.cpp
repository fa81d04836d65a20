// Statistics of a batch: means, deviations, ranges with the first of equal ends.
#include "emu/net/ops/batch_statistics.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("the range factor is that of the published table", "[fast]") {
  const std::vector<std::pair<std::int64_t, double>> table{
      {4, 0.600561},    {16, 0.424661},   {64, 0.346734},   {256, 0.300281},
      {1024, 0.268579}, {4096, 0.245178}, {65536, 0.212330}};
  for (const auto& [n, factor] : table)
    CHECK(range_factor(n) == Approx(factor).margin(5e-7).epsilon(0));  // six digits
  CHECK(range_factor(8) == Approx(0.4903562).margin(5e-8).epsilon(0));
}

TEST_CASE("variance is the mean squared deviation even far from zero", "[fast]") {
  Tensor x({1000, 2});
  for (int i = 0; i < 1000; ++i) {
    x.data[2 * i] = 100000 + static_cast<float>(i % 2);
    x.data[2 * i + 1] = static_cast<float>(i % 4);
  }
  const BatchStatistics batch =
      batch_statistics(x.data.data(), 1000, 2, NormRule::Statistic::variance);
  CHECK(batch.mean == std::vector<double>{100000.5, 1.5});
  CHECK(batch.variance == std::vector<double>{0.25, 1.25});
  CHECK(batch.largest.empty());
}

TEST_CASE("the range takes the first of equal ends across chunks", "[fast]") {
  Tensor x({1000, 2});
  x.data[2 * 300] = x.data[2 * 900] = 5;
  x.data[2 * 999] = -3;
  x.data[1] = -7;
  x.data[2 * 511 + 1] = x.data[2 * 512 + 1] = 1;
  const BatchStatistics batch =
      batch_statistics(x.data.data(), 1000, 2, NormRule::Statistic::range);
  CHECK(batch.largest == std::vector<std::int64_t>{300, 511});
  CHECK(batch.smallest == std::vector<std::int64_t>{999, 0});
  const double scale = 8 * range_factor(1000);
  CHECK(batch.variance == std::vector<double>{scale * scale, scale * scale});
}

}  // namespace
}  // namespace numemu::net
