#include "cli/epilogue_options.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/error.hpp"

namespace numemu::cli {

void add_epilogue(Command& command, api::EpilogueFiles& epilogue) {
  std::vector<std::string> variants;
  for (std::size_t i = 0; i < unit::kRequantizations; ++i)
    variants.emplace_back(unit::row_of(static_cast<unit::Requantization>(i)).name);
  command
      .option("--requantize HOW", epilogue.requantize,
              "D = codes of --format-d (default: int8): clamp(round((AB + C + bias) x factor) + "
              "zero point)")
      .one_of(variants);
  command.option("--factor X|X.npy", epilogue.factor,
                 "Of --requantize; gemm: or one for each column");
  command.option("--multiplier M|M.npy", epilogue.multiplier,
                 "Of fixed point, in place of --factor: M x 2^(shift - 31)");
  command.option("--shift S|S.npy", epilogue.shift, "Beside --multiplier, from -31 to 30");
  command.option("--zero-point Z", epilogue.zero_point, "Of --requantize (default: 0)");
  command.option("--low L", epilogue.low, "Least code (default: that of the format)");
  command.option("--high H", epilogue.high, "Largest code (default: that of the format)");
}

void require_requantize(const api::EpilogueFiles& e) {
  if (!e.requantize.empty()) return;
  for (const auto& [option, given] : {std::pair("--bias", !e.bias.empty()),
                                      {"--factor", !e.factor.empty()},
                                      {"--multiplier", !e.multiplier.empty()},
                                      {"--shift", !e.shift.empty()},
                                      {"--zero-point", e.zero_point.has_value()},
                                      {"--low", e.low.has_value()},
                                      {"--high", e.high.has_value()}}) {
    if (given) throw usage_error(fmt::format("{}: expected --requantize, too", option));
  }
}

}  // namespace numemu::cli
