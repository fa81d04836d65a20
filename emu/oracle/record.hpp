// A batch of records: for each field one array of codes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/layout.hpp"

namespace numemu::oracle {

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

}  // namespace numemu::oracle
