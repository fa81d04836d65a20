// Files that are read whole, and tables in them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace numemu::oracle::recording {

/// Throws Error that names the path.
std::string read_whole_file(const std::string& path);

/// What stands between separators: one more part than there are of them.
std::vector<std::string> split(const std::string& text, char separator);
/// The cells of a table whose columns are separated by tabs; the first line must be `header`.
/// Throws Error that names path and line where a row has another number of cells.
std::vector<std::vector<std::string>> read_table(const std::string& path,
                                                 const std::string& header);
/// A whole cell of digits in base 10 or 16. Throws Error that begins with `where`.
std::uint64_t cell_number(const std::string& where, const std::string& cell, int base = 10);

}  // namespace numemu::oracle::recording
