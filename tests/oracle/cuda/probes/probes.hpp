// The questionnaire of an instruction.
#pragma once
#include <vector>

#include "emu/oracle/recording/probe.hpp"

namespace numemu::oracle::recording {

/// Every probe of this instruction, in a fixed order.
std::vector<Probe> probes(const Instruction&);

}  // namespace numemu::oracle::recording
