// The canonical form of a JSON document (RFC 8785), whose digest identifies it.
#pragma once
#include <string>

#include "formats/storage/json.hpp"
#include "formats/storage/json_text.hpp"

namespace numemu::policies {

/// Keys sorted by UTF-16 code units, no white space, numbers as ECMAScript prints them. Throws
/// Error for NaN and infinities.
std::string canonical_json(const Json&);

using numemu::ecmascript_number;

/// Rounded to `digits` significant decimal digits, so that rows do not carry digits that nobody
/// measures.
double significant(double value, int digits);

}  // namespace numemu::policies
