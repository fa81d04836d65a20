// An N:M pattern: N kept of every M elements along k, singly or in pairs; its name, masks and bits.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "emu/unit/description.hpp"

namespace numemu::unit {

/// The largest M.
inline constexpr int kMostGroup = 16;

/// A Sparsity, and whether its elements are kept and dropped two neighbours at a time.
struct Pattern : Sparsity {
  bool pairwise = false;
};

/// How the positions of kept elements are stored.
enum class MetaLayout : std::uint8_t {
  index,  ///< one uint8 per kept element: its index inside its group
  ptx,    ///< 4 bits per group, as mma.sp takes them (ptx.hpp)
};

/// One row of patterns.def.
struct PatternRow {
  std::string name;
  Pattern pattern;
  bool ptx;  ///< the ptx layout exists, too
  std::string source, doc;
};

/// Every row, in table order.
const std::vector<PatternRow>& named_patterns();

/// Reads "N:M" (N kept of every M) with 1 <= N <= M <= 16, or "N:M.pairwise" with both even. Throws
/// Error saying what was expected.
Pattern parse_pattern(std::string_view text);
/// The inverse.
std::string to_string(const Pattern&);
/// Throws Error unless 1 <= N <= M <= 16, both even where pairwise.
void require_pattern(const Pattern&);
/// Throws Error naming K and M unless the groups fill `depth` exactly.
void require_whole_groups(const Pattern&, std::int64_t depth);

/// Reads "index" or "ptx".
MetaLayout parse_meta_layout(std::string_view text);
std::string_view to_string(MetaLayout);
/// Whether the pattern can be stored so.
bool has_layout(const Pattern&, MetaLayout);

/// In how many ways a group can be kept: C(M, N), of pairs where pairwise.
std::int64_t count_masks(const Pattern&);
/// Bits of the index of a kept element (or pair) in its group: ceil(log2 M).
int index_bits(const Pattern&);
/// Stored metadata bits per kept element: index_bits() for each element or pair in `index` (files
/// hold them zero-extended to uint8, like codes), 4 bits per group in `ptx`.
double metadata_bits(const Pattern&, MetaLayout);
/// Stored bits per element of the dense operand: what is kept, and its metadata. `element_bits` is
/// the cost of a kept element, with its share of scales.
double effective_bits(const Pattern&, MetaLayout, double element_bits);

/// Kept elements of a row.
inline std::int64_t kept_depth(const Sparsity& s, std::int64_t depth) {
  return depth / s.group * s.kept;
}

// N and M as constants of the compiler for the patterns hardware has, so that their loops unroll.

template <int Kept, int Group>
struct FixedShape {
  static constexpr int kept = Kept, group = Group;
};

struct AnyShape {
  int kept, group;
};

/// Calls visit(shape), the shape's `kept` and `group` being those of the pattern.
template <class Visit>
auto with_shape(const Sparsity& s, const Visit& visit) {
  if (s.kept == 2 && s.group == 4) return visit(FixedShape<2, 4>{});
  if (s.kept == 1 && s.group == 2) return visit(FixedShape<1, 2>{});
  if (s.kept == 4 && s.group == 8) return visit(FixedShape<4, 8>{});
  return visit(AnyShape{s.kept, s.group});
}

}  // namespace numemu::unit
