// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) on host and
// GPU.
#pragma once
#include <cstdint>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

struct PhiloxBlock {
  std::uint32_t word[4];
};

NUMEMU_HD inline PhiloxBlock philox(std::uint64_t seed, PhiloxBlock x) {
  auto low = static_cast<std::uint32_t>(seed);
  auto high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = 0xD2511F53ULL * x.word[0];
    const std::uint64_t q = 0xCD9E8D57ULL * x.word[2];
    x = {{static_cast<std::uint32_t>(q >> 32) ^ x.word[1] ^ low, static_cast<std::uint32_t>(q),
          static_cast<std::uint32_t>(p >> 32) ^ x.word[3] ^ high, static_cast<std::uint32_t>(p)}};
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return x;
}

/// Stream of the project's random bits that vectors are drawn from (formats/streams.def).
constexpr std::uint32_t kVectorStream = 10;

}  // namespace numemu::oracle::recording
