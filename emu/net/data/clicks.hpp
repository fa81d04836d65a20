// Generated click data: dense and categorical features of impressions, and whether each was
// clicked.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/samples.hpp"

namespace numemu::net::clicks {

inline constexpr std::int64_t kDense = 13;
/// Sizes of the categorical features' vocabularies; number k of one is drawn in proportion to
/// 1 / (k + 1) (Zipf).
inline constexpr std::array<std::int64_t, 8> kVocabularies = {8, 15, 30, 60, 100, 150, 220, 320};
inline constexpr std::int64_t kCategorical = kVocabularies.size();
inline constexpr std::int64_t kFeatures = kDense + kCategorical;
inline constexpr std::int64_t kTrainRecords = 60'000;
inline constexpr std::int64_t kTestRecords = 10'000;

/// Records side by side.
struct Records {
  std::vector<float> features;  ///< [records, kFeatures], dense first, then category numbers
  std::vector<std::uint8_t> clicked;
};

/// Records first .. last-1 of the one endless sequence (test records follow training records), each
/// a pure function of its number: the same bits for any number of threads. A hidden teacher sets
/// the odds of a click: linear in the dense features, an effect per category, products of latent
/// vectors of features that interact.
Records generate(std::int64_t first, std::int64_t last);

/// The set: the last 5,000 training records are validation, the first 512 calibration; two
/// classes, 1 is a click.
class ClickSamples final : public Samples {
 public:
  static constexpr std::int64_t kValidation = 5'000;
  static constexpr std::int64_t kCalibration = 512;

  ClickSamples(Records train, Records test);
  void read(Part, std::int64_t id, const AugmentDraw*, float* x, TargetSpan) const override;

 private:
  Records train_, test_;
};

}  // namespace numemu::net::clicks
