// A block format comes by name, or as an element format with a granularity and float32 scales.
#include "cli/block_options.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"

namespace numemu::cli {
namespace {

constexpr std::int64_t kMostAxes = 64;
/// The block of OCP MX, where --granularity block comes without a size.
constexpr std::int64_t kUsualBlock = 32;

}  // namespace

void add_block_options(Command& command, BlockOptions& options) {
  Option block = command.option(
      "--block B", options.block,
      "mxfp4, mxfp6_e2m3, mxfp6_e3m2, mxfp8_e4m3, mxfp8_e5m2, mxint8, nvfp4, mx(ELEM,SIZE), "
      "bfp(K,SIZE) or group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min])");
  command.option("--format F", options.format, "Element format with float32 scales")
      .excludes(block);
  command
      .option("--granularity G", options.granularity,
              "With --format: tensor, channel, row or block")
      .excludes(block);
  command
      .option("--block-size SIZE", options.size,
              "With --granularity block: elements per scale (default: 32)")
      .whole(1, kLargestBlock)
      .excludes(block);
  command
      .option("--axis AXIS", options.axis,
              "Axis of the blocks or channels; negative counts from the end (default: -1)")
      .whole(-kMostAxes, kMostAxes - 1);
}

const BlockFormat& block_format_of(const BlockOptions& options) {
  if (!options.block.empty()) return find_block_format(options.block);
  if (options.format.empty()) throw Error("expected --block B, or --format F with --granularity G");
  if (options.granularity.empty())
    throw Error("--format: expected together with --granularity tensor, channel, row or block");
  const Span span = parse_span(options.granularity);
  if (options.size && span != Span::block)
    throw Error("--block-size: expected together with --granularity block");
  return scaled_format(find_format(options.format), span, options.size.value_or(kUsualBlock));
}

void check_tensor_scale(const BlockFormat& f, const std::string& path, bool without) {
  if (f.tensor_scale) return;
  for (const char* option :
       {path.empty() ? nullptr : "--tensor-scale", without ? "--no-tensor-scale" : nullptr}) {
    if (option != nullptr) throw Error(fmt::format("{}: {} has no tensor scale", option, f.name));
  }
}

std::optional<std::int64_t> sidecar_axis(const BlockFormat& f, const ArrayShape& shape, int axis) {
  if (f.span != Span::block && f.span != Span::channel) return std::nullopt;
  return axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis;
}

}  // namespace numemu::cli
