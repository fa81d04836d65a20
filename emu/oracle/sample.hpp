// Records that the verifier keeps, with what rules may look at besides.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "emu/oracle/layout.hpp"
#include "emu/oracle/record.hpp"

namespace numemu::oracle {

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
