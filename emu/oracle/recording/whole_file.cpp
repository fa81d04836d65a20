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

void write_whole_file(const std::string& path, const std::string& bytes) {
  const std::filesystem::path target(path);
  const std::string temporary = path + ".part";
  std::error_code error;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  if (error) throw file_error(path + ": cannot make its folder: " + error.message());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw file_error(temporary + ": cannot write");
  }
  std::filesystem::rename(temporary, target, error);
  if (error) throw file_error(path + ": cannot rename from .part: " + error.message());
}

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

std::string table_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (cell.find_first_of("\t\n\r") != std::string::npos)
      throw Error("a cell of a table holds a tab or a line end: '" + cell + "'");
    if (&cell != &cells.front()) line += '\t';
    line += cell;
  }
  return line + '\n';
}

}  // namespace numemu::oracle::recording
