// Units found by names that describe their accumulator: neutral.mac.*, neutral.chunkN.*,
// neutral.kahan.*.
#pragma once
#include <optional>
#include <string_view>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// neutral.mac.FORMAT[.ROUNDING][.saturate], neutral.chunkN.FORMAT..., neutral.kahan.FORMAT...:
/// FORMAT a floating format or descriptor; intN[.wrap|.saturate], 8 <= N <= 32; fixedWqF, W bits of
/// two's complement (8..32), F of them right of the point, [.ROUNDING][.wrap|.saturate]. ROUNDING:
/// rne (default), rna, rtz, rup, rdn, rodd, srN, srNa, srNb, srNodd. ibm.hfp8.chunkN is
/// neutral.chunkN.hfp16_e6m9. The name in the result is canonical. Empty where the name has none of
/// these heads; throws Error naming the part that is wrong.
std::optional<UnitDescription> parse_described(std::string_view name);

}  // namespace numemu::unit
