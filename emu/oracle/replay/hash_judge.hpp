// The large runs of a folder: every dot computed again, hashed and compared.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "emu/oracle/recording/hashes.hpp"

namespace numemu::oracle {

struct HashVerdict {
  std::string chip, instruction, unit;  ///< unit "": the catalogue has none
  std::int64_t hashes = 0, differ = 0;
  std::int64_t first_tile = 0, last_tile = 0;  ///< that the first different hash covers
};

/// FOLDER/hashes.tsv, whose inputs are drawn again; chips by FOLDER/index.tsv. Calls `done` after
/// each run whose kind and name hold `only`, in the order of the table. Fast paths, over threads.
/// Throws Error naming file and line.
void judge_hashes(const std::string& folder, const std::string& only,
                  const std::function<void(const HashVerdict&)>& done);

}  // namespace numemu::oracle
