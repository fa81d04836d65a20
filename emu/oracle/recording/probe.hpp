// One dot chosen by hand: its answer decides between rival descriptions of a unit.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

struct Probe {
  std::string id;                ///< unique within the instruction: "Z1", "F150", "sign-of-zero.2"
  std::string question;          ///< id of a row of questions.def
  std::vector<std::uint64_t> a;  ///< kept() codes
  std::vector<std::uint64_t> b;  ///< k codes
  std::uint64_t c = 0;
  std::vector<std::uint8_t> metadata;          ///< groups() words of four bits; empty: dense
  std::vector<std::uint8_t> scale_a, scale_b;  ///< scales() codes; empty: not scaled
};

/// Tile p holds probe p in row 0 and column 0, zeros elsewhere.
Batch tiles_of(const Instruction&, const std::vector<Probe>&);

}  // namespace numemu::oracle::recording
