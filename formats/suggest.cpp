// Edit distance between an unknown name and the known ones.
#include "formats/suggest.hpp"

#include <algorithm>
#include <numeric>

namespace numemu {
namespace {

// Levenshtein distance, one row of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  // A hostile name may be long; beyond this length the rest cannot make a useful suggestion.
  name = name.substr(0, 256);
  const auto nearest =
      std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return edit_distance(name, a) < edit_distance(name, b);
      });
  return nearest == known.end() ? "" : *nearest;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known) {
  std::string text = "unknown ";
  text.append(kind).append(" '").append(name).append("'");
  if (!known.empty()) text += "; did you mean '" + nearest_name(name, known) + "'?";
  return text;
}

}  // namespace numemu
