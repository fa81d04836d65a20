// The step maps of an instruction as rows of steps.tsv.
#pragma once
#include <string>

#include "tests/oracle/cuda/ask/machine.hpp"

namespace numemu::oracle::recording {

/// FOLDER/steps.tsv: kind instr variant position map step. One row per kept position i: the map is
/// '1' at j where the small product at j outlives the large one at i, '0' where it is lost, '?'
/// otherwise; step counts from 0, "-" where the map contradicts itself. Instructions that have no
/// step map write nothing.
void ask_steps(Machine&, const Instruction&, const std::string& folder);

}  // namespace numemu::oracle::recording
