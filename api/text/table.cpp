#include "api/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/storage/utf8.hpp"

namespace numemu::api {
namespace {

bool numeric(const std::string& cell) {
  return cell == "NaN" || cell.find_first_not_of("0123456789.+-e%[]*, ") == std::string::npos;
}

}  // namespace

std::string text_table(const std::vector<std::string>& header,
                       std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = harmless(cell);
  }
  std::vector<std::size_t> width;
  std::vector<bool> right;
  for (std::size_t c = 0; c < header.size(); ++c) {
    width.push_back(header[c].size());
    right.push_back(!rows.empty());
    for (const auto& row : rows) {
      width[c] = std::max(width[c], row[c].size());
      right[c] = right[c] && numeric(row[c]);
    }
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string one;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c) one += "  ";
      one += right[c] ? fmt::format("{:>{}}", cells[c], width[c])
                      : fmt::format("{:<{}}", cells[c], width[c]);
    }
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return text;
}

}  // namespace numemu::api
