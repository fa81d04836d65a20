// What the outputs for the samples of a batch are compared with.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"

namespace numemu::net {

enum class TargetKind : std::uint8_t {
  classes,  ///< class numbers: one of an image, one for each token of a window or pixel of a map
  values,   ///< real numbers: of a regression, of an image
  none
};

/// What the samples of a data set have for one output of a network.
struct TargetFacts {
  std::string output = {};  ///< its name; "" is the network's first
  TargetKind target = TargetKind::classes;
  std::int64_t classes = 0;  ///< every class number is below; 0 without classes
  Shape target_shape = {};   ///< of one sample: {} of one number, [context], [height, width], ...
};

/// A class number that no class has: this position is not counted.
inline constexpr std::int32_t kNoClass = -1;

/// [samples, target_shape...] of DataFacts, sample by sample; the array of the other kind is empty.
struct Targets {
  std::vector<std::int32_t> classes;
  std::vector<float> values;
  std::vector<Targets> further = {};  ///< of DataFacts::further
};

/// Where the targets of one sample go; null for what the data set has none of.
struct TargetSpan {
  std::int32_t* classes = nullptr;
  float* values = nullptr;
  const TargetSpan* further = nullptr;  ///< one for each of DataFacts::further; null: not asked for
};

}  // namespace numemu::net
