// The results of an emulated unit for tiles of an instruction.
#pragma once
#include "emu/unit/unit.hpp"
#include "tests/oracle/cuda/inputs/batch.hpp"

namespace numemu::gpu {

enum class Way : std::uint8_t { reference, fast };

/// D of every tile as the unit computes it, [count][m][n] in the containers of batch.d.
std::vector<std::uint8_t> unit_answers(const unit::Unit&, Batch&, Way);

}  // namespace numemu::gpu
