// Random bits are 0-seeded or supplied, never both.
#include "cli/conversion_options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "cli/command.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::cli {
/// The key of the random bits has 64 bits, one more than whole_number() covers.
std::string check_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && at == end) return "";
  constexpr std::size_t kShown = 40;  // characters of a wrong value
  return fmt::format("expected a whole number from 0 to 2^64-1, not '{}{}'", text.substr(0, kShown),
                     text.size() > kShown ? "..." : "");
}

void add_conversion_options(CLI::App& command, ConversionOptions& options) {
  command
      .add_option("--rounding", options.rounding,
                  "rne, rna, rtz, rup, rdn, rodd, sr(N) or sr(N,a|b|c|odd)")
      ->capture_default_str()
      ->type_name("R");
  command.add_option("--overflow", options.overflow, "saturate, propagate or ieee")
      ->capture_default_str()
      ->type_name("O");
  CLI::Option* bits = command.add_option("--random-bits", options.random_bits,
                                         "Random bits of sr(N): uint32, one word per element");
  bits->type_name("R.npy");
  command.add_option("--seed", options.seed, "Seed of counter-based random bits (default: 0)")
      ->check(CLI::Validator(check_seed, ""))
      ->excludes(bits)
      ->type_name("S");
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
