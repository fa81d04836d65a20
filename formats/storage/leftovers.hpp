// Temporary files: their names, and the removal of those that a killed writer left.
#pragma once
#include <string>

namespace numemu {

/// Stands between the name of a file and the number of a temporary one beside it.
inline constexpr const char* kTemporaryMark = ".numemu-tmp";

/// Whether `name` in an open folder still leads to the open file, which nobody but the holder of
/// its lock may rename.
bool still_named(int file, int folder, const std::string& name);

/// Removes the temporary files in a folder that no process is writing. A folder or file that cannot
/// be read is passed over.
void remove_leftovers(const std::string& folder);

}  // namespace numemu
