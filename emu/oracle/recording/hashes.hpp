// Hashes of large runs: one for every 4096 answers, so that two runs are compared without keeping
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// FNV-1a of 64 bits; constants of RFC 9923, "The FNV Non-Cryptographic Hash Algorithm".
constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325;
constexpr std::uint64_t kFnvPrime = 0x00000100000001b3;
inline std::uint64_t fnv1a(std::uint64_t hash, const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ bytes[i]) * kFnvPrime;
  return hash;
}

constexpr int kDotsPerHash = 4096;

/// The hashes of one instruction: a row of hashes.tsv and its part of hashes.bin.
struct HashedRun {
  const Instruction* instruction;
  std::uint64_t seed;
  int tiles;
  std::vector<std::uint64_t> hashes;
};

/// The columns of FOLDER/hashes.tsv, and the cells of a run whose hashes begin at hash `offset` of
/// FOLDER/hashes.bin (uint64, little-endian).
constexpr const char* kHashColumns = "kind\tinstr\tseed\ttiles\tdots\tdots_per_hash\toffset\tcount";
std::vector<std::string> hash_cells(const HashedRun&, std::size_t offset);
/// Throws Error that names file and line.
std::vector<HashedRun> read_hashes(const std::string& folder);

}  // namespace numemu::oracle::recording
