// Probes as tiles that a machine is asked.
#pragma once
#include <vector>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/probe.hpp"

namespace numemu::oracle::recording {

/// Tile p holds probe p in row 0 and column 0, zeros elsewhere.
Batch tiles_of(const Instruction&, const std::vector<Probe>&);

}  // namespace numemu::oracle::recording
