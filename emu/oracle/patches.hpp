// Patches of a unit: descriptions that differ from its own in one parameter.
#pragma once
#include <string>
#include <vector>

#include "emu/unit/description.hpp"

namespace numemu::oracle {

struct Rival {
  std::string name;  ///< "24 fraction bits kept instead of 25", "C added after rounding"
  unit::UnitDescription description;
};

/// Every patch of one parameter that the description's own checks accept, whether or not a result
/// shows it. The ports stay the same.
std::vector<Rival> patches_of(const unit::UnitDescription&);

/// Whether two descriptions agree in every field but their names.
bool same_rule(const unit::UnitDescription&, const unit::UnitDescription&);

}  // namespace numemu::oracle
