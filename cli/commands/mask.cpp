// numemu mask: an array pruned by a rule, checked against a pattern, compressed for a unit,
// expanded.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/array_files.hpp"
#include "api/masks.hpp"
#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "emu/unit/sparse/compress.hpp"
#include "emu/unit/sparse/ptx.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

using policies::MaskSpan;
using unit::MetaLayout;

struct MaskCommand {
  api::MaskOptions mask;
  std::optional<std::int64_t> axis;
  std::string in, out, keep, compressed, meta, meta_layout = "index";
  bool check = false, expand = false, json = false, quiet = false;
};

constexpr std::size_t kShownViolations = 10;

/// Neighbours along an axis of an array of which more than N are not zero.
struct GroupViolation {
  std::vector<std::int64_t> first = {};  ///< place of the group's first element
  std::size_t axis = 0;
  int kept = 0;
};

struct CheckResult {
  std::int64_t groups = 0, violations = 0;
  std::vector<GroupViolation> shown;
};

/// Groups along one axis; the last one of a line that M does not divide may keep N, too.
void check_axis(const Array& x, const unit::Pattern& p, std::size_t axis, CheckResult& result) {
  const auto at = [&](std::size_t i) { return x.shape.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::int64_t length = x.shape[axis];
  const std::int64_t inner = element_count_of({at(axis + 1), x.shape.end()}).value_or(0);
  const std::int64_t outer = element_count_of({x.shape.begin(), at(axis)}).value_or(0);
  const auto* const v = x.as<float>();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t g = 0; g < length; g += p.group) {
      for (std::int64_t i = 0; i < inner; ++i, ++result.groups) {
        std::uint32_t bits = 0;
        for (std::int64_t k = g; k < std::min(length, g + p.group); ++k)
          bits |= (v[(o * length + k) * inner + i] != 0 ? 1u : 0u) << (k - g);
        const int kept = p.pairwise ? unit::choose(p, bits).count : std::popcount(bits);
        if (kept <= p.kept) continue;
        ++result.violations;
        if (result.shown.size() >= kShownViolations) continue;
        GroupViolation violation{.axis = axis, .kept = kept};
        std::int64_t flat = (o * length + g) * inner + i;
        for (std::size_t d = x.shape.size(); d-- > 0; flat /= x.shape[d])
          violation.first.insert(violation.first.begin(), flat % x.shape[d]);
        result.shown.push_back(std::move(violation));
      }
    }
  }
}

/// The numbers of --in, which have an axis; two for rules of tiles.
Array read_maskable(const MaskCommand& o, const policies::MaskPolicy& policy) {
  Array x = api::read_float32(o.in, "");
  const bool tile = policy.rule->span == MaskSpan::tile;
  if (std::ssize(x.shape) < (tile ? 2 : 1))
    throw Error(fmt::format("{}: shape: expected {}, found {}", o.in,
                            tile ? "matrices" : "at least one axis", shape_text(x.shape)));
  return x;
}

/// The axes along which the rule's groups run: both of a tile's.
std::vector<std::size_t> axes_of(const policies::MaskPolicy& policy, const ArrayShape& shape,
                                 std::optional<std::int64_t> axis) {
  const auto rank = std::ssize(shape);
  if (policy.rule->span == MaskSpan::tensor)
    throw usage_error(
        fmt::format("--rule: {} has no pattern of groups, expected one such as greedy(2:4)",
                    policies::to_string(policy)));
  if (policy.rule->span == MaskSpan::tile)
    return {static_cast<std::size_t>(rank - 1), static_cast<std::size_t>(rank - 2)};
  const std::int64_t at = axis.value_or(-1) + (axis.value_or(-1) < 0 ? rank : 0);
  if (at < 0 || at >= rank)
    throw usage_error(
        fmt::format("--axis: expected {} to {}, found {}", -rank, rank - 1, axis.value_or(-1)));
  return {static_cast<std::size_t>(at)};
}

int run_check(const MaskCommand& o) {
  const policies::MaskPolicy policy = policies::parse_mask(o.mask.rule);
  const Array x = read_maskable(o, policy);
  CheckResult result;
  for (const std::size_t axis : axes_of(policy, x.shape, o.axis))
    check_axis(x, policy.pattern, axis, result);
  const std::string pattern = unit::to_string(policy.pattern);
  if (o.json) {
    Json shown = Json::array();
    for (const GroupViolation& v : result.shown)
      shown.push_back({{"first", v.first}, {"axis", v.axis}, {"not_zero", v.kept}});
    fmt::print("{}\n", Json({{"in", utf8_text(o.in)},
                             {"pattern", pattern},
                             {"groups", result.groups},
                             {"violations", result.violations},
                             {"first_violations", shown}})
                           .dump(2));
  } else {
    fmt::print("{}: {} of {} groups of {} keep more than {}\n", harmless(o.in), result.violations,
               result.groups, pattern, policy.pattern.kept);
    for (const GroupViolation& v : result.shown)
      fmt::print("  from {} along axis {}: {} elements are not zeros\n", shape_text(v.first),
                 v.axis, v.kept);
    if (result.violations > std::ssize(result.shown))
      fmt::print("  and {} more\n", result.violations - std::ssize(result.shown));
  }
  return result.violations == 0 ? kFine : kMismatch;
}

/// Tiles may be larger than the groups of which sparse units read the kept elements.
void require_unit_pattern(const char* option, const policies::MaskPolicy& policy) {
  if (policy.rule->span != MaskSpan::tensor && policy.pattern.group > unit::kMostGroup)
    throw usage_error(
        fmt::format("{}: expected N:M with M <= {}, as sparse units have it, found {}", option,
                    unit::kMostGroup, unit::to_string(policy.pattern)));
}

int run_expand(const MaskCommand& o) {
  const policies::MaskPolicy policy = policies::parse_mask(o.mask.rule);
  require_unit_pattern("--expand", policy);
  const unit::Pattern p = policy.pattern;
  const MetaLayout layout = unit::parse_meta_layout(o.meta_layout);
  if (o.meta.empty() || o.out.empty())
    throw usage_error("--expand: expected --meta, whose places the elements go to, and --out");
  require_replaceable(o.out);
  require_distinct_paths({{"--out", o.out}}, {{"--in", o.in}, {"--meta", o.meta, false}});
  const Array kept = api::read_float32(o.in, "");
  const Array meta = read_npy(o.meta);
  if (kept.shape.empty() || kept.shape.back() % p.kept != 0)
    throw Error(fmt::format("{}: shape: {}, expected a last axis of a multiple of {} for {}", o.in,
                            shape_text(kept.shape), p.kept, unit::to_string(p)));
  const std::int64_t depth = kept.shape.back() / p.kept * p.group;
  const std::int64_t rows = kept.shape.back() == 0 ? 0 : kept.elements() / kept.shape.back();
  std::vector<std::uint8_t> index(static_cast<std::size_t>(kept.elements()));
  const std::int64_t words = layout == MetaLayout::ptx
                                 ? unit::ptx_words_per_row<std::uint8_t>(p, depth) * rows
                                 : kept.elements();
  if (meta.type != ArrayType::uint8 || meta.elements() != words)
    throw Error(fmt::format("{}: {} {}, expected {} uint8 of metadata ({})", o.meta,
                            to_string(meta.type), shape_text(meta.shape), words, o.meta_layout));
  if (layout == MetaLayout::ptx) {
    unit::decode_ptx(p, meta.as<std::uint8_t>(), rows, depth, index.data());
  } else {
    std::memcpy(index.data(), meta.data.data(), index.size());
  }
  ArrayShape shape = kept.shape;
  shape.back() = depth;
  Array dense(ArrayType::float32, shape);
  unit::expand(p, find_format("float32"), kept.as<float>(), index.data(), rows, depth,
               dense.as<float>());
  OutputFiles files;
  files.add_numbers("values", o.out, find_format("float32"), dense);
  files.publish();
  if (!o.quiet)
    fmt::print("{}: {} of {} {}\n", harmless(o.out), shape_text(shape), unit::to_string(p),
               shape_text(kept.shape));
  return kFine;
}

/// The kept elements and their places, groups along the last axis.
void add_compressed(const MaskCommand& o, const api::MaskedArray& masked, OutputFiles& files) {
  const unit::Pattern& p = masked.policy.pattern;
  if (masked.policy.rule->span == MaskSpan::tensor)
    throw usage_error(fmt::format("--compressed: {} has no pattern of groups",
                                  policies::to_string(masked.policy)));
  const ArrayShape& shape = masked.values.shape;
  if (axes_of(masked.policy, shape, o.axis)[0] + 1 != shape.size())
    throw usage_error("--compressed: expected groups along the last axis, as units read them");
  const MetaLayout layout = unit::parse_meta_layout(o.meta_layout);
  if (!unit::has_layout(p, layout))
    throw usage_error(
        fmt::format("--meta-layout: {} has no layout {}", unit::to_string(p), o.meta_layout));
  unit::require_whole_groups(p, shape.back());
  ArrayShape short_shape = shape;
  short_shape.back() = shape.back() / p.group * p.kept;
  const std::int64_t depth = shape.back();
  const std::int64_t rows = depth == 0 ? 0 : masked.values.elements() / depth;
  Array kept(ArrayType::float32, short_shape), index(ArrayType::uint8, short_shape);
  unit::compress(p,
                 unit::DenseOperand<float>{&find_format("float32"), masked.values.as<float>(), rows,
                                           depth, masked.keep.as<std::uint8_t>()},
                 kept.as<float>(), index.as<std::uint8_t>());
  files.add_numbers("compressed", o.compressed, find_format("float32"), kept);
  if (layout == MetaLayout::index)
    return files.add_array("meta", o.meta, ArrayType::uint8, short_shape, index.data.data());
  ArrayShape words = shape;
  words.back() = unit::ptx_words_per_row<std::uint8_t>(p, depth);
  Array packed(ArrayType::uint8, words);
  unit::encode_ptx(p, index.as<std::uint8_t>(), rows, depth, packed.as<std::uint8_t>());
  files.add_array("meta", o.meta, ArrayType::uint8, words, packed.data.data());
}

/// How many masks the rule's pattern admits; nothing where it has none, or where they are too many
/// to be counted.
std::optional<api::MaskCounts> counts_of(const policies::MaskPolicy& policy) {
  if (policy.rule->span == MaskSpan::tensor || policy.pattern.group > unit::kMostGroup)
    return std::nullopt;
  const std::string family = policy.rule->span == MaskSpan::tile                   ? "transposable"
                             : policy.rule->name == std::string_view("sequential") ? "sequential"
                                                                                   : "group";
  return api::count_masks(family, unit::to_string(policy.pattern));
}

struct KeptMagnitude {
  std::optional<double> share;  ///< sum |kept| / sum |all|; none where that is no number
  std::string text;
};

KeptMagnitude kept_magnitude(const Array& before, const Array& after) {
  double all = 0, left = 0;
  std::int64_t infinite = 0, nan = 0;
  for (std::int64_t i = 0; i < before.elements(); ++i) {
    const double x = before.as<float>()[i];
    nan += std::isnan(x) ? 1 : 0;
    infinite += std::isinf(x) ? 1 : 0;
    all += std::abs(x);
    left += std::abs(double{after.as<float>()[i]});
  }
  if (nan + infinite > 0)
    return {{}, fmt::format("no share of the magnitude: {} NaN, {} infinite", nan, infinite)};
  if (before.elements() == 0) return {{}, "no share of the magnitude: no elements"};
  if (all == 0) return {{}, "no share of the magnitude: all are zero"};
  return {left / all, fmt::format("{:.2f} % of the magnitude", 100 * left / all)};
}

/// Refuses the outputs that a mode does not write.
void refuse_outputs(const char* mode,
                    std::initializer_list<std::pair<const char*, const std::string*>> outputs) {
  for (const auto& [option, path] : outputs)
    if (!path->empty()) throw usage_error(fmt::format("{}: not allowed with {}", option, mode));
}

int run_mask(const MaskCommand& o) {
  if (o.check && o.expand) throw usage_error("--check: not allowed with --expand");
  if (o.check)
    refuse_outputs("--check", {{"--out", &o.out},
                               {"--keep", &o.keep},
                               {"--compressed", &o.compressed},
                               {"--meta", &o.meta}});
  if (o.expand) refuse_outputs("--expand", {{"--keep", &o.keep}, {"--compressed", &o.compressed}});
  if (o.check) return run_check(o);
  if (o.expand) return run_expand(o);
  if (o.meta.empty() != o.compressed.empty())
    throw usage_error(o.compressed.empty()
                          ? "--meta: expected together with --compressed, or --expand"
                          : "--compressed: expected --meta for the places of what is kept");
  const std::initializer_list<std::pair<const char*, const std::string*>> outputs = {
      {"--out", &o.out}, {"--keep", &o.keep}, {"--compressed", &o.compressed}, {"--meta", &o.meta}};
  for (const auto& [option, path] : outputs)
    if (!path->empty()) require_replaceable(*path);
  require_distinct_paths({{"--out", o.out},
                          {"--keep", o.keep, false},
                          {"--compressed", o.compressed},
                          {"--meta", o.meta, false}},
                         {{"--in", o.in}});
  for (const auto& [option, path] : outputs) api::require_array_name(option, *path);
  api::MaskOptions options = o.mask;
  if (o.axis) options.axis = static_cast<int>(*o.axis);
  const policies::MaskPolicy policy = api::parse_array_mask(options.rule);
  if (!o.compressed.empty()) require_unit_pattern("--compressed", policy);
  const Array x = read_maskable(o, policy);
  const api::MaskedArray masked = api::mask(x, options);
  OutputFiles files;
  if (!o.out.empty()) files.add_numbers("values", o.out, find_format("float32"), masked.values);
  if (!o.keep.empty())
    files.add_array("keep", o.keep, ArrayType::uint8, x.shape, masked.keep.data.data());
  if (!o.compressed.empty()) add_compressed(o, masked, files);
  files.publish();
  const KeptMagnitude magnitude = kept_magnitude(x, masked.values);
  const std::optional<api::MaskCounts> counts = counts_of(masked.policy);
  const std::string rule = policies::to_string(masked.policy);
  if (o.json) {
    Json json = {{"in", utf8_text(o.in)},
                 {"rule", rule},
                 {"shape", x.shape},
                 {"n", x.elements()},
                 {"kept", masked.kept},
                 {"seed", options.seed},
                 {"kept_magnitude", magnitude.share ? Json(*magnitude.share) : Json()}};
    if (counts)
      json["masks"] = {{"family", policies::to_string(counts->family)},
                       {"elements", counts->elements},
                       {"count", counts->count.decimal},
                       {"log2", counts->count.log2},
                       {"log10_per_64", counts->log10_per_block}};
    fmt::print("{}\n", json.dump(2));
  } else if (!o.quiet) {
    fmt::print("{}: {} {}, {} of {} elements kept, {}\n", harmless(o.in), rule, shape_text(x.shape),
               masked.kept, x.elements(), magnitude.text);
    if (counts)
      fmt::print("{} masks per {} elements ({:.4g} bits), 10^{:.2f} per 64 elements\n",
                 counts->count.decimal, counts->elements, counts->count.log2,
                 counts->log10_per_block);
  }
  return kFine;
}

}  // namespace

void add_mask(Program& program) {
  auto [command, options] = program.command<MaskCommand>("mask", run_mask);
  command
      .option("--rule RULE", options.mask.rule,
              "Mask rule with its pattern: greedy(2:4), transposable(2:4), mvue(1:2), "
              "unstructured(0.5), ... (docs/masks.md)")
      .required();
  command
      .option("--in W.npy", options.in,
              "Numbers that are exact in float32; with --expand what is kept")
      .required();
  command.option("--out Y.npy", options.out, "The pruned array, float32: +0 where pruned");
  command.option("--keep K.npy", options.keep, "uint8: 1 where kept");
  command.option("--compressed A.npy", options.compressed,
                 "Kept elements of each group in ascending k, as sparse units read A");
  command.option("--meta E.npy", options.meta, "Their places: uint8");
  command
      .option("--meta-layout L", options.meta_layout,
              "index (a place in its group for each element) or ptx (4 bits a group, as mma.sp)")
      .one_of({"index", "ptx"})
      .show_default();
  command.flag("--expand", options.expand, "From --in and --meta back to --out");
  command.flag("--check", options.check,
               "Count the groups that keep more than the pattern allows, and say where (exit 1)");
  command.option("--axis AXIS", options.axis, "Axis of the groups (default: the last)")
      .whole(-64, 63);
  command.option("--seed S", options.mask.seed, "Seed of rules that draw (default 0)");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No summary");
  add_threads(command);
}

}  // namespace numemu::cli
