#include "api/masks.hpp"

#include <fmt/format.h>

#include <array>

#include "formats/error.hpp"
#include "formats/storage/codes.hpp"
#include "formats/suggest.hpp"
#include "policies/mask/mask_tensor.hpp"

namespace numemu::api {
namespace {

using policies::MaskFamily;
using policies::MaskLayout, policies::MaskPolicy, policies::MaskSpan;

/// Product of the extents [begin, end).
std::int64_t extent(const ArrayShape& shape, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product *= shape[i];
  return product;
}

MaskLayout mask_layout(const MaskPolicy& policy, const ArrayShape& shape, std::optional<int> axis) {
  const std::size_t axes = shape.size();
  if (axes == 0) throw Error("x: shape: expected at least one axis, found []");
  if (policy.rule->span != MaskSpan::group && axis)
    throw usage_error(fmt::format("axis: not allowed with {}, {}", policies::to_string(policy),
                                  policy.rule->span == MaskSpan::tile
                                      ? "whose tiles lie along the last two axes"
                                      : "which has no groups along an axis"));
  if (policy.rule->span == MaskSpan::tensor) return {.width = extent(shape, 0, axes)};
  if (policy.rule->span == MaskSpan::tile) {
    if (axes == 1)
      throw Error(fmt::format("x: shape: expected matrices, found {}", shape_text(shape)));
    return {.outer = extent(shape, 0, axes - 2), .rows = shape[axes - 2], .width = shape[axes - 1]};
  }
  const int asked = axis.value_or(policy.axis == policies::MaskAxis::batch ? 0 : -1);
  const std::int64_t at = asked + (asked < 0 ? std::ssize(shape) : 0);
  if (at < 0 || at >= std::ssize(shape))
    throw usage_error(fmt::format("axis: expected {} to {}, found {}", -std::ssize(shape),
                                  std::ssize(shape) - 1, asked));
  const auto i = static_cast<std::size_t>(at);
  if (i + 1 == axes) return {.rows = extent(shape, 0, i), .width = shape[i]};
  return {.outer = extent(shape, 0, i),
          .rows = shape[i],
          .width = extent(shape, i + 1, axes),
          .along_rows = true};
}

constexpr std::array kFamilies = {MaskFamily::unstructured, MaskFamily::group,
                                  MaskFamily::transposable, MaskFamily::transposable_bound,
                                  MaskFamily::sequential};

}  // namespace

MaskPolicy parse_array_mask(const std::string& rule) {
  MaskPolicy policy = policies::parse_mask(rule);
  if (policy.repair == policies::Repair::adaprune)
    throw usage_error("repair=adaprune: expected a network, whose inputs it is fitted to");
  return policy;
}

void mask_into(const MaskPolicy& policy, const RandomSource& random, const Array& x,
               std::optional<int> axis, float* values, std::uint8_t* keep) {
  require_type("x", x.type, {ArrayType::float32}, "numbers");
  const MaskLayout layout = mask_layout(policy, x.shape, axis);
  const double threshold = policy.rule->threshold == nullptr
                               ? 0
                               : policy.rule->threshold(policy, x.as<float>(), layout.size());
  policies::mask_tensor(policy, random, layout, 0, threshold, x.as<float>(), values, keep);
}

MaskedArray mask(const Array& x, const MaskOptions& options) {
  MaskedArray masked{parse_array_mask(options.rule), Array(ArrayType::float32, x.shape),
                     Array(ArrayType::uint8, x.shape)};
  auto* keep = masked.keep.as<std::uint8_t>();
  mask_into(masked.policy, {.seed = options.seed, .stream = Stream::mask}, x, options.axis,
            masked.values.as<float>(), keep);
  for (std::int64_t i = 0; i < x.elements(); ++i) masked.kept += keep[i];
  return masked;
}

MaskCounts count_masks(const std::string& family, const std::string& pattern,
                       std::optional<std::int64_t> elements) {
  MaskCounts counts;
  counts.family = kFamilies[index_named("family of masks", family, kFamilies,
                                        [](MaskFamily one) { return policies::to_string(one); })];
  counts.pattern = unit::parse_pattern(pattern);
  if (!elements && counts.family == MaskFamily::unstructured)
    throw usage_error("elements: expected a number: unstructured masks are those of a whole array");
  counts.elements = elements ? *elements : policies::piece_size(counts.family, counts.pattern);
  counts.count = elements ? policies::mask_diversity(counts.family, counts.pattern, *elements)
                          : policies::piece_count(counts.family, counts.pattern);
  counts.log10_per_block = policies::log10_per_block(counts.family, counts.pattern);
  return counts;
}

}  // namespace numemu::api
