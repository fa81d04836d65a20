// Mask rule unstructured: a share of a whole tensor's elements, its largest magnitudes. The
// magnitude of the last rank that is kept is found digit by digit.
#include "policies/mask/rules/unstructured.hpp"

#include <array>
#include <cmath>

#include "formats/portable/pairwise.hpp"
#include "policies/mask/kept_bits.hpp"

namespace numemu::policies {
namespace {

/// Counts elements whose magnitude agrees with `found` above the digit at `shift`, by that digit.
template <int kBits>
std::array<std::int64_t, 1 << kBits> count_digits(const float* x, std::int64_t n, int shift,
                                                  std::uint32_t found) {
  constexpr std::int64_t kTables = 4;  // neighbours are often alike: they need not wait in line
  std::array<std::array<std::int64_t, 1 << kBits>, kTables> counts{};
  const int above = shift + kBits;
  const auto count = [&](std::int64_t i, std::int64_t table) {
    const std::uint32_t bits = magnitude_bits(x[i]);
    if (above > 30 || bits >> above == found >> above)
      ++counts[static_cast<std::size_t>(table)][bits >> shift & ((1U << kBits) - 1)];
  };
  std::int64_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    for (std::int64_t table = 0; table < kTables; ++table) count(i + table, table);
  }
  for (; i < n; ++i) count(i, 0);
  for (std::size_t digit = 0; digit < counts[0].size(); ++digit)
    counts[0][digit] += counts[1][digit] + counts[2][digit] + counts[3][digit];
  return counts[0];
}

/// The digit that holds the element of rank `kept`; takes from `kept` what larger digits hold.
template <int kBits>
std::uint32_t find_digit(const float* x, std::int64_t n, int shift, std::uint32_t found,
                         std::int64_t& kept) {
  const auto counts = count_digits<kBits>(x, n, shift, found);
  auto digit = static_cast<std::uint32_t>(counts.size() - 1);
  for (; counts[digit] < kept; --digit) kept -= counts[digit];
  return found | digit << shift;
}

}  // namespace

std::int64_t kept_of(double share, std::int64_t n) {
  return static_cast<std::int64_t>(std::floor(share * static_cast<double>(n) + 0.5));
}

Cut find_cut(const float* x, std::int64_t n, std::int64_t kept) {
  if (kept == 0) return {};
  std::int64_t ties = kept;  // in the end: elements kept among those equal to the smallest kept
  Cut cut;
  cut.magnitude = find_digit<11>(x, n, 20, 0, ties);
  cut.magnitude = find_digit<10>(x, n, 10, cut.magnitude, ties);
  cut.magnitude = find_digit<10>(x, n, 0, cut.magnitude, ties);
  for (; ties > 0; ++cut.end) ties -= magnitude_bits(x[cut.end]) == cut.magnitude ? 1 : 0;
  return cut;
}

void keep_share(double share, const MaskRun& run) {
  const Cut cut = find_cut(run.x, run.count, kept_of(share, run.count));
  // Signed comparisons, because every instruction set has them.
  const auto write = [&](std::int64_t first, std::int64_t end, std::int32_t above) {
    const auto keeps = [&](std::int64_t i) -> std::uint32_t {
      return static_cast<std::int32_t>(magnitude_bits(run.x[i])) > above ? 1 : 0;
    };
    // keep first: y may be x.
    if (run.keep != nullptr) {
#pragma omp simd
      for (std::int64_t i = first; i < end; ++i) run.keep[i] = static_cast<std::uint8_t>(keeps(i));
    }
    if (run.y != nullptr) {
#pragma omp simd
      for (std::int64_t i = first; i < end; ++i) run.y[i] = kept_or_zero(run.x[i], keeps(i));
    }
  };
  const auto magnitude = static_cast<std::int32_t>(cut.magnitude);
  write(0, cut.end, magnitude - 1);
  write(cut.end, run.count, magnitude);
}

extern const MaskRule mask_unstructured{
    .name = "unstructured",
    .summary = "keeps this share of a tensor's elements, its largest magnitudes",
    .source = "magnitude pruning",
    .span = MaskSpan::tensor,
    .random = false,
    .unbiased = false,
    .options = {"refresh"},
    .prune = [](const MaskPolicy& policy, const RandomSource&,
                const MaskRun& run) { keep_share(policy.share, run); },
    .error =
        [](const MaskPolicy& policy, const float* x, std::int64_t n, double) {
          const Cut cut = find_cut(x, n, kept_of(policy.share, n));
          return pairwise_sum(n, [&](std::int64_t i) {
            return cut.keeps(magnitude_bits(x[i]), i) ? 0.0 : double{x[i]} * x[i];
          });
        }};

}  // namespace numemu::policies
