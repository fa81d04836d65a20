// A batch of records: for each field one array of codes.
#pragma once
#include <cstdint>
#include <span>
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

/// one operand: in [random] out flags; two: a b [c] [random] out flags; dots: a b c [random] out
/// flags; units: a b [sa sb] [e] c [r] d, and flags where the register is floating; with codes of
/// sums: a b [e] c bias factor zero_point d, of fixed point multiplier shift in place of factor.
Layout layout_of(const Subject&);

/// Position of a field; -1 where there is none of that name.
int find_field(const Layout&, std::string_view name);

/// Random words of a record: of sr(n) one, of a unit's stochastic register one for each rounding.
std::int64_t random_words(const Subject&);

/// Element e of field f of record i is columns[f][i * count(f) + e].
struct Records {
  std::int64_t size = 0;
  std::vector<std::vector<std::uint64_t>> columns;
  /// As columns, but empty where every digit of the field was one: the bits of X and Z digits,
  /// whose places in the code are 0.
  std::vector<std::vector<std::uint64_t>> unknown;
  /// The class of record i is classes[class_of[i]]; "" is none.
  std::vector<std::uint8_t> class_of;
  std::vector<std::string> classes = {""};
  /// Of a file: the number of the record's line, from 1.
  std::vector<std::int64_t> line;

  Records() = default;
  /// `n` records of zeros.
  Records(const Layout&, std::int64_t n);
  /// Makes room for `n` records of zeros, keeping the classes.
  void reset(const Layout&, std::int64_t n);
  /// Keeps the first `n` of the records there are, or adds records of zeros.
  void resize(const Layout&, std::int64_t n);

  std::uint64_t code(int field, std::int64_t i) const {
    return columns[static_cast<std::size_t>(field)][static_cast<std::size_t>(i)];
  }
  /// Whether a digit of record i is X or Z in the field.
  bool has_unknown(const Layout&, int field, std::int64_t i) const;
  std::string_view class_name(std::int64_t i) const { return classes[class_of[i]]; }
  /// The number of that class, which is added where it is new. After 255 names "other" is all that
  /// is added.
  std::uint8_t class_number(std::string_view name);
};

/// Records as they were given, beside the results that they must have.
struct Sample {
  Records records;
  Records before;   ///< the record before each of them; of the first, itself
  Records earlier;  ///< the record before that; of the first two, the first
  std::vector<std::uint64_t> want, want_flags;
  std::vector<std::int64_t> number;  ///< of the record in the file, from 0
  std::int64_t size() const { return records.size; }
};

/// Appends record i of another batch of the same layout.
void append_record(const Layout&, const Records& from, std::int64_t i, Records& to);
/// Records [first, first + n), without their lines and classes.
Records slice(const Layout&, const Records&, std::int64_t first, std::int64_t n);
/// Appends record i of another sample.
void append_record(const Layout&, const Sample& from, std::int64_t i, Sample& to);
/// At most `most` of the records, from all over the sample.
Sample spread(const Layout&, const Sample&, std::int64_t most);

}  // namespace numemu::oracle
