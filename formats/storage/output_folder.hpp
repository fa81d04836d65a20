// The output folder of long work, checked before the work starts.
#pragma once
#include <string>

namespace numemu {

/// Throws Error naming `folder` unless files can be made in it, or in what will be made for it
/// where it is not there yet. Leaves nothing behind.
void require_writable_folder(const std::string& folder);

/// Another name for a folder that is taken: "runs/sweep-2" for "runs/sweep", the first that does
/// not exist.
std::string fresh_folder(const std::string& folder);

}  // namespace numemu
