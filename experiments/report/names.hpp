// Names of rows: two different points never have the same one.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// Fills in label, name and settings. Where rows share a short label, the keys of the points in
/// which these rows differ are added with their values, the unit last; rows of one and the same
/// point (of several numerics versions) are told apart by version or place.
void name_records(std::vector<Record>&);

/// "5 layers mxfp8_e4m3 + conv1 int8": the layers of a row whose rules give them other formats or
/// another unit than the base, or, where both are the base's, what else. "" without such layers.
std::string layer_overrides(const nlohmann::ordered_json& row);

}  // namespace numemu::experiments
