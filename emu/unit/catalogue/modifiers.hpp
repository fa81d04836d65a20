// Modifiers: the last parts of a unit's name, and what each does to a description.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

struct Modifier {
  std::string name;
  void (*apply)(UnitDescription&);
  Grade grade;  ///< of the modified unit
  std::string what;
};

/// The rows of modifiers.def.
const std::vector<Modifier>& all_modifiers();
/// nullptr where there is none of that name.
const Modifier* find_modifier(std::string_view name);

}  // namespace numemu::unit
