// Rivals of a unit: descriptions that differ from its own in one parameter and in some result.
#pragma once
#include <string>
#include <vector>

#include "emu/oracle/dots.hpp"
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

/// The patches for which some constructed or random question of this depth has another result; of
/// several that agree on all of them, the first. `depth` 0: twice the instruction's K.
std::vector<Rival> rivals_of(const unit::UnitDescription&, int depth = 0);

/// The depth at which two instructions follow each other, between 8 and 128: a multiple of the
/// sparsity's group.
int telling_depth(const unit::UnitDescription&);

}  // namespace numemu::oracle
