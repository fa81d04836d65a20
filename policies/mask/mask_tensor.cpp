#include "policies/mask/mask_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "policies/mask/kept_bits.hpp"
#include "policies/mask/mask_runs.hpp"

namespace numemu::policies {
namespace {

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
