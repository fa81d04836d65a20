// The handle of a unit, which operations and products share.
#pragma once
#include <string>

#include "api/units.hpp"

struct numemu_unit {
  numemu::api::UnitPtr unit;
};
