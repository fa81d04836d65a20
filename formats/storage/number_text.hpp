// Numbers as text, exactly: hexadecimal floats out, hexadecimal or decimal numbers in.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/value.hpp"

namespace numemu {

/// The number that a line of text means: "0x1.8p-3", "-0.1", "1e-30", "7", "inf", "infinity", "nan"
/// with an optional sign (the syntax of C's strtod, without octal, payloads, or hexadecimal without
/// an exponent: that may be a code). Exact: a number
/// with more than 64 significant bits gets a sticky bit, so that rounding it rounds the number as
/// written. Throws Error "expected a number, found 'TEXT'" (at most 1,100 characters and exponents
/// within +-20,000 are read).
Value parse_number(std::string_view text);

/// The code that a line of text means: hexadecimal digits, after "0x" if `prefixed`. Throws Error
/// "expected a code in hexadecimal with 0x, found 'TEXT'".
std::uint64_t parse_code(std::string_view text, bool prefixed);

/// "0x1.8p-3", "-0x0p+0", "inf", "nan" ("-nan"): what C's %a prints for normal numbers, for any
/// value without a sticky bit.
std::string hex_text(const Value&);

/// About the same number with nine decimal digits, to be read beside hex_text(): "0.1", "-256",
/// "1.17549435e-38". Beyond float64: "inf", "0".
std::string decimal_text(const Value&);

}  // namespace numemu
