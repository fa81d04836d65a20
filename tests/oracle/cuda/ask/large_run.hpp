// The large run of an instruction: its length, and the hashes of its answers as they come.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/hashes.hpp"

namespace numemu::oracle::recording {

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

/// Writes FOLDER/hashes.bin and FOLDER/hashes.tsv, which read_hashes() reads.
void write_hashes(const std::string& folder, const std::vector<HashedRun>&);

}  // namespace numemu::oracle::recording
