// Maps an instruction of a chip to a unit of the emulator.
#pragma once
#include <string>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// "nvidia.h100.mma.f16.f32" for mma m16n8k16.f32.f16.f16.f32 of the H100, as ./numemu units names
/// it; "": the emulator has none.
std::string unit_of(const std::string& chip, const Instruction&);

}  // namespace numemu::oracle::recording
