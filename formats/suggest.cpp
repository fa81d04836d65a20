// Edit distance between an unknown name and the known ones.
#include "formats/suggest.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "formats/joined.hpp"

namespace numemu {
namespace {

/// Of an option "--name" what follows the hyphens, which all of them have.
std::string_view letters(std::string_view name) {
  return name.starts_with("--") ? name.substr(2) : name;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The fewest letters to add, drop, replace or exchange with the next one, without regard to case:
// optimal string alignment, three rows of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (a.starts_with("--") && b.starts_with("--")) {
    a = letters(a);
    b = letters(b);
  }
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
// What still fits on the one line of an error: so many names, or names of so many characters.
constexpr std::size_t kMostListed = 12, kMostCharacters = 160;
constexpr std::size_t kMostNear = 4;

/// Where a user finds all names of a kind of which there are many.
struct Listed {
  std::string_view kind, command;
};
constexpr Listed kListed[] = {{"format", "formats"},      {"scalar format", "formats"},
                              {"unit", "units"},          {"experiment", "experiment"},
                              {"recipe", "train --help"}, {"command", "--help"}};

/// The known names of which the unknown one is a part, in their order.
std::vector<std::string> names_with(std::string_view part, const std::vector<std::string>& known) {
  constexpr std::size_t kShortest = 3;
  part = letters(part);
  std::vector<std::string> found;
  const auto same = [](char x, char y) { return lower(x) == lower(y); };
  for (const std::string& name : known) {
    if (part.size() >= kShortest &&
        std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end())
      found.push_back(name);
  }
  return found;
}

/// The known names that differ in at most half of the letters of NAME, each once, from the nearest
/// on; of a long name what it begins with may be near.
std::vector<std::string> by_distance(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < known.size() && !name.empty(); ++i) {
    const std::size_t whole = edit_distance(name, known[i]);
    const std::size_t beginning = edit_distance(name, known[i].substr(0, name.size()));
    if (std::min(whole, beginning) <= letters(name).size() / 2)
      order.emplace_back(std::min(whole, beginning + 1), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> sorted;
  for (const auto& [distance, i] : order) {
    if (std::find(sorted.begin(), sorted.end(), known[i]) == sorted.end())
      sorted.push_back(known[i]);
  }
  return sorted;
}

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
  const std::size_t length = letters(name).size(), most = std::max<std::size_t>(2, length / 3);
  if (edit_distance(name, nearest) > std::min(most, length / 2)) return std::nullopt;
  return nearest;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& known) {
  std::string text = "unknown ";
  text.append(kind).append(" '").append(name).append("'");
  if (known.empty()) return text;
  name = name.substr(0, kLongestName);
  const std::vector<std::string> with = names_with(name, known);
  std::optional<std::string> meant = suggested_name(name, known);
  // What is a part of several names may mean any of them: fp8 is not fp4, and int is not int2.
  if (!with.empty() && meant) {
    const std::size_t least = edit_distance(name, *meant);
    const auto as_near = std::count_if(with.begin(), with.end(), [&](const std::string& other) {
      return edit_distance(name, other) == least;
    });
    if (least > 1 || as_near != 1) meant = std::nullopt;
  }
  if (with.size() == 1 && !meant) meant = with.front();
  if (meant) return text + "; did you mean '" + *meant + "'?";
  const std::string all = joined(known, ", ");
  const bool few = known.size() <= kMostListed || all.size() <= kMostCharacters;
  if (few && with.empty()) return text + "; known: " + all;
  const std::vector<std::string> near = with.empty() ? by_distance(name, known) : with;
  if (!near.empty())
    text += "; near: " + joined(std::span(near).first(std::min(near.size(), kMostNear)), ", ");
  for (const Listed& listed : kListed) {
    if (listed.kind == kind) return text.append("; all: numemu ").append(listed.command);
  }
  if (near.empty()) text += "; known: " + joined_first(known, ", ", kMostNear, " and {} others");
  return text;
}

}  // namespace numemu
