// The names of rounding rules and overflow modes.
#include "formats/rounding.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

// In the order of the enumerators.
constexpr std::string_view kModes[] = {"rne", "rna", "rtz", "rup", "rdn", "rodd", "sr"};
constexpr std::string_view kVariants[] = {"a", "b", "c", "odd"};
constexpr std::string_view kOverflows[] = {"saturate", "propagate", "ieee"};

template <std::size_t N>
std::vector<std::string> list(const std::string_view (&names)[N]) {
  return {std::begin(names), std::end(names)};
}

// The index of `name` in `names`, N if it is not there.
template <std::size_t N>
std::size_t find(const std::string_view (&names)[N], std::string_view name) {
  return static_cast<std::size_t>(std::find(std::begin(names), std::end(names), name) -
                                  std::begin(names));
}

// The text between the brackets of sr(...).
Rounding parse_stochastic(std::string_view text, std::string_view arguments) {
  const std::size_t comma = arguments.find(',');
  const std::string_view digits = arguments.substr(0, comma);
  Rounding rounding{.mode = RoundingMode::sr};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), rounding.random_bits);
  if (error != std::errc{} || end != digits.data() + digits.size() || rounding.random_bits < 1 ||
      rounding.random_bits > 32)
    throw Error("rounding '" + std::string(text) +
                "': expected 1..32 random bits, as in sr(8) or sr(8,a)");
  if (comma == std::string_view::npos) return rounding;
  const std::size_t variant = find(kVariants, arguments.substr(comma + 1));
  if (variant == std::size(kVariants))
    throw Error("rounding '" + std::string(text) +
                "': expected variant a, b, c or odd, as in sr(8,a)");
  rounding.variant = static_cast<StochasticVariant>(variant);
  return rounding;
}

}  // namespace

Rounding parse_rounding(std::string_view text) {
  if (text.starts_with("sr(") && text.ends_with(')'))
    return parse_stochastic(text, text.substr(3, text.size() - 4));
  if (text == "sr") throw Error("rounding 'sr': expected the number of random bits, as in sr(8)");
  const std::size_t mode = find(kModes, text);
  if (mode < std::size(kModes)) return {.mode = static_cast<RoundingMode>(mode)};
  std::vector<std::string> known = list(kModes);
  known.back() = "sr(8)";
  throw Error(unknown_name("rounding", text, known));
}

Overflow parse_overflow(std::string_view text) {
  const std::size_t mode = find(kOverflows, text);
  if (mode < std::size(kOverflows)) return static_cast<Overflow>(mode);
  throw Error(unknown_name("overflow mode", text, list(kOverflows)));
}

std::string to_string(const Rounding& rounding) {
  std::string text(kModes[static_cast<std::size_t>(rounding.mode)]);
  if (!rounding.stochastic()) return text;
  text += "(" + std::to_string(rounding.random_bits);
  if (rounding.variant != StochasticVariant::c)
    text.append(",").append(kVariants[static_cast<std::size_t>(rounding.variant)]);
  return text + ")";
}

std::string to_string(Overflow overflow) {
  return std::string(kOverflows[static_cast<std::size_t>(overflow)]);
}

}  // namespace numemu
