// A table of tab-separated columns, the first line being their names.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace numemu::oracle::recording::replay {

struct IndexRow {
  std::string where;  ///< "PATH line N", for messages
  std::map<std::string, std::string> cells;

  bool has(const char* column) const { return cells.count(column) != 0; }
  const std::string& text(const char* column) const;
  std::size_t number(const char* column) const;  ///< decimal digits, below 10^9
};

/// Throws BadInput (record_file.hpp).
std::vector<IndexRow> read_index(const std::string& path);

/// A path below `folder`: relative, without "..".
std::string path_below(const std::string& folder, const IndexRow&, const std::string& file);

}  // namespace numemu::oracle::recording::replay
