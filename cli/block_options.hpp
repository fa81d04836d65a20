// The options of commands that quantize by blocks: which block format, along which axis.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {

struct BlockOptions {
  std::string block, format, granularity;
  std::optional<std::int64_t> size;
  std::optional<std::int64_t> axis;

  int axis_or_last() const { return static_cast<int>(axis.value_or(-1)); }
};

/// --block | --format --granularity [--block-size], and --axis.
void add_block_options(Command&, BlockOptions&);

/// The block format that the options name. Throws Error where they do not, or contradict.
const BlockFormat& block_format_of(const BlockOptions&);

/// Throws Error where --tensor-scale `path` or --no-tensor-scale (`without`) is given for a format
/// that has no tensor scale.
void check_tensor_scale(const BlockFormat&, const std::string& path, bool without);

/// The axis that a sidecar names: counted from 0, and only where blocks or channels follow one.
std::optional<std::int64_t> sidecar_axis(const BlockFormat&, const ArrayShape&, int axis);

}  // namespace numemu::cli
