// Randomness is a function: Philox4x32-10 of (seed, stream, tensor, draw, element).
#pragma once
#include <array>
#include <cstdint>

namespace numemu {

/// Which use of randomness a draw belongs to; the rows of streams.def.
enum class Stream : std::uint32_t {
#define NUMEMU_STREAM(name, number, what) name = number,
#include "formats/streams.def"
#undef NUMEMU_STREAM
};

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// One 128-bit block: key = seed (low word first), counter as given.
PhiloxBlock philox(std::uint64_t seed, const PhiloxBlock& counter);

/// Coordinates of a sequence of draws; element i of it is a pure function of these and i.
struct RandomSource {
  std::uint64_t seed = 0;
  Stream stream = Stream::quantize;
  std::uint32_t tensor = 0;
  std::uint16_t draw = 0;

  /// The top `bits` (1..32) bits of element i's piece: 16 pieces a block for up to 8 bits, 8 up to
  /// 16, else 4.
  std::uint32_t bits(std::uint64_t i, int bits) const;
  /// Uniform in [0, 1) with 32 bits.
  double uniform(std::uint64_t i) const { return bits(i, 32) * 0x1p-32; }
};

}  // namespace numemu
