// Bootstrap intervals: the draws as documented, the points as documented, and their width.
#include "emu/stats/resampling.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "emu/stats/mean.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/stats/samples.hpp"
#include "tests/files.hpp"

namespace bootstrap_test {

using namespace numemu;
using namespace numemu::stats;

TEST_CASE("resamples draw the documented members", "[fast]") {
  const RandomSource random{.seed = 9, .stream = Stream::probe, .tensor = 0x746f6f62, .draw = 0};
  std::uint64_t element = 0;
  int resamples = 0;
  bootstrap_interval(7, 5, 9, [&](const std::vector<std::int64_t>& drawn) {
    REQUIRE(drawn.size() == 7);
    for (const std::int64_t member : drawn)
      CHECK(member == static_cast<std::int64_t>(std::floor(random.uniform(element++) * 7)));
    ++resamples;
    return 0.0;
  });
  CHECK(resamples == 5);
}

TEST_CASE("the ends are order statistics, NaN left out", "[fast]") {
  double next = 0;
  const auto count_up = [&](const std::vector<std::int64_t>&) { return next++; };
  // Of 0, 1, ..., 9998 the 250th smallest from either side.
  Interval i = bootstrap_interval(1, 9999, 0, count_up);
  CHECK(i.low == 249);
  CHECK(i.high == 9998 - 249);
  // Of few, the outermost.
  next = 0;
  i = bootstrap_interval(1, 10, 0, count_up);
  CHECK(i.low == 0);
  CHECK(i.high == 9);
  next = 0;
  i = bootstrap_interval(1, 20, 0, [&](const std::vector<std::int64_t>&) {
    const double value = next++;
    return std::fmod(value, 2) == 0 ? NAN : value;
  });
  CHECK(i.low == 1);
  CHECK(i.high == 19);
  i = bootstrap_interval(1, 3, 0, [](const std::vector<std::int64_t>&) { return NAN; });
  CHECK(std::isnan(i.low));
  CHECK(std::isnan(i.high));
}

TEST_CASE("the interval of a mean is that of the normal law", "[fast]") {
  constexpr int kMembers = 500, kResamples = 1999;
  testing::Draws draws(4);
  std::vector<double> x(kMembers);
  for (double& value : x) value = draws.normal();
  const auto mean_of = [&](const std::vector<std::int64_t>& drawn) {
    double sum = 0;
    for (const std::int64_t member : drawn) sum += x[member];
    return sum / kMembers;
  };
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / kMembers;
  double squares = 0;
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / kMembers / kMembers);
  const Interval i = bootstrap_interval(kMembers, kResamples, 1, mean_of);
  // An estimated 2.5 % point of the standard normal law varies by sqrt(p (1 - p) / B) / density.
  const double tolerance = 4 * std::sqrt(0.025 * 0.975 / kResamples) / 0.0584;
  CHECK(std::fabs((i.low - mean) / error + 1.96) < tolerance);
  CHECK(std::fabs((i.high - mean) / error - 1.96) < tolerance);
}

TEST_CASE("samples that cannot be drawn from are refused", "[fast]") {
  const auto zero = [](const std::vector<std::int64_t>&) { return 0.0; };
  CHECK(test::message_of([&] { bootstrap_interval(0, 1, 0, zero); }) ==
        "bootstrap: expected 1 to 2^31 - 1 members and at least one resample, found 0 and 1");
  CHECK_THAT(test::message_of([&] { bootstrap_interval(1, 0, 0, zero); }),
             Catch::EndsWith("found 1 and 0"));
  CHECK_THAT(test::message_of([&] { bootstrap_interval(std::int64_t{1} << 31, 1, 0, zero); }),
             Catch::EndsWith("found 2147483648 and 1"));
}

TEST_CASE("jackknife: of a mean it is the standard error", "[fast]") {
  const std::vector<double> x = {1, 4, 4, 9, 16, -3, 2.5};
  double sum = 0;
  for (const double v : x) sum += v;
  const auto n = static_cast<double>(x.size());
  const double error = jackknife_error(std::ssize(x), [&](std::int64_t i) {
    return (sum - x[static_cast<std::size_t>(i)]) / (n - 1);
  });
  CHECK(error == Approx(mean_of(x).error));
  // exp(mean): the delta method.
  const double mean = sum / n / 100;
  const double of_exp = jackknife_error(std::ssize(x), [&](std::int64_t i) {
    return std::exp((sum - x[static_cast<std::size_t>(i)]) / (n - 1) / 100);
  });
  CHECK(of_exp == Approx(std::exp(mean) * mean_of(x).error / 100).epsilon(0.01));
}

TEST_CASE("jackknife: one group has no error", "[fast]") {
  CHECK(std::isnan(jackknife_error(1, [](std::int64_t) { return 1.0; })));
  CHECK(jackknife_error(2, [](std::int64_t) { return 1.0; }) == 0);
}

}  // namespace bootstrap_test
