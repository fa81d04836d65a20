// Files that are written whole or not at all, and read whole.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace numemu::oracle::recording {

/// Writes beside the path and renames; makes missing folders. Throws Error that names
/// the path.
void write_whole_file(const std::string& path, const std::string& bytes);
std::string read_whole_file(const std::string& path);

/// What stands between separators: one more part than there are of them.
std::vector<std::string> split(const std::string& text, char separator);
/// The cells of a table whose columns are separated by tabs; the first line must be `header`.
/// Throws Error that names path and line where a row has another number of cells.
std::vector<std::vector<std::string>> read_table(const std::string& path,
                                                 const std::string& header);
/// A whole cell of digits in base 10 or 16. Throws Error that begins with `where`.
std::uint64_t cell_number(const std::string& where, const std::string& cell, int base = 10);
/// A line of such a table. Throws Error where a cell holds a tab or a line end.
std::string table_line(const std::vector<std::string>& cells);

}  // namespace numemu::oracle::recording
