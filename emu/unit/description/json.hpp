// Unit descriptions as JSON: the form in which users describe units (docs/describe-a-unit.md).
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "emu/unit/description.hpp"
#include "formats/error.hpp"

namespace numemu::unit {

/// All that is wrong with a description, one line each; what() is the first.
class DescriptionErrors : public Error {
 public:
  explicit DescriptionErrors(std::vector<std::string> lines)
      : Error(lines.front()), lines_(std::move(lines)) {}
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

/// Reads and checks the description in a JSON file. A table of products is a .npy file beside it.
/// Throws DescriptionErrors whose lines name the file and the key; unknown keys come with the path
/// of the nearest, unknown names with the nearest.
UnitDescription read_description(const std::string& path);
/// A description from text; `where` names the file in an Error, and `folder` is what the name of a
/// table is relative to (empty: the current one).
UnitDescription parse_description(const std::string& text, const std::string& where,
                                  const std::string& folder = "");

/// The canonical form: `numemu_unit`, `core`, `k`, `group` and every field that is not at its
/// default, in a fixed order; parse_description() gives the same description back. `products_file`
/// is written for the table of core table. Throws Error if the description contradicts itself.
std::string description_json(const UnitDescription&,
                             const std::string& products_file = "products.npy");
/// A valid description of that core in the same form, every key that applies to it written out: to
/// be changed by hand. Core table names a file products.npy, which must be made.
std::string description_template(CoreKind);
/// The JSON Schema (draft 2020-12) of the form: keys, types, legal names, defaults. What fields
/// demand of each other only check_description() knows.
std::string description_schema();
/// Writes the canonical form to a file and, with core table, the products beside it: x.json comes
/// with x.products.npy.
void write_description(const UnitDescription&, const std::string& path);

}  // namespace numemu::unit
