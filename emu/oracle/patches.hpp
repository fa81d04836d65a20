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

/// The keys of the fields, other than the name, in which two descriptions differ.
std::vector<std::string> changed_keys(const unit::UnitDescription&, const unit::UnitDescription&);
/// Whether there is no such field.
bool same_rule(const unit::UnitDescription&, const unit::UnitDescription&);

}  // namespace numemu::oracle
