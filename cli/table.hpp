// Aligned text tables for the terminal.
#pragma once
#include <string>
#include <vector>

namespace numemu::cli {

/// Columns as wide as their widest cell, two spaces apart; columns that hold only numbers are
/// right-aligned.
std::string text_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace numemu::cli
