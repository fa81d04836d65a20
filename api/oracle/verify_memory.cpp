// Records in memory held against what they must be.
#include <algorithm>
#include <numeric>

#include "api/oracle.hpp"
#include "emu/oracle/evaluate.hpp"

namespace numemu::api {

Verified verify_records(const oracle::Subject& subject, const oracle::Records& records,
                        const Equality& equality, bool flags, bool explained) {
  const oracle::Layout layout = oracle::layout_of(subject);
  oracle::require_codes(layout, records, true);
  oracle::Compared compared;
  compared.tolerance = equality.tolerance;
  compared.most_mismatches = equality.most_mismatches;
  compared.flags = flags && oracle::find_field(layout, "flags") >= 0;
  compared.place = "record";
  Verified verified{oracle::Judge(subject, compared), compared.name, nullptr, nullptr};
  verified.place = "record";
  std::int64_t first = 0;
  verified.complete = verified.judge.judge([&](std::int64_t most, oracle::Records& batch) {
    const std::int64_t n = std::min(most, records.size - first);
    batch = oracle::slice(layout, records, first, n);
    batch.classes = records.classes;
    std::copy_n(records.class_of.begin() + first, n, batch.class_of.begin());
    std::iota(batch.line.begin(), batch.line.end(), first);
    first += n;
    return n != 0;
  });
  if (explained) verified.explanation = oracle::explain(verified.judge);
  return verified;
}

}  // namespace numemu::api
