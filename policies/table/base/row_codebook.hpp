// Codebooks for the rows of a table: one for each row, or one for each cluster of rows (Guan et
// al., "Post-training 4-bit quantization on embedding tables", 2019).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace numemu::policies {

inline constexpr std::int64_t kLloydIterations = 100;

/// The 2^bits entries that Lloyd's iteration finds for the finite elements, ascending, each rounded
/// to float16 (saturated) at the end. It begins at equal steps from the least element to the
/// largest; an entry that serves no element stays. It ends where no element changes its entry, or
/// after `iterations`. Sums are in float64 over the sorted elements.
std::vector<float> lloyd_codebook(std::span<const float> elements, int bits,
                                  std::int64_t iterations = kLloydIterations);
/// The nearest entry, the lower one on ties; the largest for NaN.
float nearest_entry(std::span<const float> ascending, float x);

/// The cluster of each of the `rows` x `width` elements' rows: Lloyd's iteration on whole rows in
/// squared distance. The first centres are rows at equal steps in the order of their norms; a
/// centre without rows stays. Deterministic; ties go to the first centre.
std::vector<std::int64_t> cluster_rows(std::span<const float> table, std::int64_t width,
                                       std::int64_t clusters,
                                       std::int64_t iterations = kLloydIterations);

}  // namespace numemu::policies
