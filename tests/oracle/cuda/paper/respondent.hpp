// A paper H100 as the machine of a whole run, for tests.
#pragma once
#include <memory>

#include "tests/oracle/cuda/ask/ask_all.hpp"
#include "tests/oracle/cuda/paper/paper_machine.hpp"

namespace numemu::oracle::recording {

/// Every instruction of the H100 that the catalogue has; no conversions.
inline Respondent on_paper() {
  Respondent who;
  who.unit = "H100";
  who.source = "paper";
  static const PaperMachine kMachine("H100");
  for (std::size_t i = 0; i < instructions().size(); ++i)
    if (kMachine.has(instructions()[i])) who.instructions.push_back(static_cast<int>(i));
  who.machine = [] { return std::make_unique<PaperMachine>("H100"); };
  return who;
}

}  // namespace numemu::oracle::recording
