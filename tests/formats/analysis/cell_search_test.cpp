// Block lookup against a plain scan, and float thresholds against comparisons in double.
#include "formats/analysis/cell_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"

namespace cell_search_test {

using namespace numemu;

TEST_CASE("a float threshold decides as the double bound does", "[fast]") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const double bounds[] = {0.0,   -0.0,   1.0,      1.0 + 0x1p-30, 1.0 - 0x1p-30, -1.0 - 0x1p-40,
                           1e-46, -1e-46, 0x1p-149, 3e38,          3.5e38,        -3.5e38,
                           1e300, 0.1,    -0.3};
  for (const double bound : bounds) {
    for (const bool closed : {true, false}) {
      const float t = float_threshold(bound, closed);
      const auto near = static_cast<float>(std::clamp(bound, -3.4e38, 3.4e38));
      for (const float x :
           {near, std::nextafterf(near, kInf), std::nextafterf(near, -kInf), 0.0F, -0.0F, 1.0F,
            std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}) {
        INFO("bound " << bound << " closed " << closed << " x " << x);
        CHECK((x >= t) == (closed ? x >= bound : x > bound));
      }
    }
  }
}

TEST_CASE("block lookup finds the last threshold at or below each value", "[fast]") {
  for (const int size : {0, 1, 2, 3, 7, 8, 15, 100, 256, 300}) {
    std::vector<float> thresholds;
    for (int i = 0; i < size; ++i)
      thresholds.push_back(static_cast<float>(i / 2) - 10);  // every one twice
    const CellSearch search(thresholds);
    std::vector<float> x;
    for (int i = 0; i < CellSearch::kBlock - 3; ++i) x.push_back(static_cast<float>(i) * 2.5F - 12);
    x.insert(x.end(), {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(), NAN});
    std::vector<std::uint32_t> index(x.size());
    search.find(x.data(), static_cast<int>(x.size()), index.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto expected =
          std::count_if(thresholds.begin(), thresholds.end(), [&](float t) { return x[i] >= t; });
      INFO("size " << size << " x " << x[i]);
      CHECK(index[i] == static_cast<std::uint32_t>(expected));
    }
  }
}

}  // namespace cell_search_test
