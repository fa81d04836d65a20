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

std::size_t width_of(const std::string& table) {
  std::size_t widest = 0;
  for (std::size_t at = 0, end; at < table.size(); at = end + 1) {
    end = std::min(table.find('\n', at), table.size());
    widest = std::max(widest, end - at);
  }
  return widest;
}

std::string folded_table(const std::vector<std::string>& header,
                         const std::vector<std::vector<std::string>>& rows) {
  std::string whole = text_table(header, rows);
  if (width_of(whole) <= kTerminalWidth) return whole;
  const bool numbered = rows.size() > 1;
  // Columns first .. last - 1.
  const auto part_of = [&](std::size_t first, std::size_t last) {
    const auto cells_of = [&](const std::vector<std::string>& all, std::string number) {
      std::vector<std::string> cells(numbered ? 1 : 0, std::move(number));
      for (std::size_t c = first; c < last; ++c) cells.push_back(all[c]);
      return cells;
    };
    std::vector<std::vector<std::string>> cells;
    for (const auto& row : rows) cells.push_back(cells_of(row, std::to_string(cells.size() + 1)));
    return text_table(cells_of(header, "#"), cells);
  };
  std::string text;
  for (std::size_t first = 0, last = 0; first < header.size(); first = last) {
    std::string part;
    for (std::size_t next = first; next < header.size();) {
      do {
        ++next;  // an interval stays with its figure
      } while (next < header.size() && header[next].starts_with("95 %"));
      std::string wider = part_of(first, next);
      if (!part.empty() && width_of(wider) > kTerminalWidth) break;
      part = std::move(wider);
      last = next;
    }
    text += (numbered && !text.empty() ? "\n" : "") + part;
  }
  return text;
}

}  // namespace numemu::api
