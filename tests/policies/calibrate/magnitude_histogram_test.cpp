// The growing histogram: exact counts, for any order and any batches.
#include "policies/calibrate/magnitude_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace magnitude_histogram_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

/// Numbers of many magnitudes and both signs.
std::vector<float> numbers(std::int64_t n) {
  RandomSource random;
  random.seed = 7;
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto word = static_cast<std::int32_t>(random.bits(static_cast<std::uint64_t>(i), 32));
    x.push_back(std::ldexp(static_cast<float>(word), -31 - static_cast<int>(i % 9)));
  }
  return x;
}

bool same(const MagnitudeHistogram& a, const MagnitudeHistogram& b) {
  if (a.width() != b.width() || a.count() != b.count() || a.largest() != b.largest()) return false;
  const auto p = a.points(), q = b.points();
  return std::equal(p.begin(), p.end(), q.begin(), q.end(), [](const auto& x, const auto& y) {
    return x.value == y.value && x.count == y.count;
  });
}

}  // namespace

TEST_CASE("magnitude histogram: every element is in the bin its magnitude says", "[fast]") {
  const std::vector<float> x = numbers(3000);
  MagnitudeHistogram h;
  h.add(x.data(), 3000);
  CHECK(h.count() == 3000);
  CHECK(h.largest() == std::fabs(*std::max_element(x.begin(), x.end(), [](float a, float b) {
          return std::fabs(a) < std::fabs(b);
        })));
  CHECK(h.width() * MagnitudeHistogram::kBins > h.largest());
  CHECK(h.width() * MagnitudeHistogram::kBins <= 2 * h.largest());
  for (const int bin : {0, 1, 100, 30000}) {
    const auto inside = std::count_if(x.begin(), x.end(), [&](float v) {
      return std::fabs(v) >= bin * h.width() && std::fabs(v) < (bin + 1) * h.width();
    });
    CHECK(h.magnitudes(bin) == inside);
  }
  std::int64_t total = 0;
  double before = -HUGE_VAL;
  for (const auto& point : h.points()) {
    total += point.count;
    CHECK(point.value > before);
    before = point.value;
  }
  CHECK(total == 3000);
}

TEST_CASE("magnitude histogram: order and batches do not matter", "[fast]") {
  std::vector<float> x = numbers(3000);
  MagnitudeHistogram whole, batches, ascending;
  whole.add(x.data(), 3000);
  for (int i = 0; i < 3000; i += 37) batches.add(x.data() + i, std::min(37, 3000 - i));
  std::sort(x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  for (int i = 0; i < 3000; ++i) ascending.add(x.data() + i, 1);  // grows again and again
  CHECK(same(whole, batches));
  CHECK(same(whole, ascending));
}

TEST_CASE("magnitude histogram: zeros are apart, no numbers are left out", "[fast]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float x[] = {0.0f, -0.0f, 1.0f, -1.0f, kInfinity, std::nanf(""), -kInfinity};
  MagnitudeHistogram h;
  h.add(x, 2);
  CHECK(h.largest() == 0);
  CHECK(h.count() == 2);
  h.add(x + 2, 5);
  CHECK(h.count() == 4);
  const auto points = h.points();
  REQUIRE(points.size() == 3);
  CHECK(points[0].value == -1);
  CHECK(points[1].value == 0);
  CHECK(points[1].count == 2);
  CHECK(points[2].value == 1);
}

TEST_CASE("magnitude histogram: the ends of float32", "[fast]") {
  const float tiny = std::numeric_limits<float>::denorm_min(),
              huge = std::numeric_limits<float>::max();
  MagnitudeHistogram h;
  h.add(&tiny, 1);
  CHECK(h.largest() == tiny);
  CHECK(h.points().size() == 1);
  h.add(&huge, 1);
  CHECK(h.largest() == huge);
  CHECK(h.magnitudes(0) == 1);
  CHECK(h.magnitudes(MagnitudeHistogram::kBins - 1) == 1);
}

}  // namespace magnitude_histogram_test
