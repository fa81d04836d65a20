// Random bits are 0-seeded or supplied, never both.
#include "cli/conversion_options.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::cli {

void add_conversion_options(Command& command, ConversionOptions& options) {
  command
      .option("--rounding R", options.rounding,
              "rne, rna, rtz, rup, rdn, rodd, sr(N) or sr(N,a|b|c|odd)")
      .show_default();
  command.option("--overflow O", options.overflow, "saturate, propagate or ieee").show_default();
  Option bits = command.option("--random-bits R.npy", options.random_bits,
                               "Random bits of sr(N): uint32, one word per element");
  command.option("--seed S", options.seed, "Seed of the counter-based random bits (default: 0)")
      .excludes(bits);
}

SettledConversion settle(const ConversionOptions& options, const Format& format,
                         const ArrayShape& shape) {
  SettledConversion settled;
  Conversion& conversion = settled.conversion;
  conversion.format = &format;
  conversion.rounding = parse_rounding(options.rounding);
  conversion.overflow = parse_overflow(options.overflow);
  conversion.symmetric = false;
  if (options.random_bits.empty()) {
    settled.seed = options.seed.value_or(0);
    conversion.random.seed = *settled.seed;
    return settled;
  }
  if (!conversion.rounding.stochastic()) {
    throw Error(fmt::format("--random-bits: expected --rounding sr(N), found {}",
                            to_string(conversion.rounding)));
  }
  const std::string& path = options.random_bits;
  settled.random_words = read_npy(path);
  require_type(path, settled.random_words.type, {ArrayType::uint32}, "random bits");
  if (settled.random_words.shape != shape) {
    throw Error(fmt::format("{}: shape: expected {}, one word per element, found {}", path,
                            shape_text(shape), shape_text(settled.random_words.shape)));
  }
  conversion.random_words = settled.random_words.as<std::uint32_t>();
  return settled;
}

std::string flags_text(const FlagCounts& flags) {
  return fmt::format("{} inexact, {} underflow, {} overflow, {} invalid", flags.inexact,
                     flags.underflow, flags.overflow, flags.invalid);
}

}  // namespace numemu::cli
