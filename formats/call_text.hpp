// Texts that name things: NAME(ARGUMENTS) taken apart, patterns of names.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numemu {

/// "dynamic" has no arguments, "dynamic()" one empty one.
struct CallText {
  std::string name;
  std::vector<std::string> arguments;  ///< without the spaces around them
};

/// Splits at the outer parentheses and the commas between them; an argument may be a call. A text
/// that is neither NAME nor NAME(...) is a name as a whole, which is then unknown. Never throws.
CallText parse_call(std::string_view text);

/// The number that the whole text is; none where it is not a finite decimal number.
std::optional<double> number_argument(std::string_view text);
/// number_argument() for a whole number from `least` to `most`.
std::optional<std::int64_t> whole_argument(std::string_view text, std::int64_t least,
                                           std::int64_t most);

/// Whether a glob (* any run, ? one character) matches a whole name.
bool glob_match(std::string_view pattern, std::string_view name);

}  // namespace numemu
