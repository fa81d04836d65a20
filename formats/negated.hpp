// The opposite of a number; a zero, infinity or NaN of the other sign.
#pragma once
#include "formats/value.hpp"

namespace numemu {

Value operator-(Value);

}  // namespace numemu
