// One tile of the float64 form.
#pragma once
#include "emu/unit/fused/prepare_tile.hpp"

namespace numemu::unit {

/// On the calling thread, which must round toward zero; the best target of this CPU is chosen at
/// run time.
void run_double_tile(const FusedTile&);
/// Whether that target multiplies and adds with one rounding.
bool has_double_form();

}  // namespace numemu::unit
