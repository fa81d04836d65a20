// Files that are written whole or not at all, and tables in them.
#pragma once
#include <string>
#include <vector>

namespace numemu::oracle::recording {

/// Writes beside the path and renames; makes missing folders. Throws Error that names
/// the path.
void write_whole_file(const std::string& path, const std::string& bytes);

/// A line of a table as read_table() reads it. Throws Error where a cell holds a tab or a line end.
std::string table_line(const std::vector<std::string>& cells);

}  // namespace numemu::oracle::recording
