// Tables of a folder of records: columns by name, errors by line.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "emu/oracle/replay/record_folder.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
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

/// No folder, pipe or device.
std::ifstream open_regular(const std::string& path) {
  std::error_code error;
  std::ifstream file(std::filesystem::is_regular_file(path, error) ? path : "", std::ios::binary);
  if (!file) throw Error(path + ": cannot read");
  return file;
}

}  // namespace

const std::string& TableRow::text(const std::string& column) const {
  const auto found = cells.find(column);
  if (found == cells.end()) throw Error(where + ": expected a column " + column);
  return found->second;
}

std::int64_t TableRow::number(const std::string& column) const {
  constexpr std::size_t kMostDigits = 9;
  const std::string& digits = text(column);
  std::int64_t value = -1;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < 0 || digits.size() > kMostDigits)
    throw Error(
        fmt::format("{}: {}: expected a number below 10^9, found '{}'", where, column, digits));
  return value;
}

std::vector<TableRow> read_table_rows(const std::string& path) {
  std::ifstream file = open_regular(path);
  std::vector<std::string> names;
  std::vector<TableRow> rows;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::vector<std::string> cells = split(line, '\t');
    if (number == 1) {
      names = std::move(cells);
      continue;
    }
    TableRow row{fmt::format("{} line {}", path, number), {}};
    if (cells.size() != names.size())
      throw Error(
          fmt::format("{}: expected {} columns, found {}", row.where, names.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!row.cells.emplace(names[i], std::move(cells[i])).second)
        throw Error(fmt::format("{} line 1: column {} appears twice", path, names[i]));
    }
    rows.push_back(std::move(row));
  }
  if (file.bad()) throw Error(path + ": cannot read");
  if (names.empty()) throw Error(path + ": expected a line of column names, found nothing");
  return rows;
}

std::string path_below(const std::string& folder, const TableRow& row, const std::string& file) {
  for (const std::string& part : split(file, '/')) {
    if (part.empty() || part == "..")
      throw Error(fmt::format("{}: expected a path below {}, found '{}'", row.where, folder, file));
  }
  return folder + "/" + file;
}

std::vector<std::uint8_t> read_exactly(const std::string& path, std::int64_t bytes,
                                       const std::string& what) {
  std::ifstream file = open_regular(path);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size != static_cast<std::uintmax_t>(bytes))
    throw Error(fmt::format("{}: expected {}, that is {} bytes, found {}", path, what, bytes,
                            error ? 0 : size));
  std::vector<std::uint8_t> all(static_cast<std::size_t>(bytes));
  file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(bytes));
  if (!file) throw Error(path + ": cannot read");
  return all;
}

}  // namespace numemu::oracle
