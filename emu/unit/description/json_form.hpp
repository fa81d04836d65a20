// What reading, writing and describing the JSON form share: its keys.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "emu/unit/description.hpp"
#include "emu/unit/description/fields.hpp"

namespace numemu::unit {

inline constexpr int kVersion = 1;
inline constexpr const char* kVersionKey = "numemu_unit";
inline constexpr const char* kProductsKey = "products";
inline constexpr std::string_view kFractionKey = "alignment.fraction_bits";

/// "accumulator" and "bits"; "" and "core".
inline std::pair<std::string, std::string> object_and_member(std::string_view key) {
  const std::size_t point = key.find('.');
  if (point == key.npos) return {"", std::string(key)};
  return {std::string(key.substr(0, point)), std::string(key.substr(point + 1))};
}

/// The code of NaN where none is given: the quiet one of D, 0 where there is none.
inline std::uint64_t usual_nan(const UnitDescription& u) {
  const Format* d = result_format(u);
  return d != nullptr && d->has_nan() ? d->nan_code() : 0;
}

}  // namespace numemu::unit
