#include "formats/call_text.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace numemu {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The first comma that no parentheses enclose.
std::size_t outer_comma(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.npos;
}

}  // namespace

CallText parse_call(std::string_view text) {
  text = trimmed(text);
  const std::size_t open = text.find('(');
  if (open == text.npos || open == 0 || !text.ends_with(')')) return {std::string(text), {}};
  CallText call{std::string(trimmed(text.substr(0, open))), {}};
  std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  for (;;) {
    const std::size_t comma = outer_comma(inside);
    call.arguments.emplace_back(trimmed(inside.substr(0, comma)));
    if (comma == inside.npos) return call;
    inside.remove_prefix(comma + 1);
  }
}

std::optional<double> number_argument(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> whole_argument(std::string_view text, std::int64_t least,
                                           std::int64_t most) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < least || value > most) return std::nullopt;
  return value;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0;
  std::size_t star = std::string_view::npos, taken = 0;  // the last star, and the end of its run
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      // Earlier stars need no other run: the last one can take whatever they would leave.
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace numemu
