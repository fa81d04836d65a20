// The largest sum that a transposable mask keeps, by LEMON's network simplex.
#pragma once
#include <cstdint>

namespace numemu::testing {

/// The cost of a min-cost flow, negated: `kept` units from the source to each of `size` rows, at
/// most one from row i to column j, which earns costs[i size + j] >= 0, and `kept` from each column
/// to the sink. costs < 2^50. (Hubara et al., arXiv 2102.08124.)
std::int64_t most_by_flow(const std::int64_t* costs, int size, int kept);

}  // namespace numemu::testing
