// Rivals of a unit: descriptions that differ from its own in one parameter and in some result.
#pragma once
#include <vector>

#include "emu/oracle/patches.hpp"

namespace numemu::oracle {

/// The patches for which some constructed or random question of this depth has another result; of
/// several that agree on all of them, the first. `depth` 0: twice the instruction's K.
std::vector<Rival> rivals_of(const unit::UnitDescription&, int depth = 0);

/// The depth at which two instructions follow each other, between 8 and 128: a multiple of the
/// sparsity's group.
int telling_depth(const unit::UnitDescription&);

}  // namespace numemu::oracle
