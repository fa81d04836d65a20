// Hashes of large runs: one for every 4096 answers, so that two runs are compared without keeping
// them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

/// FNV-1a of 64 bits; constants of RFC 9923, "The FNV Non-Cryptographic Hash Algorithm".
constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325;
constexpr std::uint64_t kFnvPrime = 0x00000100000001b3;
inline std::uint64_t fnv1a(std::uint64_t hash, const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * kFnvPrime;
  return hash;
}

constexpr int kDotsPerHash = 4096;
/// Tiles of the large run: at least 2.5 million dots, whole hashes, as many tiles of each kind of
/// data.
int large_run_tiles(const Instruction&);

/// Hashes the D codes (in their containers) of batches that follow one another, tile by tile, row
/// by row.
class DotHasher {
 public:
  void add(const Batch&);
  /// Of all whole groups of 4096 dots so far.
  const std::vector<std::uint64_t>& hashes() const { return hashes_; }

 private:
  std::uint64_t hash_ = kFnvBasis;
  int dots_ = 0;  ///< in hash_
  std::vector<std::uint64_t> hashes_;
};

/// The hashes of one instruction: a row of hashes.tsv and its part of hashes.bin.
struct HashedRun {
  const Instruction* instruction;
  std::uint64_t seed;
  int tiles;
  std::vector<std::uint64_t> hashes;
};

/// FOLDER/hashes.bin (uint64, little-endian) and FOLDER/hashes.tsv, whose `offset` counts hashes.
void write_hashes(const std::string& folder, const std::vector<HashedRun>&);
/// Throws Error that names file and line.
std::vector<HashedRun> read_hashes(const std::string& folder);

}  // namespace numemu::oracle::recording
