// The keys update, calibrate and objectives (what a training step lowers, one after the other) of a
// recipe: read strictly, every default written out.
#pragma once
#include <string>
#include <vector>

#include "emu/net/train/options.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// A list of names or {"rule", "optimizer"}; `optimizer` is that of objectives without their own.
/// Empty for null and for cross_entropy alone, the default. Throws Error naming the key.
std::vector<ObjectiveChoice> read_objectives(const JsonReader&, const std::string& optimizer);
/// The canonical form: an object only for an objective with its own optimizer.
Json objectives_json(const std::vector<ObjectiveChoice>&, const std::string& optimizer);

/// Sets objectives and optimizers of the options to those of a recipe that names objectives. Throws
/// Error where the options have others than the default.
void use_objectives(const Recipe&, const std::string& where, net::TrainOptions&);

/// Whether parameters can be kept in the values of the format, as update.master says.
bool serves_master(const Format&);
/// Throws Error naming the key, what was expected and the nearest known name.
UpdatePolicy read_update(const JsonReader& update);
CalibrationPolicy read_calibration(const JsonReader& calibrate);
/// The canonical forms, every key present.
Json update_json(const UpdatePolicy&);
Json calibration_json(const CalibrationPolicy&);

}  // namespace numemu::policies
