// The GPUs that are asked: their names in tables, their compute capabilities, their instructions.
#pragma once
#include <string>
#include <vector>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// "H100" for the driver's name "NVIDIA H100 80GB HBM3" and capability 90; a chip of a known family
/// that nobody described itself takes the family's name (A100, A2, Ada, H100, B200, RTXBlackwell);
/// "": unknown.
std::string chip_of(const std::string& name, int capability);

/// Of the chips rules know, those that have the instruction; in order of age.
std::vector<std::string> chips_with(const Instruction&);

/// Compute capability of a chip of the tables; 0: unknown.
int capability_of(const std::string& chip);

}  // namespace numemu::oracle::recording
