// The array files of a command, opened together, with sidecars whose every name is known.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/stored_array.hpp"

namespace numemu::cli {

/// open_together(), which knows no policies; throws Error also where a sidecar names a scale rule
/// that there is not, or not for its block format.
std::vector<StoredArray> open_inputs(const std::vector<ArrayName>&);
/// One file.
StoredArray open_input(const std::string& path);

}  // namespace numemu::cli
