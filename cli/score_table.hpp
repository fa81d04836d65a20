// The scores of a row as a table.
#pragma once
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// Prints a list of experiments::scores_json(), with the reasons of figures that are missing.
void print_scores(const Json& scores);

}  // namespace numemu::cli
