// Records in memory held against what they must be.
#include <omp.h>

#include <algorithm>
#include <vector>

#include "api/oracle.hpp"
#include "emu/oracle/evaluate.hpp"

namespace numemu::api {

Verified verify_records(const oracle::Subject& subject, const oracle::Records& records,
                        const Equality& equality, bool flags, bool explained) {
  constexpr std::int64_t kCodes = std::int64_t{1} << 16, kRecords = 8192;
  const oracle::Layout layout = oracle::layout_of(subject);
  oracle::require_codes(layout, records, true);
  std::int64_t codes = 0;
  for (const oracle::Field& field : layout) codes += field.count;
  const std::int64_t most = std::clamp<std::int64_t>(kCodes / codes, 1, kRecords);
  oracle::Compared compared;
  compared.tolerance = equality.tolerance;
  compared.most_mismatches = equality.most_mismatches;
  compared.flags = flags && oracle::find_field(layout, "flags") >= 0;
  compared.place = "record";
  Verified verified{oracle::Verifier(subject, compared), compared.name, nullptr, nullptr};
  verified.place = "record";
  std::int64_t first = 0;
  while (verified.complete && first < records.size) {
    std::vector<oracle::Records> batches;
    while (std::ssize(batches) < omp_get_max_threads() && first < records.size) {
      const std::int64_t n = std::min(most, records.size - first);
      oracle::Records& batch = batches.emplace_back(oracle::slice(layout, records, first, n));
      batch.classes = records.classes;
      std::copy_n(records.class_of.begin() + first, n, batch.class_of.begin());
      for (std::int64_t i = 0; i < n; ++i) batch.line[static_cast<std::size_t>(i)] = first + i;
      first += n;
    }
    verified.complete = verified.verifier.check(batches);
  }
  if (explained) verified.explanation = oracle::explain(verified.verifier);
  return verified;
}

}  // namespace numemu::api
