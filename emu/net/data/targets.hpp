// What the outputs for the samples of a batch are compared with.
#pragma once
#include <cstdint>
#include <vector>

namespace numemu::net {

enum class TargetKind : std::uint8_t {
  classes,  ///< class numbers: one of an image, one for each token of a window or pixel of a map
  values,   ///< real numbers: of a regression, of an image
  none
};

/// A class number that no class has: this position is not counted.
inline constexpr std::int32_t kNoClass = -1;

/// [samples, target_shape...] of DataFacts, sample by sample; the array of the other kind is empty.
struct Targets {
  std::vector<std::int32_t> classes;
  std::vector<float> values;
};

/// Where the targets of one sample go; null for what the data set has none of.
struct TargetSpan {
  std::int32_t* classes = nullptr;
  float* values = nullptr;
};

}  // namespace numemu::net
