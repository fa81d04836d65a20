// The scores of a row as a table.
#pragma once
#include <cstdint>

#include "formats/storage/json.hpp"

namespace numemu::cli {

/// Prints a list of experiments::scores_json() of so many samples, with the reasons of figures that
/// are missing.
void print_scores(const Json& scores, std::int64_t samples);

}  // namespace numemu::cli
