// Aligned text tables for the terminal.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace numemu::api {

/// Columns as wide as their widest cell, two spaces apart; columns that hold only numbers are
/// right-aligned. Cells are made harmless (formats/storage/utf8.hpp): names in them come from
/// files.
std::string text_table(const std::vector<std::string>& header,
                       std::vector<std::vector<std::string>> rows);

/// Characters of a terminal that tables are meant for.
inline constexpr std::size_t kTerminalWidth = 120;

/// Characters of its longest line.
std::size_t width_of(const std::string& table);

/// text_table() in parts of at most kTerminalWidth characters, one below the other, as far as the
/// cells allow it. Of several rows each part begins with the number of the row.
std::string folded_table(const std::vector<std::string>& header,
                         const std::vector<std::vector<std::string>>& rows);

}  // namespace numemu::api
