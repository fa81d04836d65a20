#include "policies/mask/mask_count.hpp"

#include <algorithm>
#include <array>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emu/stats/laws.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::policies {

namespace {

using boost::multiprecision::cpp_int;
using unit::Pattern;

constexpr double kLog10Of2 = 0.301029995663981195, kLog2Of10 = 3.32192809488736235;

MaskCount count_of_masks(const cpp_int& exact) {
  const auto shift = std::max<std::int64_t>(0, static_cast<std::int64_t>(msb(exact)) - 63);
  const auto leading = static_cast<double>(static_cast<std::uint64_t>(cpp_int(exact >> shift)));
  return {exact.str(), portable::log10(leading) + static_cast<double>(shift) * kLog10Of2,
          portable::log2(leading) + static_cast<double>(shift)};
}

MaskCount power(const MaskCount& base, std::int64_t exponent) {
  MaskCount result;
  result.log10 = base.log10 * static_cast<double>(exponent);
  result.log2 = base.log2 * static_cast<double>(exponent);
  if (result.log10 < MaskCount::kMostDigits - 1)
    result.decimal = cpp_int(pow(cpp_int(base.decimal), static_cast<unsigned>(exponent))).str();
  return result;
}

cpp_int choose(std::int64_t n, std::int64_t k) {
  cpp_int result = 1;
  for (std::int64_t i = 1; i <= std::min(k, n - k); ++i) result = result * (n - i + 1) / i;
  return result;
}

/// How many columns still need how many ones: 5 bits for each need from 1 on, the first lowest.
/// Columns that need none are the rest.
class Needs {
 public:
  explicit Needs(std::uint64_t bits) : bits_(bits) {}
  static Needs all(int columns, int need) {
    return Needs(static_cast<std::uint64_t>(columns) << shift(need));
  }
  int columns(int need) const { return static_cast<int>(bits_ >> shift(need) & kMask); }
  Needs served(int need, int columns) const {
    const auto moved = static_cast<std::uint64_t>(columns);
    return Needs(bits_ - (moved << shift(need)) + (need > 1 ? moved << shift(need - 1) : 0));
  }
  std::uint64_t bits() const { return bits_; }

 private:
  static constexpr std::uint64_t kMask = 31;
  static int shift(int need) { return 5 * (need - 1); }
  std::uint64_t bits_;
};

/// At most half the rows: C(16, 8)^8 < 2^110.
__extension__ typedef unsigned __int128 Ways;
using Level = std::map<std::uint64_t, Ways>;

cpp_int exact(Ways ways) {
  return (cpp_int(static_cast<std::uint64_t>(ways >> 64)) << 64) | static_cast<std::uint64_t>(ways);
}

/// The matrices whose first rows have been chosen, by the needs of their columns.
class Rows {
 public:
  Rows(int m, int n) : n_(n), level_{{Needs::all(m, n).bits(), Ways{1}}} {
    for (int i = 0; i <= m; ++i) {
      for (int k = 0; k <= i; ++k) choose_[i][k] = static_cast<unsigned>(choose(i, k));
    }
  }
  void add_row() {
    Level next;
    for (const auto& [bits, ways] : level_) serve(next, Needs(bits), Needs(bits), n_, n_, ways);
    level_ = std::move(next);
  }
  const Level& level() const { return level_; }

 private:
  /// Gives `left` ones to columns that need `need` or fewer, in every way.
  void serve(Level& next, Needs before, Needs after, int need, int left, Ways ways) {
    if (left == 0) {
      next[after.bits()] += ways;
      return;
    }
    if (need == 0) return;
    const int columns = before.columns(need);
    for (int j = 0; j <= std::min(columns, left); ++j)
      serve(next, before, after.served(need, j), need - 1, left - j, ways * choose_[columns][j]);
  }

  int n_;
  unsigned choose_[unit::kMostGroup + 1][unit::kMostGroup + 1] = {};
  Level level_;
};

/// The two halves of the rows meet where what one leaves is what the other fills: of a multiset of
/// needs each assignment to columns is equally often met, so R = sum over the multisets of
/// f(needs) f(those filled) / assignments.
cpp_int count_transposable(int m, int n) {
  n = std::min(n, m - n);  // what is pruned is transposable, too
  if (n == 0) return 1;
  Rows rows(m, n);
  for (int row = 0; row < m / 2; ++row) rows.add_row();
  const Level upper = rows.level();
  if (m % 2 != 0) rows.add_row();
  const Level& lower = rows.level();
  cpp_int total = 0;
  for (const auto& [bits, ways] : upper) {
    const Needs needs(bits);
    std::uint64_t filled = 0;
    int satisfied = m;
    cpp_int assignments = factorial<cpp_int>(m);
    for (int need = 1; need <= n; ++need) {
      const int columns = needs.columns(need);
      satisfied -= columns;
      assignments /= factorial<cpp_int>(columns);
      if (need < n) filled += Needs::all(columns, n - need).bits();
    }
    assignments /= factorial<cpp_int>(satisfied);
    filled += Needs::all(satisfied, n).bits();
    const auto other = lower.find(filled);
    if (other != lower.end()) total += exact(ways) * exact(other->second) / assignments;
  }
  return total;
}

void require_singles(const Pattern& p) {
  unit::require_pattern(p);
  if (p.pairwise)
    throw Error("mask diversity: expected a pattern of single elements, not " + to_string(p));
}

std::int64_t kept_of(const Pattern& p, std::int64_t elements) {
  if (elements < 0 || elements % p.group != 0) {
    throw Error("mask diversity: expected a multiple of " + std::to_string(p.group) +
                " elements for " + to_string(p) + ", found " + std::to_string(elements));
  }
  return elements / p.group * p.kept;
}

}  // namespace

std::string_view to_string(MaskFamily family) {
  switch (family) {
    case MaskFamily::unstructured:
      return "unstructured";
    case MaskFamily::group:
      return "group";
    case MaskFamily::transposable:
      return "transposable";
    case MaskFamily::transposable_bound:
      return "transposable upper bound";
    case MaskFamily::sequential:
      break;
  }
  return "sequential";
}

MaskCount unstructured_count(std::int64_t elements, std::int64_t kept) {
  if (kept < 0 || kept > elements) {
    throw Error("mask diversity: expected 0 to " + std::to_string(elements) +
                " kept elements, found " + std::to_string(kept));
  }
  constexpr std::int64_t kExact = 6000;  // C(6000, 3000) has 1805 digits
  if (elements <= kExact) return count_of_masks(choose(elements, kept));
  const auto lgamma = [](std::int64_t n) { return stats::log_gamma(static_cast<double>(n + 1)); };
  constexpr double kLog10OfE = 0.434294481903251828;
  const double log10 = (lgamma(elements) - lgamma(kept) - lgamma(elements - kept)) * kLog10OfE;
  return {"", log10, log10 * kLog2Of10};
}

MaskCount group_count(const Pattern& p) {
  unit::require_pattern(p);
  return count_of_masks(unit::count_masks(p));
}

MaskCount transposable_count(const Pattern& p) {
  require_singles(p);
  return count_of_masks(count_transposable(p.group, p.kept));
}

MaskCount transposable_bound(const Pattern& p) {
  require_singles(p);
  cpp_int product = 1;
  for (int i = 0; i < p.kept; ++i) product *= factorial<cpp_int>(p.group - i);
  return count_of_masks(product);
}

MaskCount sequential_count(const Pattern& p) {
  require_singles(p);
  return count_of_masks(p.kept == p.group ? 1 : p.kept + 1);
}

std::int64_t piece_size(MaskFamily family, const Pattern& p) {
  switch (family) {
    case MaskFamily::unstructured:
      return 1;
    case MaskFamily::group:
    case MaskFamily::sequential:
      return p.group;
    case MaskFamily::transposable:
    case MaskFamily::transposable_bound:
      break;
  }
  return std::int64_t{p.group} * p.group;
}

MaskCount piece_count(MaskFamily family, const Pattern& p) {
  switch (family) {
    case MaskFamily::unstructured:
      break;
    case MaskFamily::group:
      return group_count(p);
    case MaskFamily::transposable:
      return transposable_count(p);
    case MaskFamily::transposable_bound:
      return transposable_bound(p);
    case MaskFamily::sequential:
      return sequential_count(p);
  }
  throw Error("mask diversity: an unstructured mask has no pieces");
}

MaskCount mask_diversity(MaskFamily family, const Pattern& p, std::int64_t elements) {
  unit::require_pattern(p);
  if (family == MaskFamily::unstructured) return unstructured_count(elements, kept_of(p, elements));
  const std::int64_t piece = piece_size(family, p);
  if (elements < 0 || elements % piece != 0) {
    throw Error("mask diversity: expected a multiple of " + std::to_string(piece) +
                " elements, found " + std::to_string(elements));
  }
  return power(piece_count(family, p), elements / piece);
}

double log10_per_block(MaskFamily family, const Pattern& p) {
  if (family == MaskFamily::unstructured) return mask_diversity(family, p, kReferenceBlock).log10;
  return piece_count(family, p).log10 * static_cast<double>(kReferenceBlock) /
         static_cast<double>(piece_size(family, p));
}

}  // namespace numemu::policies
