// Aligned text tables for the terminal.
#pragma once
#include <string>
#include <vector>

namespace numemu::api {

/// Columns as wide as their widest cell, two spaces apart; columns that hold only numbers are
/// right-aligned. Cells are made harmless (formats/storage/utf8.hpp): names in them come from
/// files.
std::string text_table(const std::vector<std::string>& header,
                       std::vector<std::vector<std::string>> rows);

}  // namespace numemu::api
