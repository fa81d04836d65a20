// One tile of the 32-bit integer form.
#pragma once
#include "emu/unit/fused/prepare_tile.hpp"

namespace numemu::unit {

/// On the calling thread, which must round toward zero; the best target of this CPU is chosen at
/// run time.
void run_integer_tile(const FusedTile&);
/// Whether that target has the vectors it needs.
bool has_integer_form();

}  // namespace numemu::unit
