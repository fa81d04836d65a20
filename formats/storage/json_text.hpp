// Text to Json, refusing what nlohmann/json accepts in silence: a key twice in one object, deep
// nesting, and a zero byte, which it takes for the end of the text; numbers as text.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu {

/// Most levels of nesting in any file but safetensors headers.
inline constexpr int kDeepestJson = 64;

/// The text is no JSON, or has a number beyond the range of float64.
class JsonSyntaxError : public Error {
 public:
  JsonSyntaxError(const std::string& text, std::size_t at, bool number)
      : Error(text), byte(at), out_of_range(number) {}

  std::size_t byte;  ///< read so far; 0 where none was
  bool out_of_range;
};

/// Throws JsonSyntaxError, or Error "WHERE: ..." at a key that is repeated in one object, at more
/// than `deepest` levels of nesting and at a zero byte: at the first mistake in the text.
Json parse_guarded(std::string_view text, const std::string& where, int deepest = kDeepestJson);

/// A float64 as ECMAScript's Number::toString prints it ("0.1", "1e+21", "5e-7").
std::string ecmascript_number(double);

}  // namespace numemu
