// The version of the numerics: changes whenever any result could change a bit, so that old rows are
// never mixed with new.
#pragma once

namespace numemu {

inline constexpr const char* kNumericsVersion = "1";

}  // namespace numemu
