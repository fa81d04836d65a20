// The keys update and calibrate of a recipe: read strictly, every default written out.
#pragma once
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Whether parameters can be kept in the values of the format, as update.master says.
bool serves_master(const Format&);
/// Throws Error naming the key, what was expected and the nearest known name.
UpdatePolicy read_update(const JsonReader& update);
CalibrationPolicy read_calibration(const JsonReader& calibrate);
/// The canonical forms, every key present.
Json update_json(const UpdatePolicy&);
Json calibration_json(const CalibrationPolicy&);

}  // namespace numemu::policies
