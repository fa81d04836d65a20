// The fields of a record in their order, as every form of a vector file has them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/subject.hpp"

namespace numemu::oracle {

/// `count` codes of `bits` bits each; codes have 1 to 64 bits.
struct Field {
  std::string name;
  int bits = 0;
  std::int64_t count = 1;
  const Format* format = nullptr;  ///< nullptr: no number (flags, random bits, metadata) or two's
                                   ///< complement
  bool result = false;             ///< computed from the others
  bool optional = false;           ///< a file may do without it in all its records
  /// In text all codes are one word, element 0 in its lowest bits, instead of a word each.
  bool packed = false;

  /// Hexadecimal digits of one word.
  std::int64_t digits() const { return ((packed ? count * bits : bits) + 3) / 4; }
  std::int64_t words() const { return packed ? 1 : count; }
  bool operator==(const Field&) const = default;
};

using Layout = std::vector<Field>;

/// conversions: in [random] out flags; mul, add, fma: a b [c] [random] out flags; dots: a b c
/// [random] out flags; units: a b [sa sb] [e] c [r] d, and flags where the register is floating.
Layout layout_of(const Subject&);

/// Position of a field; -1 where there is none of that name.
int find_field(const Layout&, std::string_view name);

/// Random words of a record: of sr(n) one, of a unit's stochastic register one for each rounding.
std::int64_t random_words(const Subject&);

}  // namespace numemu::oracle
