// Unit descriptions as JSON: the form in which users describe units (docs/describe-a-unit.md).
#pragma once
#include <string>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// Reads and checks the description in a JSON file. A table of products is a .npy file beside it.
/// Throws Error naming the file and the key; unknown keys and names come with the nearest known
/// one.
UnitDescription read_description(const std::string& path);
/// The same from text; `where` names the file in an Error, and `folder` is what the name of a
/// table is relative to (empty: the current one).
UnitDescription parse_description(const std::string& text, const std::string& where,
                                  const std::string& folder = "");

/// The canonical form: `numemu_unit`, `core`, `k`, `group` and every field that is not at its
/// default, in a fixed order; parse_description() gives the same description back. `products_file`
/// is written for the table of core table. Throws Error if the description contradicts itself.
std::string description_json(const UnitDescription&,
                             const std::string& products_file = "products.npy");
/// Writes the canonical form to a file and, with core table, the products beside it: x.json comes
/// with x.products.npy.
void write_description(const UnitDescription&, const std::string& path);

}  // namespace numemu::unit
