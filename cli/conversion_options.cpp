#include "cli/conversion_options.hpp"

#include <fmt/format.h>

namespace numemu::cli {
namespace {

constexpr std::int64_t kMostAxes = 64;

}  // namespace

void add_conversion_options(Command& command, api::RoundingWords& words, std::string& random_bits) {
  command
      .option("--rounding R", words.rounding,
              "rne, rna, rtz, rup, rdn, rodd, sr(N) or sr(N,a|b|c|odd)")
      .show_default();
  command.option("--overflow O", words.overflow, "saturate, propagate or ieee").show_default();
  Option bits = command.option("--random-bits R.npy", random_bits,
                               "Random bits of sr(N): uint32, one word per element");
  command.option("--seed S", words.seed, "Seed of the counter-based random bits (default: 0)")
      .excludes(bits);
}

void add_block_options(Command& command, api::BlockTold& options) {
  Option block = command.option(
      "--block B", options.block,
      "mxfp4, mxfp6_e2m3, mxfp6_e3m2, mxfp8_e4m3, mxfp8_e5m2, mxint8, nvfp4, mx(ELEM,SIZE), "
      "nvfp4(SIZE), bfp(K,SIZE) or group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min]"
      "[,tensor-scale]); SIZE may be RxC, a tile");
  command.option("--format F", options.format, "Element format with float32 scales")
      .excludes(block);
  command
      .option("--granularity G", options.granularity,
              "With --format: tensor, channel, row, block or tile")
      .excludes(block);
  command
      .option("--block-size SIZE", options.size,
              "With --granularity block: elements per scale (default: 32)")
      .whole(1, kLargestBlock)
      .excludes(block);
  command
      .option("--tile R,C", options.tile,
              "With --granularity tile: rows and columns that share a scale (default: 128,128)")
      .excludes(block);
  command
      .option("--axis AXIS", options.axis,
              "Axis of the blocks or channels; negative counts from the end (default: -1)")
      .whole(-kMostAxes, kMostAxes - 1);
}

std::string flags_text(const FlagCounts& flags) {
  return fmt::format("{} inexact, {} underflow, {} overflow, {} invalid", flags.inexact,
                     flags.underflow, flags.overflow, flags.invalid);
}

Json flags_json(const FlagCounts& flags) {
  return {{"inexact", flags.inexact},
          {"underflow", flags.underflow},
          {"overflow", flags.overflow},
          {"invalid", flags.invalid}};
}

}  // namespace numemu::cli
