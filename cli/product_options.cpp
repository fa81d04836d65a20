// The options that gemm and dot share, and what is refused before anything is read.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>

#include "cli/product.hpp"
#include "cli/product_compare.hpp"
#include "cli/text_numbers.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"

namespace numemu::cli {

const unit::Unit& unit_named(const std::string& name) {
  if (!name.ends_with(".json")) return unit::find_unit(name);
  static std::map<std::string, std::unique_ptr<unit::Unit>> own;
  std::unique_ptr<unit::Unit>& unit = own[name];
  if (unit == nullptr) unit = unit::make_unit(unit::read_description(name));
  return *unit;
}

void check_product_options(const ProductOptions& options) {
  const GemmFiles& files = options.files;
  check_meta_layout(files);
  if (options.alpha && !options.trace.empty())
    throw Error("--alpha: not allowed with --trace: alpha is applied outside the unit");
  if (options.alpha && !std::isfinite(*options.alpha))
    throw Error("--alpha: expected a finite float32 number");
  const bool compares = !options.compare.empty();
  if (options.out.empty() && options.trace.empty() && !compares)
    throw Error("--out: expected a file (or --trace PLACE, --compare OTHER)");
  if (!options.trace.empty() && (!options.out.empty() || compares))
    throw Error(compares ? "--trace: not allowed with --compare"
                         : "--trace: not allowed with --out");
  if (options.worst && !compares) throw Error("--worst: expected --compare OTHER, too");
  if (compares && options.alpha)
    throw Error("--compare: not allowed with --alpha, which is applied outside the unit");
  if (!options.flags.empty() && options.out.empty() && options.trace.empty())
    throw Error("--flags: expected --out, too");
  if (options.alpha && !options.flags.empty())
    throw Error("--flags: not allowed with --alpha, which is applied outside the unit");
  if (!options.flags.empty() && !options.trace.empty())
    throw Error("--flags: not allowed with --trace");
  for (const auto& [option, path] : {std::pair("--a", &files.a),
                                     {"--b", &files.b},
                                     {"--c", &files.c},
                                     {"--scale-a", &files.scale_a},
                                     {"--scale-b", &files.scale_b},
                                     {"--meta", &files.meta}})
    require_file(option, *path);
  for (const auto& [option, path] :
       {std::pair("--out", &options.out), {"--flags", &options.flags}}) {
    if (path->empty()) continue;
    require_file(option, *path);
    require_replaceable(*path);
  }
  require_distinct_paths({{"--out", options.out}, {"--flags", options.flags}},
                         {{"--a", files.a},
                          {"--b", files.b},
                          {"--c", files.c},
                          {"--scale-a", files.scale_a},
                          {"--scale-b", files.scale_b},
                          {"--meta", files.meta, false},
                          {"--compare", names_results(options.compare) ? options.compare : ""},
                          {"--unit", options.unit.ends_with(".json") ? options.unit : "", false}});
}

void add_product_options(Command& command, ProductOptions& options) {
  GemmFiles& files = options.files;
  command.option("--unit U", options.unit, "A unit's name (numemu units) or a file unit.json")
      .required();
  command.option("--format-a F", files.format_a, "Format of A if the unit takes any format");
  command.option("--format-b F", files.format_b, "Format of B if the unit takes any format");
  command.option("--format-d F", files.format_d, "Format of D; must be the unit's");
  command.option("--meta E.npy", files.meta, "Metadata of a sparse A");
  command.option("--meta-layout LAYOUT", files.meta_layout, "Of --meta: index (default) or ptx");
  command.option("--flags F.npy", options.flags,
                 "Exception flags of each output, uint8 (by the reference)");
  command.option("--compare OTHER", options.compare,
                 "Compare with OTHER.npy, or with another unit: where they part, which is nearer");
  command
      .option("--worst N", options.worst,
              fmt::format("Outputs that --compare explains (default: {})", kWorst))
      .whole(0, 1000);
  command.option("--seed S", options.seed, "Seed of stochastic registers (default: 0)");
  command.flag("--reference", options.reference, "Use the reference implementation (slow)");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress, no summary");
  add_threads(command);
}

}  // namespace numemu::cli
