#include "policies/mask/mask_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "policies/mask/kept_bits.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kStrip = 4096;  // elements handed to a rule at once: x and y in a L1 cache

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// How a layout is cut. Each decision has `deep` rows of `wide` elements.
struct LayoutCut {
  bool lines = false;  ///< decisions lie one after the other along contiguous lines
  std::int64_t deep = 1, wide = 1;
  std::int64_t line_count = 0, line_length = 0;  ///< of lines
  const char* axis = "";
  std::int64_t tail_wide = 0, tail_deep = 0;  ///< elements left over along each axis

  LayoutCut(const MaskPolicy& policy, const MaskLayout& layout) {
    const std::int64_t m = policy.pattern.group;
    const bool tiles = policy.rule->span == MaskSpan::tile && policy.layout == TileLayout::tile;
    lines = !tiles && (!layout.along_rows || policy.rule->span == MaskSpan::tile);
    if (lines) {
      const bool channel = policy.rule->span == MaskSpan::tile;
      wide = channel ? m * m : m;
      line_length = channel ? layout.inner * layout.width : layout.width;
      line_count = line_length == 0 ? 0 : layout.size() / line_length;
      axis = channel ? "an output channel" : "the channels";
      tail_wide = line_length % wide;
    } else if (tiles) {
      deep = wide = m;
      axis = "the channels";
      tail_wide = layout.width % m;
      tail_deep = layout.rows % m;
    } else {
      wide = m;
      axis = "the rows";
      tail_wide = layout.rows % m;
    }
  }
};

/// Decisions that lie in strides: element (r, c) of decision d is at base + d * next + r * down +
/// c * across. Elements beyond `rows` or beyond `extent - d * advance` do not exist.
struct Strip {
  std::int64_t base = 0, decisions = 0, next = 0, down = 0, across = 0;
  std::int64_t rows = 1, extent = 0, advance = 0;
  std::uint64_t first = 0;
};

struct Arrays {
  const float* x;
  float* y;
  std::uint8_t* keep;
};

template <class Visit>
void for_each_place(const LayoutCut& cut, const Strip& s, const Visit& visit) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t c = 0; c < cut.wide; ++c) {
      const std::int64_t place = r * cut.wide + c, from = s.base + r * s.down + c * s.across;
      for (std::int64_t d = 0; d < s.decisions; ++d) {
        if (c < s.extent - d * s.advance) visit(d * cut.deep * cut.wide + place, from + d * s.next);
      }
    }
  }
}

/// Gathers a strip, calls `body` on it, and scatters the results.
template <class Body>
void run_strip(const LayoutCut& cut, const Strip& s, const Arrays& arrays, bool reads_keep,
               const Body& body) {
  thread_local std::vector<float> x, y;
  thread_local std::vector<std::uint8_t> keep;
  const auto size = static_cast<std::size_t>(s.decisions * cut.deep * cut.wide);
  x.assign(size, 0.0f);
  y.resize(size);
  keep.assign(size, 0);
  for_each_place(cut, s, [&](std::int64_t at, std::int64_t from) { x[at] = arrays.x[from]; });
  if (reads_keep)
    for_each_place(cut, s,
                   [&](std::int64_t at, std::int64_t from) { keep[at] = arrays.keep[from]; });
  body(MaskRun{
      .x = x.data(), .y = y.data(), .keep = keep.data(), .count = s.decisions, .first = s.first});
  if (arrays.y != nullptr)
    for_each_place(cut, s, [&](std::int64_t at, std::int64_t from) { arrays.y[from] = y[at]; });
  if (arrays.keep != nullptr && !reads_keep)
    for_each_place(cut, s,
                   [&](std::int64_t at, std::int64_t from) { arrays.keep[from] = keep[at]; });
}

/// Lines with a tail: `padded` elements of each are decided, zeros beyond its own `length`.
template <class Body>
void run_lines(std::int64_t lines, std::int64_t length, std::int64_t padded, std::int64_t decision,
               std::uint64_t first, const Arrays& arrays, bool reads_keep, const Body& body) {
  thread_local std::vector<float> x, y;
  thread_local std::vector<std::uint8_t> keep;
  const std::int64_t own = std::min(length, padded);
  x.assign(static_cast<std::size_t>(lines * padded), 0.0f);
  y.resize(x.size());
  keep.assign(x.size(), 0);
  const auto copy = [&](const auto* from, std::int64_t from_line, auto* to, std::int64_t to_line) {
    for (std::int64_t line = 0; line < lines; ++line)
      std::copy_n(from + line * from_line, own, to + line * to_line);
  };
  copy(arrays.x, length, x.data(), padded);
  if (reads_keep) copy(arrays.keep, length, keep.data(), padded);
  body(MaskRun{.x = x.data(),
               .y = y.data(),
               .keep = keep.data(),
               .count = lines * padded / decision,
               .first = first});
  if (arrays.y != nullptr) copy(y.data(), padded, arrays.y, length);
  if (arrays.keep != nullptr && !reads_keep) copy(keep.data(), padded, arrays.keep, length);
}

/// Groups along rows, whole ones: `groups` of M rows of `across` elements each, turned so that each
/// column's M elements are neighbours. `wants_keep`: the body writes or reads them.
template <int M, class Body>
void run_turned(std::int64_t m, std::int64_t groups, std::int64_t across, std::uint64_t first,
                const Arrays& arrays, bool reads_keep, bool wants_keep, const Body& body) {
  thread_local std::vector<float> x, y;
  thread_local std::vector<std::uint8_t> keep;
  const std::int64_t group = M != 0 ? M : m, size = groups * across * group;
  x.resize(static_cast<std::size_t>(size));
  y.resize(static_cast<std::size_t>(size));
  keep.resize(static_cast<std::size_t>(wants_keep ? size : 0));
  const auto turn = [&](const auto* from, auto* to) {
    for (std::int64_t g = 0; g < groups; ++g, from += group * across, to += group * across) {
      for (std::int64_t d = 0; d < across; ++d)
        for (std::int64_t c = 0; c < group; ++c) to[d * group + c] = from[c * across + d];
    }
  };
  const auto turn_back = [&](const auto* from, auto* to) {
    for (std::int64_t g = 0; g < groups; ++g, from += group * across, to += group * across) {
      for (std::int64_t c = 0; c < group; ++c)
        for (std::int64_t d = 0; d < across; ++d) to[c * across + d] = from[d * group + c];
    }
  };
  turn(arrays.x, x.data());
  if (reads_keep) turn(arrays.keep, keep.data());
  body(MaskRun{.x = x.data(),
               .y = y.data(),
               .keep = wants_keep ? keep.data() : nullptr,
               .count = groups * across,
               .first = first});
  if (arrays.y != nullptr) turn_back(y.data(), arrays.y);
  if (arrays.keep != nullptr && !reads_keep) turn_back(keep.data(), arrays.keep);
}

/// Every decision of a layout, in runs that body() gets, each once.
template <class Body>
void for_each_run(const MaskPolicy& policy, const MaskLayout& layout, std::uint64_t first,
                  const Arrays& arrays, bool reads_keep, const Body& body) {
  require_layout(policy, layout);
  if (layout.size() == 0) return;
  const LayoutCut cut(policy, layout);
  const bool tail = cut.tail_wide != 0 || cut.tail_deep != 0;
  if (tail && policy.remainder == Remainder::dense) {
    if (arrays.y != nullptr) std::copy_n(arrays.x, layout.size(), arrays.y);
    if (arrays.keep != nullptr && !reads_keep)
      std::fill_n(arrays.keep, layout.size(), std::uint8_t{1});
  }
  const auto pieces = [&](std::int64_t length, std::int64_t by) {
    return policy.remainder == Remainder::pad ? ceil_div(length, by) : length / by;
  };
  const std::int64_t each = cut.deep * cut.wide;
  if (cut.lines && !tail) {
    const std::int64_t total = layout.size() / each,
                       at_once = std::max<std::int64_t>(1, kStrip / each);
    net::for_each_row(ceil_div(total, at_once), kStrip, [&](std::int64_t task) {
      const std::int64_t begin = task * at_once, from = begin * each;
      body(MaskRun{.x = arrays.x + from,
                   .y = arrays.y == nullptr ? nullptr : arrays.y + from,
                   .keep = arrays.keep == nullptr ? nullptr : arrays.keep + from,
                   .count = std::min(at_once, total - begin),
                   .first = first + static_cast<std::uint64_t>(begin)});
    });
    return;
  }
  const auto strip = [&](const Strip& s) { run_strip(cut, s, arrays, reads_keep, body); };
  if (cut.lines) {
    const std::int64_t count = pieces(cut.line_length, cut.wide), padded = count * cut.wide;
    if (count == 0) return;
    const std::int64_t together = std::max<std::int64_t>(1, kStrip / padded);
    net::for_each_row(ceil_div(cut.line_count, together), kStrip, [&](std::int64_t task) {
      const std::int64_t begin = task * together, from = begin * cut.line_length;
      const Arrays here{arrays.x + from, arrays.y == nullptr ? nullptr : arrays.y + from,
                        arrays.keep == nullptr ? nullptr : arrays.keep + from};
      run_lines(std::min(together, cut.line_count - begin), cut.line_length, padded, cut.wide,
                first + static_cast<std::uint64_t>(begin * count), here, reads_keep, body);
    });
    return;
  }
  const std::int64_t across = layout.inner * layout.width;
  if (cut.deep == 1) {
    const std::int64_t count = pieces(layout.rows, cut.wide);
    if (cut.tail_wide == 0 && across * cut.wide <= kStrip) {
      // The decisions of neighbouring groups follow each other, whichever matrix they are of.
      const std::int64_t together = kStrip / (across * cut.wide), groups = layout.outer * count;
      net::for_each_row(ceil_div(groups, together), kStrip, [&](std::int64_t task) {
        const std::int64_t begin = task * together, from = begin * cut.wide * across;
        const Arrays here{arrays.x + from, arrays.y == nullptr ? nullptr : arrays.y + from,
                          arrays.keep == nullptr ? nullptr : arrays.keep + from};
        const auto turned = [&](auto m) {
          run_turned<decltype(m)::value>(cut.wide, std::min(together, groups - begin), across,
                                         first + static_cast<std::uint64_t>(begin * across), here,
                                         reads_keep, arrays.keep != nullptr, body);
        };
        if (cut.wide == 2) return turned(std::integral_constant<int, 2>{});
        if (cut.wide == 4) return turned(std::integral_constant<int, 4>{});
        turned(std::integral_constant<int, 0>{});
      });
      return;
    }
    const std::int64_t at_once = std::max<std::int64_t>(1, kStrip / each);
    const std::int64_t chunks = ceil_div(across, at_once);
    net::for_each_row(layout.outer * count * chunks, kStrip, [&](std::int64_t task) {
      const std::int64_t group = task / chunks, column = task % chunks * at_once;
      const std::int64_t row = group % count * cut.wide;
      strip({.base = (group / count * layout.rows + row) * across + column,
             .decisions = std::min(at_once, across - column),
             .next = 1,
             .across = across,
             .extent = layout.rows - row,
             .first = first + static_cast<std::uint64_t>(group * across + column)});
    });
    return;
  }
  const std::int64_t down = pieces(layout.rows, cut.deep), right = pieces(layout.width, cut.wide);
  net::for_each_row(
      layout.outer * down * layout.inner, layout.width * cut.deep, [&](std::int64_t task) {
        const std::int64_t matrix = task % layout.inner, band = task / layout.inner;
        const std::int64_t row = band % down * cut.deep;
        strip({.base = (band / down * layout.rows + row) * across + matrix * layout.width,
               .decisions = right,
               .next = cut.wide,
               .down = across,
               .across = 1,
               .rows = std::min(cut.deep, layout.rows - row),
               .extent = layout.width,
               .advance = cut.wide,
               .first = first + static_cast<std::uint64_t>(task * right)});
      });
}

constexpr float kNaN = std::bit_cast<float>(0x7fc00000);

float with_share(float x, double share) {
  const auto sum = static_cast<float>(x + share);
  return sum == sum ? sum : kNaN;
}

void repair(const MaskPolicy& policy, const MaskRun& run) {
  if (policy.repair != Repair::absorb || run.y == nullptr) return;
  const std::int64_t m = policy.pattern.group;
  absorb_pruned(run.count * decision_size(policy) / m, m, run.x, run.keep, run.y);
}

}  // namespace

void absorb_pruned(std::int64_t groups, std::int64_t size, const float* x, const std::uint8_t* keep,
                   float* y) {
  const FloatGuard guard;
  for (std::int64_t g = 0; g < groups; ++g, x += size, keep += size, y += size) {
    double pruned = 0;
    std::uint32_t kept = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      pruned += kept_or_zero(x[i], 1U - keep[i]);
      kept += keep[i];
    }
    const double share = kept == 0 ? 0 : pruned / kept;
    if (share == 0) {
      for (std::int64_t i = 0; i < size; ++i) y[i] = kept_or_zero(x[i], keep[i]);
    } else {
      for (std::int64_t i = 0; i < size; ++i) y[i] = kept_or_zero(with_share(x[i], share), keep[i]);
    }
  }
}

void require_layout(const MaskPolicy& policy, const MaskLayout& layout) {
  if (policy.rule->span == MaskSpan::tensor || policy.remainder != Remainder::error) return;
  const LayoutCut cut(policy, layout);
  const auto refuse = [&](const char* axis, std::int64_t by, std::int64_t length) {
    throw Error(
        fmt::format("mask {}: expected a multiple of {} along {}, found {} (remainder=pad "
                    "prunes the tail as if zeros followed, remainder=dense keeps it)",
                    to_string(policy), by, axis, length));
  };
  if (cut.tail_deep != 0) refuse("the outputs", cut.deep, layout.rows);
  if (cut.tail_wide != 0)
    refuse(cut.axis, cut.wide,
           cut.lines       ? cut.line_length
           : cut.deep == 1 ? layout.rows
                           : layout.width);
}

std::uint64_t decision_count(const MaskPolicy& policy, const MaskLayout& layout) {
  if (policy.rule->span == MaskSpan::tensor) return static_cast<std::uint64_t>(layout.size());
  const LayoutCut cut(policy, layout);
  const auto pieces = [&](std::int64_t length, std::int64_t by) {
    return policy.remainder == Remainder::pad ? ceil_div(length, by) : length / by;
  };
  const std::int64_t count =
      cut.lines       ? cut.line_count * pieces(cut.line_length, cut.wide)
      : cut.deep == 1 ? layout.outer * pieces(layout.rows, cut.wide) * layout.inner * layout.width
                      : layout.outer * pieces(layout.rows, cut.deep) * layout.inner *
                            pieces(layout.width, cut.wide);
  return static_cast<std::uint64_t>(count);
}

KeptElements kept_elements(const MaskPolicy& policy, const MaskLayout& layout) {
  const double size = static_cast<double>(layout.size());
  if (policy.rule->span == MaskSpan::tensor) return {kept_share(policy) * size, 0};
  if (policy.pattern.kept == policy.pattern.group) return {0, size};
  const LayoutCut cut(policy, layout);
  const std::int64_t n = policy.pattern.kept, m = policy.pattern.group;
  const bool pad = policy.remainder == Remainder::pad;
  // Of `length` neighbours: those in whole groups, and those of the tail.
  const auto along = [&](std::int64_t length, std::int64_t kept, std::int64_t group) {
    const std::int64_t tail = length % group;
    const double whole = static_cast<double>(length / group * kept);
    return pad ? KeptElements{whole + static_cast<double>(std::min(kept, tail)), 0}
               : KeptElements{whole, static_cast<double>(tail)};
  };
  const auto times = [](KeptElements k, double lines) {
    return KeptElements{k.positions * lines, k.others * lines};
  };
  if (cut.lines) {
    const std::int64_t kept = cut.wide == m ? n : n * m;
    return times(along(cut.line_length, kept, cut.wide), static_cast<double>(cut.line_count));
  }
  const double matrices = static_cast<double>(layout.outer * layout.inner);
  if (cut.deep == 1)
    return times(along(layout.rows, n, m), matrices * static_cast<double>(layout.width));
  const KeptElements row = along(layout.width, n, m);
  if (pad) return times(row, matrices * static_cast<double>(layout.rows));
  const std::int64_t whole_rows = layout.rows / m * m, whole_columns = layout.width / m * m;
  const double inside = static_cast<double>(whole_rows * whole_columns);
  return times({inside * static_cast<double>(n) / static_cast<double>(m),
                static_cast<double>(layout.rows * layout.width) - inside},
               matrices);
}

void mask_tensor(const MaskPolicy& policy, const RandomSource& random, const MaskLayout& layout,
                 std::uint64_t first, double threshold, const float* x, float* y,
                 std::uint8_t* keep) {
  const MaskRule& rule = *policy.rule;
  if (rule.span == MaskSpan::tensor) {
    const std::int64_t n = layout.size();
    const std::int64_t at_once = rule.threshold == nullptr ? std::max<std::int64_t>(n, 1) : kStrip;
    net::for_each_row(ceil_div(n, at_once), at_once, [&](std::int64_t task) {
      const std::int64_t from = task * at_once;
      rule.prune(policy, random,
                 {.x = x + from,
                  .y = y == nullptr ? nullptr : y + from,
                  .keep = keep == nullptr ? nullptr : keep + from,
                  .count = std::min(at_once, n - from),
                  .first = first + static_cast<std::uint64_t>(from),
                  .threshold = threshold});
    });
    return;
  }
  for_each_run(policy, layout, first, {x, y, keep}, false, [&](MaskRun run) {
    thread_local std::vector<std::uint8_t> kept;
    if (policy.repair == Repair::absorb && run.keep == nullptr) {
      kept.resize(static_cast<std::size_t>(run.count * decision_size(policy)));
      run.keep = kept.data();
    }
    rule.prune(policy, random, run);
    repair(policy, run);
  });
}

void apply_mask(const MaskPolicy& policy, const MaskLayout& layout, const float* x,
                const std::uint8_t* keep, float* y) {
  if (policy.repair != Repair::absorb) {
    net::for_each_element(layout.size(),
                          [=](std::int64_t i) { y[i] = keep[i] != 0 ? x[i] : 0.0f; });
    return;
  }
  for_each_run(policy, layout, 0, {x, y, const_cast<std::uint8_t*>(keep)}, true,
               [&](const MaskRun& run) { repair(policy, run); });
}

}  // namespace numemu::policies
