#include "emu/oracle/record.hpp"

#include <algorithm>

namespace numemu::oracle {

Records::Records(const Layout& layout, std::int64_t n) { reset(layout, n); }

void Records::reset(const Layout& layout, std::int64_t n) {
  size = n;
  columns.resize(layout.size());
  unknown.assign(layout.size(), {});
  for (std::size_t f = 0; f < layout.size(); ++f)
    columns[f].assign(static_cast<std::size_t>(n * layout[f].count), 0);
  class_of.assign(static_cast<std::size_t>(n), 0);
  line.assign(static_cast<std::size_t>(n), 0);
}

void Records::resize(const Layout& layout, std::int64_t n) {
  size = n;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const auto elements = static_cast<std::size_t>(n * layout[f].count);
    columns[f].resize(elements);
    if (!unknown[f].empty()) unknown[f].resize(elements);
  }
  class_of.resize(static_cast<std::size_t>(n));
  line.resize(static_cast<std::size_t>(n));
}

bool Records::has_unknown(const Layout& layout, int field, std::int64_t i) const {
  const auto& bits = unknown[static_cast<std::size_t>(field)];
  if (bits.empty()) return false;
  const std::int64_t count = layout[static_cast<std::size_t>(field)].count;
  return std::any_of(bits.begin() + i * count, bits.begin() + (i + 1) * count,
                     [](std::uint64_t b) { return b != 0; });
}

std::uint8_t Records::class_number(std::string_view name) {
  constexpr std::size_t kMost = 255;
  const auto at = [&](std::string_view text) {
    return static_cast<std::size_t>(std::find(classes.begin(), classes.end(), text) -
                                    classes.begin());
  };
  std::size_t number = at(name);
  if (number == classes.size() && number >= kMost) number = at(name = "other");
  if (number == classes.size()) classes.emplace_back(name);
  return static_cast<std::uint8_t>(number);
}

}  // namespace numemu::oracle
