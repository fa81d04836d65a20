// A unit description in words: sentences for people who verify units, one line for tables.
#pragma once
#include <string>
#include <vector>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// One entry per aspect that the unit has: operands, order of the products, the sum of a step,
/// where C enters, the register, subnormals, NaN and infinities, zeros, scales, sparsity, padding.
/// For descriptions that check_description() accepts.
std::vector<std::string> description_words(const UnitDescription&);

/// One line: "16 products and C aligned to the largest exponent, 13 bits kept (rtz), sum to e8m13
/// rtz; C chained".
std::string description_line(const UnitDescription&);

/// The arithmetic as a short code: "16+C F25 rtz->f32" (16 products and C aligned, 25 bits kept,
/// the sum written toward zero to float32), "K+C exact rne->f32", "fma rne->f16". docs/units.md
/// explains its words.
std::string description_code(const UnitDescription&);

/// The register's short name: "float32", "int32", "fixed24q12" (24 bits, 12 right of the point).
std::string register_name(const Register&);

/// "toward zero (rtz)"
std::string rounding_words(const Rounding&);
/// How the products of a step are added.
std::string sum_words(const UnitDescription&);
/// What C is and where it enters.
std::string c_words(const UnitDescription&);
/// The register: width, rounding, overflow, and D where it is wider.
std::string register_words(const UnitDescription&);

}  // namespace numemu::unit
