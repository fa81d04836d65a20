// The results of an emulated unit for tiles of an instruction.
#pragma once
#include "emu/oracle/recording/batch.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::oracle::recording {

enum class Way : std::uint8_t { reference, fast };

/// D of every tile as the unit computes it, [count][m][n] in the containers of batch.d.
std::vector<std::uint8_t> unit_answers(const unit::Unit&, Batch&, Way);

}  // namespace numemu::oracle::recording
