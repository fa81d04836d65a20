// One loop for every kind of element.
#include "formats/joined.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace numemu {
namespace {

std::string text(std::int64_t x) { return std::to_string(x); }
std::string_view text(std::string_view x) { return x; }

std::string all(const auto& list, std::string_view between) {
  std::string out;
  bool first = true;
  for (const auto& element : list) {
    if (!first) out += between;
    first = false;
    out += text(element);
  }
  return out;
}

}  // namespace

std::string joined(std::span<const std::string> list, std::string_view between) {
  return all(list, between);
}
std::string joined(std::span<const std::string_view> list, std::string_view between) {
  return all(list, between);
}
std::string joined(std::span<const char* const> list, std::string_view between) {
  return all(list, between);
}
std::string joined(std::span<const std::int64_t> list, std::string_view between) {
  return all(list, between);
}
std::string joined(std::span<const int> list, std::string_view between) {
  return all(list, between);
}
std::string joined(const std::set<std::string>& list, std::string_view between) {
  return all(list, between);
}

std::string joined_first(std::span<const std::string> list, std::string_view between,
                         std::size_t most, const char* more) {
  const std::size_t shown = std::min(list.size(), most), left = list.size() - shown;
  return joined(list.first(shown), between) +
         (left > 0 ? fmt::format(fmt::runtime(more), left) : "");
}

}  // namespace numemu
