// The canonical form of a JSON document (RFC 8785), whose digest identifies it.
#pragma once
#include <string>

#include "formats/storage/json.hpp"

namespace numemu::policies {

/// Keys sorted by UTF-16 code units, no white space, numbers as ECMAScript prints them. Throws
/// Error for NaN and infinities.
std::string canonical_json(const Json&);

/// A float64 as ECMAScript's Number::toString prints it ("0.1", "1e+21", "5e-7").
std::string ecmascript_number(double);

/// Rounded to `digits` significant decimal digits, so that rows do not carry digits that nobody
/// measures.
double significant(double value, int digits);

}  // namespace numemu::policies
