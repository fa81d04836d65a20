// Clicks from a hidden teacher: integer draws, sums and products in float64, one exponential.
#include "emu/net/data/clicks.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/data/load_dataset.hpp"
#include "emu/net/math.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/float_guard.hpp"
#include "formats/random.hpp"
#include "formats/simd/philox.hpp"

namespace numemu::net {
namespace clicks {
namespace {

constexpr std::uint64_t kSeed = 0;
constexpr std::int64_t kTastes = 3;  // factors behind a record, which correlate the dense features
constexpr std::int64_t kLatent = 4;  // extent of the latent vectors
constexpr std::int64_t kDrawn = kTastes + kDense;
// Deviations of the teacher's terms, and a bias that makes about 27 % of the records clicks.
constexpr double kLinear = 0.3, kEffect = 0.5, kPair = 0.35, kDenseLatent = 0.3, kBias = -2.4;
// Categorical features that interact with each other, and those that interact with the dense ones.
constexpr std::pair<int, int> kPairs[] = {{0, 7}, {1, 6}, {2, 5}, {3, 4}, {1, 2}};
constexpr int kWithDense[] = {5, 7};

RandomSource source(const std::string& use) {
  return {kSeed, Stream::data, tensor_word("clicks/" + use), 0};
}

// Deviates first .. first + n - 1 of mean 0 and variance 1: four uniform draws each, nearly normal
// and exact in float64 up to the last product.
void fill_deviates(const RandomSource& random, std::int64_t first, std::int64_t n, double* out) {
  constexpr std::int64_t kDraws = 4, kAtOnce = 16;
  std::uint32_t draws[kDraws * kAtOnce];
  for (std::int64_t done = 0; done < n; done += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, n - done);
    simd::fill_random(random, 16, static_cast<std::uint64_t>(kDraws * (first + done)),
                      kDraws * count, draws);
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t sum = 0;
      for (std::int64_t draw = 0; draw < kDraws; ++draw) sum += draws[kDraws * i + draw];
      out[done + i] = (sum * 0x1p-16 - 2) * std::sqrt(3.0);
    }
  }
}

struct Teacher {
  std::vector<double> mix = table("mix", kDense* kTastes);
  std::vector<double> linear = table("linear", kDense);
  std::vector<double> effect[kCategorical], latent[kCategorical];
  std::vector<std::uint64_t> cumulative[kCategorical];

  Teacher() {
    for (std::int64_t c = 0; c < kCategorical; ++c) {
      effect[c] = table("effect/" + std::to_string(c), kVocabularies[c]);
      latent[c] = table("latent/" + std::to_string(c), kVocabularies[c] * kLatent);
      std::uint64_t total = 0;
      for (std::int64_t k = 0; k < kVocabularies[c]; ++k) {
        total += (std::uint64_t{1} << 32) / static_cast<std::uint64_t>(k + 1);
        cumulative[c].push_back(total);
      }
    }
  }

  static std::vector<double> table(const std::string& use, std::int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    fill_deviates(source("teacher/" + use), 0, count, values.data());
    return values;
  }

  const double* latent_of(std::int64_t feature, const float* x) const {
    return latent[feature].data() + static_cast<std::int64_t>(x[kDense + feature]) * kLatent;
  }
};

double dot(const double* a, const double* b) {
  double sum = 0;
  for (std::int64_t i = 0; i < kLatent; ++i) sum += a[i] * b[i];
  return sum;
}

double logit(const Teacher& teacher, const float* x) {
  double sum = kBias;
  for (std::int64_t d = 0; d < kDense; ++d) sum += kLinear * teacher.linear[d] * x[d];
  for (std::int64_t c = 0; c < kCategorical; ++c)
    sum += kEffect * teacher.effect[c][static_cast<std::size_t>(x[kDense + c])];
  for (const auto& [a, b] : kPairs)
    sum += kPair * dot(teacher.latent_of(a, x), teacher.latent_of(b, x));
  const double dense[kLatent] = {x[0], x[1], x[2], x[3]};
  for (const int c : kWithDense) sum += kDenseLatent * dot(teacher.latent_of(c, x), dense);
  return sum;
}

struct Draws {
  RandomSource dense = source("dense"), categories = source("categories"), click = source("click");
};

// Writes record i and returns whether it was clicked.
bool write_record(const Teacher& teacher, const Draws& draws, std::int64_t i, float* x) {
  double drawn[kDrawn];
  fill_deviates(draws.dense, i * kDrawn, kDrawn, drawn);
  const double* const tastes = drawn;
  for (std::int64_t d = 0; d < kDense; ++d) {
    double value = 0.8 * drawn[kTastes + d];
    for (std::int64_t t = 0; t < kTastes; ++t)
      value += 0.35 * teacher.mix[d * kTastes + t] * tastes[t];
    x[d] = static_cast<float>(value);
  }
  std::uint32_t bits[kCategorical];
  simd::fill_random(draws.categories, 32, static_cast<std::uint64_t>(i * kCategorical),
                    kCategorical, bits);
  for (std::int64_t c = 0; c < kCategorical; ++c) {
    const std::vector<std::uint64_t>& cumulative = teacher.cumulative[c];
    // Below 2^35 / 2^3: the product fits, the quotient is below the total.
    const std::uint64_t place = ((cumulative.back() >> 3) * bits[c]) >> 29;
    const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), place);
    x[kDense + c] = static_cast<float>(at - cumulative.begin());
  }
  const double odds = exp(static_cast<float>(-logit(teacher, x)));
  return draws.click.uniform(static_cast<std::uint64_t>(i)) < 1 / (1 + odds);
}

std::string digest_of(const Records& train, const Records& test) {
  std::string digests;
  for (const Records* records : {&train, &test}) {
    digests += sha256_hex({reinterpret_cast<const char*>(records->features.data()),
                           records->features.size() * sizeof(float)});
    digests += sha256_hex(
        {reinterpret_cast<const char*>(records->clicked.data()), records->clicked.size()});
  }
  return sha256_hex(digests).substr(0, 16);
}

}  // namespace

Records generate(std::int64_t first, std::int64_t last) {
  static const Teacher teacher;
  const Draws draws;
  require_beside_held((last - first) * (kFeatures * std::int64_t{sizeof(float)} + 1),
                      "data set clicks");
  Records records;
  records.features.resize(static_cast<std::size_t>((last - first) * kFeatures));
  records.clicked.resize(static_cast<std::size_t>(last - first));
  const FloatGuard guard;
  for_each_row(last - first, kFeatures, [&](std::int64_t i) {
    records.clicked[i] =
        write_record(teacher, draws, first + i, records.features.data() + i * kFeatures);
  });
  return records;
}

ClickSamples::ClickSamples(Records train, Records test)
    : train_(std::move(train)), test_(std::move(test)) {
  const auto count = static_cast<std::int64_t>(train_.clicked.size());
  facts_.kind = DataKind::clicks;
  facts_.noun = "records";
  facts_.classes = 2;
  facts_.input_shape = {kFeatures};
  facts_.sizes = {count - kValidation, kValidation, kCalibration,
                  static_cast<std::int64_t>(test_.clicked.size())};
  facts_.digest = digest_of(train_, test_);
}

void ClickSamples::read(Part part, std::int64_t id, const AugmentDraw*, float* x,
                        TargetSpan targets) const {
  const Records& records = part == Part::test ? test_ : train_;
  if (part == Part::validation) id += facts_.sizes.train;
  std::copy_n(records.features.begin() + id * kFeatures, kFeatures, x);
  *targets.classes = records.clicked[id];
}

}  // namespace clicks

Dataset load_clicks() {
  constexpr std::int64_t kLast = clicks::kTrainRecords + clicks::kTestRecords;
  return Dataset("clicks", std::make_shared<clicks::ClickSamples>(
                               clicks::generate(0, clicks::kTrainRecords),
                               clicks::generate(clicks::kTrainRecords, kLast)));
}

}  // namespace numemu::net
