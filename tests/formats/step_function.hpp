// The reference as a step function of the float32 bits: where its results change, by bisection.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion.hpp"

namespace numemu::proof {

/// What the reference makes of one float32.
struct Outcome {
  std::uint32_t value = 0;  ///< bits of decode(encode(x)) as float32
  std::uint32_t code = 0;
  std::uint8_t flags = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

inline Outcome outcome(const Conversion& c, std::uint32_t bits, std::int64_t index = 0) {
  static const Format& float32 = find_format("float32");
  const Encoded e = encode_element(c, value_of(std::bit_cast<float>(bits)), index);
  const Value v = decode(*c.format, e.code);
  const auto value = static_cast<std::uint32_t>(encode(float32, v, {}, Overflow::ieee).code);
  return {value, static_cast<std::uint32_t>(e.code), e.flags};
}

/// All float32 with bits from `first` up to the next step's give this outcome.
struct Step {
  std::uint32_t first = 0;
  Outcome outcome;
};

/// The steps of a deterministic conversion over all 2^32 bit patterns, ascending. Between two
/// neighbouring floats that are values of the format the results change monotonically (the codec's
/// own tests show it), so equal ends mean a constant.
inline std::vector<Step> step_function(const Conversion& c) {
  constexpr std::uint32_t kInfinity = 0x7f800000, kSign = 0x80000000;
  std::vector<std::uint32_t> anchors = {0, 1, kInfinity - 1, kInfinity, kInfinity + 1, kSign - 1};
  for (const double value : finite_values(*c.format)) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value)) & ~kSign;
    if (static_cast<double>(static_cast<float>(value)) != value || bits == 0) continue;
    anchors.insert(anchors.end(), {bits - 1, bits, bits + 1});
  }
  std::sort(anchors.begin(), anchors.end());
  anchors.erase(std::unique(anchors.begin(), anchors.end()), anchors.end());

  std::vector<Step> steps;
  for (const std::uint32_t sign : {0U, kSign}) {
    Outcome last = outcome(c, sign);
    steps.push_back({sign, last});
    for (std::size_t i = 1; i < anchors.size(); ++i) {
      const Outcome end = outcome(c, sign | anchors[i]);
      std::uint32_t low = anchors[i - 1];
      while (!(last == end)) {  // the next change after `low`
        std::uint32_t high = anchors[i];
        while (high - low > 1) {
          const std::uint32_t middle = low + (high - low) / 2;
          (outcome(c, sign | middle) == last ? low : high) = middle;
        }
        low = high;
        last = outcome(c, sign | high);
        steps.push_back({sign | high, last});
      }
    }
  }
  return steps;
}

}  // namespace numemu::proof
