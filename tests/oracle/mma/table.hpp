// The table a test prints: one line per file or instruction, records, matches, mismatches.
#pragma once
#include <cstdint>
#include <string>

#include "tests/oracle/mma/golden_batch.hpp"

namespace numemu::oracle::mma {

/// Lines of a table and what they add up to.
class Table {
 public:
  void add(const std::string& what, const std::string& unit, Way, const Tally&);
  /// A line without records that counts as a failure: what could not be compared, and why.
  void fail(const std::string& what, const std::string& why);
  /// A line that counts as nothing.
  void note(const std::string& text) { lines_ += text + "\n"; }

  std::int64_t records() const { return records_; }
  std::int64_t mismatches() const { return mismatches_; }
  std::int64_t failures() const { return failures_; }
  /// Writes heading and lines to standard output (Catch2 would fold them).
  void print() const;
  std::string totals() const;

 private:
  std::string lines_;
  std::int64_t rows_ = 0, records_ = 0, mismatches_ = 0, failures_ = 0;
};

}  // namespace numemu::oracle::mma
