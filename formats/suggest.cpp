// Edit distance between an unknown name and the known ones.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace numemu {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The fewest letters to add, drop, replace or exchange with the next one, without regard to case:
// optimal string alignment, three rows of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  for (std::size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({row[j] + 1, last[j + 1] + 1, last[j] + !same(i, j)});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j))
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

// A hostile name may be long; beyond this length the rest cannot make a useful suggestion.
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kMostListed = 12;  // names that still fit on the one line of an error

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  name = name.substr(0, kLongestName);
  const std::string* nearest = nullptr;
  std::size_t least = 0;
  for (const std::string& candidate : known) {
    // No distance is below the difference of the lengths.
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (nearest != nullptr && longer - shorter >= least) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (nearest != nullptr && distance >= least) continue;
    nearest = &candidate;
    least = distance;
  }
  return nearest == nullptr ? "" : *nearest;
}

std::optional<std::string> suggested_name(std::string_view name,
                                          const std::vector<std::string>& known) {
  if (known.empty()) return std::nullopt;
  name = name.substr(0, kLongestName);
  std::string nearest = nearest_name(name, known);
  // Two of three letters do not differ: 'div' does not mean 'dot'.
  const std::size_t most = std::max<std::size_t>(2, name.size() / 3);
  if (edit_distance(name, nearest) > std::min(most, name.size() / 2)) return std::nullopt;
  return nearest;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known) {
  std::string text = "unknown ";
  text.append(kind).append(" '").append(name).append("'");
  if (known.empty()) return text;
  if (const auto meant = suggested_name(name, known))
    return text + "; did you mean '" + *meant + "'?";
  if (known.size() > kMostListed) return text;
  text += "; known: " + known[0];
  for (std::size_t i = 1; i < known.size(); ++i) text += ", " + known[i];
  return text;
}

}  // namespace numemu
