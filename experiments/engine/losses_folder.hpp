// Where the files of losses_file.hpp stand.
#pragma once
#include <string>

namespace numemu::experiments {

/// The folder of the losses of the rows in `folder`.
inline std::string losses_folder(const std::string& folder) { return folder + "/losses"; }

}  // namespace numemu::experiments
