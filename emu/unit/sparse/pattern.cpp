// Names of N:M patterns, and what follows from N and M alone.
#include "emu/unit/sparse/pattern.hpp"

#include <fmt/format.h>

#include <bit>

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::unit {
namespace {

constexpr std::string_view kPairwise = ".pairwise";

bool valid(const Pattern& p) {
  return 1 <= p.kept && p.kept <= p.group && p.group <= kMostGroup &&
         !(p.pairwise && (p.kept % 2 != 0 || p.group % 2 != 0));
}

/// A decimal number without sign or leading zeros, of at most two digits; -1 where it is none.
int parse_number(std::string_view text) {
  if (text.empty() || text.size() > 2 || text[0] == '0') return -1;
  int number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    number = number * 10 + (c - '0');
  }
  return number;
}

/// What is kept or dropped at a time.
int run(const Pattern& p) { return p.pairwise ? 2 : 1; }

}  // namespace

const std::vector<PatternRow>& named_patterns() {
  static const std::vector<PatternRow> rows = {
#define NUMEMU_PATTERN(name, kept, group, pairwise, ptx, source, doc) \
  {name, {{kept, group}, pairwise}, ptx, source, doc},
#include "emu/unit/sparse/patterns.def"
#undef NUMEMU_PATTERN
  };
  return rows;
}

Pattern parse_pattern(std::string_view text) {
  std::string_view numbers = text;
  Pattern pattern;
  if (numbers.ends_with(kPairwise)) {
    pattern.pairwise = true;
    numbers.remove_suffix(kPairwise.size());
  }
  const std::size_t colon = numbers.find(':');
  if (colon != std::string_view::npos) {
    pattern.kept = parse_number(numbers.substr(0, colon));
    pattern.group = parse_number(numbers.substr(colon + 1));
  }
  if (!valid(pattern))
    throw Error(
        fmt::format("pattern '{}': expected N:M, N kept of every M, with 1 <= N <= M <= {} "
                    "(2:4), or N:M{} with N and M even",
                    text, kMostGroup, kPairwise));
  return pattern;
}

std::string to_string(const Pattern& p) {
  return fmt::format("{}:{}{}", p.kept, p.group, p.pairwise ? kPairwise : "");
}

void require_pattern(const Pattern& p) {
  if (!valid(p))
    throw Error(fmt::format("pattern {}: expected N:M with 1 <= N <= M <= {}{}", to_string(p),
                            kMostGroup, p.pairwise ? ", both even" : ""));
}

void require_whole_groups(const Pattern& p, std::int64_t depth) {
  if (depth % p.group != 0)
    throw Error(fmt::format("{}: K = {} is not a multiple of the group, {} elements", to_string(p),
                            depth, p.group));
}

MetaLayout parse_meta_layout(std::string_view text) {
  for (const MetaLayout layout : {MetaLayout::index, MetaLayout::ptx})
    if (text == to_string(layout)) return layout;
  throw Error(unknown_name("metadata layout", text, {"index", "ptx"}));
}

std::string_view to_string(MetaLayout layout) {
  return layout == MetaLayout::index ? "index" : "ptx";
}

bool has_layout(const Pattern& p, MetaLayout layout) {
  if (layout == MetaLayout::index) return true;
  for (const PatternRow& row : named_patterns())
    if (row.pattern.kept == p.kept && row.pattern.group == p.group &&
        row.pattern.pairwise == p.pairwise)
      return row.ptx;
  return false;
}

std::int64_t count_masks(const Pattern& p) {
  require_pattern(p);
  const int n = p.kept / run(p), m = p.group / run(p);
  std::int64_t count = 1;  // C(m - n + i, i) after step i, so every division is exact
  for (int i = 1; i <= n; ++i) count = count * (m - n + i) / i;
  return count;
}

int index_bits(const Pattern& p) {
  require_pattern(p);
  return static_cast<int>(std::bit_width(static_cast<unsigned>(p.group / run(p) - 1)));
}

double metadata_bits(const Pattern& p, MetaLayout layout) {
  const int bits = index_bits(p);
  if (layout == MetaLayout::index) return static_cast<double>(bits) / run(p);
  if (!has_layout(p, layout))
    throw Error(
        fmt::format("{} has no ptx metadata: expected 1:2, 2:4 or 4:8.pairwise", to_string(p)));
  return 4.0 / p.kept;
}

double effective_bits(const Pattern& p, MetaLayout layout, double element_bits) {
  return (element_bits + metadata_bits(p, layout)) * p.kept / p.group;
}

}  // namespace numemu::unit
