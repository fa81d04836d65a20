// An instruction by kind and name, and what is wrong, for tests.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "emu/oracle/recording/instruction.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording {

inline const Instruction& instruction(std::string_view kind, std::string_view text) {
  const int place = find_instruction(std::string(kind), std::string(text));
  INFO(kind << " " << text);
  REQUIRE(place >= 0);
  return instructions()[static_cast<std::size_t>(place)];
}

/// What it throws; "no error" for nothing.
inline std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace numemu::oracle::recording
