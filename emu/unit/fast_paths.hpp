// The list of fast paths; the first that covers a product computes it.
#pragma once
#include <span>
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// A way to compute products faster than the reference, of dense units.
struct FastPath {
  std::string_view name;
  /// Keys (description/fields.hpp) of the fields it understands: it computes what they state or
  /// declines. Every other field, but name, a and b, must have its default value.
  std::span<const std::string_view> fields;
  /// Computes the product as the reference would, bit for bit, or returns false with nothing
  /// written. For descriptions whose other fields have their default values, and products that have
  /// been checked.
  bool (*multiply)(const UnitDescription&, const Gemm&);
};

/// Most specific first.
std::span<const FastPath> fast_paths();

/// Computes the product as the reference would, bit for bit, or returns false with nothing written
/// because no fast path covers it. The product has been checked.
bool multiply_fast(const UnitDescription&, const Gemm&);
/// The same where changed_field_set() of the description is known.
bool multiply_fast(const UnitDescription&, const FieldSet& changed, const Gemm&);

/// multiply_fast() for dense units of one level: the path that computed the product, or nullptr.
const FastPath* multiply_by_path(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
