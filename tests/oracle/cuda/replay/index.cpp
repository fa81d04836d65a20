// Reading an index; errors name the line.
#include "tests/oracle/cuda/replay/index.hpp"

#include <filesystem>
#include <fstream>

#include "tests/oracle/cuda/replay/record_file.hpp"

namespace numemu::oracle::recording::replay {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

const std::string& IndexRow::text(const char* column) const {
  const auto found = cells.find(column);
  if (found == cells.end()) throw BadInput(where + ": no column " + column);
  return found->second;
}

std::size_t IndexRow::number(const char* column) const {
  const std::string& digits = text(column);
  std::size_t value = 0;
  bool good = !digits.empty() && digits.size() <= 9;
  for (const char c : digits) {
    good = good && c >= '0' && c <= '9';
    value = value * 10 + static_cast<std::size_t>(c - '0');
  }
  if (!good)
    throw BadInput(where + ": " + column + ": expected a number below 10^9, got \"" + digits +
                   "\"");
  return value;
}

std::vector<IndexRow> read_index(const std::string& path) {
  std::error_code error;
  const bool finite = std::filesystem::is_regular_file(path, error);  // no folder, pipe or device
  std::ifstream file(finite ? path : "");
  if (!file) throw BadInput(path + ": cannot read");
  std::vector<std::string> names;
  std::vector<IndexRow> rows;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::vector<std::string> cells = split(line, '\t');
    const std::string where = path + " line " + std::to_string(number);
    if (names.empty()) {
      names = cells;
      continue;
    }
    if (cells.size() != names.size())
      throw BadInput(where + ": expected " + std::to_string(names.size()) + " columns, got " +
                     std::to_string(cells.size()));
    IndexRow row{where, {}};
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!row.cells.emplace(names[i], cells[i]).second)
        throw BadInput(path + " line 1: column " + names[i] + " stands twice");
    rows.push_back(row);
  }
  if (file.bad()) throw BadInput(path + ": cannot read");
  if (names.empty()) throw BadInput(path + ": is empty");
  return rows;
}

std::string path_below(const std::string& folder, const IndexRow& row, const std::string& file) {
  for (const std::string& part : split(file, '/'))
    if (part.empty() || part == "..")
      throw BadInput(row.where + ": file \"" + file + "\" is not a path below " + folder);
  return folder + "/" + file;
}

}  // namespace numemu::oracle::recording::replay
