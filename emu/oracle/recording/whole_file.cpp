#include "emu/oracle/recording/whole_file.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "formats/error.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 28;  // no file of a run is near it

}  // namespace

std::string read_whole_file(const std::string& path) {
  std::error_code error;
  const bool finite = std::filesystem::is_regular_file(path, error);  // no folder, pipe or device
  std::ifstream file(finite ? path : "", std::ios::binary);
  if (!file) throw file_error(path + ": cannot read");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMostBytes)
    throw Error(path + ": expected at most " + std::to_string(kMostBytes) + " bytes, has " +
                std::to_string(size));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::vector<std::string>> read_table(const std::string& path,
                                                 const std::string& header) {
  std::istringstream lines(read_whole_file(path));
  std::string line;
  std::getline(lines, line);
  if (line != header)
    throw Error(path + ":1: expected the columns '" + header + "', got '" + line + "'");
  const std::size_t columns = split(header, '\t').size();
  std::vector<std::vector<std::string>> rows;
  while (std::getline(lines, line)) {
    rows.push_back(split(line, '\t'));
    if (rows.back().size() != columns)
      throw Error(path + ":" + std::to_string(rows.size() + 1) + ": expected " +
                  std::to_string(columns) + " cells, got " + std::to_string(rows.back().size()));
  }
  return rows;
}

std::uint64_t cell_number(const std::string& where, const std::string& cell, int base) {
  const char* digits = base == 10 ? "0123456789" : "0123456789abcdef";
  try {
    if (!cell.empty() && cell.find_first_not_of(digits) == std::string::npos)
      return std::stoull(cell, nullptr, base);
  } catch (const std::out_of_range&) {
  }
  throw Error(where + ": expected a number, got '" + cell + "'");
}

}  // namespace numemu::oracle::recording
