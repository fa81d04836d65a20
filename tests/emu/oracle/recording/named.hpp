// An instruction by kind and name, for tests.
#pragma once
#include <string>

#include "emu/oracle/recording/instruction.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording {

inline const Instruction& instruction(const std::string& kind, const std::string& text) {
  const int place = find_instruction(kind, text);
  INFO(kind << " " << text);
  REQUIRE(place >= 0);
  return instructions()[static_cast<std::size_t>(place)];
}

}  // namespace numemu::oracle::recording
