// The sentences about a unit's sums and its register: parts of description_words().
#pragma once
#include <string>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// "toward zero (rtz)"
std::string rounding_words(const Rounding&);
/// How the products of a step are added.
std::string sum_words(const UnitDescription&);
/// What C is and where it enters.
std::string c_words(const UnitDescription&);
/// The register: width, rounding, overflow, and D where it is wider.
std::string register_words(const UnitDescription&);

}  // namespace numemu::unit
