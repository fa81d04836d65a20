// A codebook: a list of numbers whose indices are the codes, and where a real number lies among
// them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "formats/value.hpp"

namespace numemu {

/// Where a real number lies among the entries: at `down`, or at `down` plus (fraction + s) * 2^-64
/// of the gap to its neighbour on the side of the number's sign (zero counts as positive), s being
/// 0, or strictly between 0 and 1 if `sticky`.
struct CodebookPlace {
  bool outside = false;      ///< below the first entry or above the last; only `below` is set then
  bool below = false;        ///< below the first entry
  bool across_zero = false;  ///< the gap has an end on either side of zero
  std::int64_t down = 0;
  std::uint64_t fraction = 0;
  bool sticky = false;
};

class Codebook {
 public:
  static constexpr std::size_t kMostEntries = 65536;  ///< 16-bit codes

  /// 1 to kMostEntries finite entries in strictly ascending order; -0 is read as 0. Throws Error
  /// "ORIGIN: entry I ..." with what was expected.
  Codebook(const std::vector<double>& entries, const std::string& origin);

  /// The same entries.
  friend bool operator==(const Codebook&, const Codebook&);
  std::uint64_t size() const { return entries_.size(); }
  bool has_zero() const { return has_zero_; }
  /// The number of a code; NaN for bit patterns beyond the last entry, which are not codes.
  Value value(std::uint64_t code) const {
    return code < entries_.size() ? entries_[code] : Value{.kind = Class::nan};
  }
  /// `v` is zero or finite. Exact integer comparisons. A sticky value counts as just above its
  /// significand, so it is placed exactly among entries and midpoints that need no more bits than
  /// the significand has (63 or more for exact_quotient() of a value without sticky).
  CodebookPlace locate(const Value& v) const;

 private:
  std::vector<Value> entries_;
  bool has_zero_ = false;
};

/// The format of a codebook file: .npy, float64, one axis. Its name is "codebook(PATH)", its source
/// names the digest of the entries. Throws Error naming the file and the entry.
Format read_codebook_format(const std::string& path);

}  // namespace numemu
