// The generated clicks: pinned bytes, records that depend on their numbers alone, the specified
// frequencies, and a learnable signal.
#include "emu/net/data/clicks.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"

namespace numemu::net::clicks_test {
namespace {

using clicks::kCategorical;
using clicks::kDense;
using clicks::kFeatures;
using clicks::kVocabularies;

TEST_CASE("the click data are pinned", "[fast]") {
  const Dataset data = load_dataset("clicks", "unused");
  CHECK(data.digest() == "bad6ec9bad3f20ad");
  CHECK(data.kind() == DataKind::clicks);
  CHECK(data.classes() == 2);
  CHECK(data.input_shape() == Shape{21});
  CHECK(data.targets_per_sample() == 1);
  CHECK(data.train_count() == 55'000);
  CHECK(data.validation_count() == 5'000);
  CHECK(data.calibration_count() == 512);
  CHECK(data.test_count() == 10'000);

  const clicks::Records after = clicks::generate(54'999, 55'001);
  Targets targets;
  const Tensor last = data.train_batch({54'999}, targets),
               first = data.validation_batch(0, 1, targets);
  CHECK(std::equal(last.data.begin(), last.data.end(), after.features.begin()));
  CHECK(std::equal(first.data.begin(), first.data.end(), after.features.begin() + kFeatures));
  CHECK(targets.classes[0] == after.clicked[1]);
}

TEST_CASE("a record depends on its number alone", "[fast]") {
  const int threads = omp_get_max_threads();
  const clicks::Records all = clicks::generate(0, 5000);
  for (const int count : {1, 2, 3}) {
    omp_set_num_threads(count);
    const clicks::Records part = clicks::generate(1000, 2500);
    CHECK(std::equal(part.features.begin(), part.features.end(),
                     all.features.begin() + 1000 * kFeatures));
    CHECK(std::equal(part.clicked.begin(), part.clicked.end(), all.clicked.begin() + 1000));
  }
  omp_set_num_threads(threads);
}

TEST_CASE("categories follow Zipf and a good quarter of the records are clicks", "[fast]") {
  constexpr std::int64_t kRecords = 20'000;
  const clicks::Records records = clicks::generate(0, kRecords);
  const double clicked =
      static_cast<double>(std::count(records.clicked.begin(), records.clicked.end(), 1)) / kRecords;
  CHECK(clicked > 0.25);
  CHECK(clicked < 0.30);
  for (std::int64_t c = 0; c < kCategorical; ++c) {
    std::vector<double> counts(static_cast<std::size_t>(kVocabularies[c]));
    for (std::int64_t i = 0; i < kRecords; ++i)
      ++counts.at(static_cast<std::size_t>(records.features[i * kFeatures + kDense + c]));
    double harmonic = 0;
    for (std::int64_t k = 1; k <= kVocabularies[c]; ++k) harmonic += 1.0 / static_cast<double>(k);
    double chi_square = 0;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const double expected = kRecords / harmonic / static_cast<double>(k + 1);
      chi_square += (counts[k] - expected) * (counts[k] - expected) / expected;
    }
    // Mean n - 1, deviation sqrt(2 (n - 1)); five of them.
    const auto freedom = static_cast<double>(counts.size() - 1);
    CHECK(chi_square < freedom + 5 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("single features tell something about clicks and pairs tell more", "[fast]") {
  constexpr std::int64_t kRecords = 20'000;
  const clicks::Records records = clicks::generate(0, kRecords);
  // Mutual information of a click and a cell, in bits, less its bias, cells / (2 n ln 2) for a
  // binary outcome (Miller 1955).
  const auto information = [&](std::int64_t cells, const auto& cell_of) {
    std::vector<double> seen(static_cast<std::size_t>(cells)), clicked(seen.size());
    double all = 0;
    for (std::int64_t i = 0; i < kRecords; ++i) {
      const auto cell = static_cast<std::size_t>(cell_of(records.features.data() + i * kFeatures));
      ++seen.at(cell);
      clicked[cell] += records.clicked[i];
      all += records.clicked[i];
    }
    const auto entropy = [](double p) {
      return p <= 0 || p >= 1 ? 0 : -p * std::log2(p) - (1 - p) * std::log2(1 - p);
    };
    double rest = 0;
    for (std::size_t cell = 0; cell < seen.size(); ++cell) {
      if (seen[cell] > 0) rest += seen[cell] / kRecords * entropy(clicked[cell] / seen[cell]);
    }
    const double bias = static_cast<double>(cells) / (2 * kRecords * std::log(2.0));
    return entropy(all / kRecords) - rest - bias;
  };
  // Features 0 and 1 of 8 and 15 categories take part in interactions with 7, and with 6 and 2.
  const double one = information(15, [](const float* x) { return x[kDense + 1]; });
  const double other = information(30, [](const float* x) { return x[kDense + 2]; });
  const double both =
      information(450, [](const float* x) { return x[kDense + 1] * 30 + x[kDense + 2]; });
  constexpr double kNoise = 0.002;  // several deviations of the estimates at 20,000 records
  CHECK(one > kNoise);
  CHECK(other > kNoise);
  CHECK(both > one + other + kNoise);
}

}  // namespace
}  // namespace numemu::net::clicks_test
