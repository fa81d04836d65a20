// Recorded dots as answers of an unknown unit, for identify().
#pragma once
#include <string>
#include <vector>

#include "emu/oracle/identify.hpp"
#include "emu/oracle/replay/record_folder.hpp"

namespace numemu::oracle {

/// One instruction of a chip with all its records.
struct RecordedUnit {
  std::string chip;
  const recording::Instruction* instruction = nullptr;
  Ports ports;
  std::vector<Answered> answers;  ///< named by their probes
};

/// The instructions in the order of the folder; the 13 low bits of tf32 are left out.
std::vector<RecordedUnit> recorded_units(const RecordFolder&);

}  // namespace numemu::oracle
