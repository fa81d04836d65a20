#include "emu/oracle/style.hpp"

#include <algorithm>
#include <array>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {
namespace {

constexpr std::array<std::string_view, 11> kStyles = {
    "mixed",    "random", "edges",     "exhaustive", "cancel", "subnormal",
    "overflow", "ties",   "alignment", "near_ties",  "carry"};

}  // namespace

std::string_view to_string(Style style) { return kStyles[static_cast<std::size_t>(style)]; }

Style parse_style(std::string_view text) {
  return static_cast<Style>(index_named("style", text, kStyles));
}

}  // namespace numemu::oracle
