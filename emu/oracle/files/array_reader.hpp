// Records of arrays, one for each field, as NpzWriter writes them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/storage/array.hpp"

namespace numemu::oracle {

/// The array of a field has n elements, or n x count, in the type of array_type_of(), or one that
/// checked_codes() takes. `class` and `numemu_vectors` are byte strings: uint8 with one axis more.
/// Without `c` the C of a unit is +0; without `flags` there are none.
class ArrayReader {
 public:
  /// `name` is what errors call the file. Throws Error where `numemu_vectors` is no header line.
  ArrayReader(std::string name, std::map<std::string, Array> arrays);

  /// The array `numemu_vectors`, else empty.
  const std::string& header() const { return header_; }
  /// The products of a record as the shape of `b` has them; 0 where there is none.
  std::int64_t depth() const;

  /// As TextReader::read(), the line being the number of the record, from 0. The first call throws
  /// Error naming the array whose shape, type or element is wrong, that is missing or unknown.
  bool read(const Layout&, std::int64_t most, Records&);
  bool has_optional() const { return arrays_.contains("flags"); }

 private:
  void check(const Layout&);
  void check_shape(const Field&, const Array&);
  void check_numbers(const Field&, const Array&) const;

  std::string name_, header_;
  std::map<std::string, Array> arrays_;
  std::string counted_;  ///< the array that decided n_
  std::int64_t n_ = -1, at_ = 0;
};

}  // namespace numemu::oracle
