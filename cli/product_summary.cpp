#include "cli/product_summary.hpp"

#include <fmt/format.h>

#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

/// Of the register; where C is added apart, of that addition, too.
std::string rounding_text(const unit::UnitDescription* u) {
  if (u == nullptr) return "host";
  const unit::Register& r = u->accumulator;
  if (r.format == nullptr && r.fraction == 0 && r.rounding == Rounding{}) return "exact";
  const bool apart = u->c_entry == unit::CEntry::after_rounding && !(u->c_rounding == r.rounding);
  const bool outer = u->outer.every != 0;
  return to_string(r.rounding) + (apart ? ", C " + to_string(u->c_rounding) : "") +
         (outer ? ", outer " + to_string(u->outer.accumulator.rounding) : "");
}

std::string overflow_text(const unit::UnitDescription* u) {
  if (u == nullptr) return "ieee";
  const unit::Register& r = unit::result_register(*u);
  if (r.format == nullptr) return r.integer == unit::IntegerOverflow::wrap ? "wrap" : "saturate";
  return r.overflow_to_infinity ? "infinity" : to_string(r.overflow);
}

}  // namespace

void print_summary(const ProductOptions& options, const unit::Unit& unit,
                   const GemmArrays& arrays) {
  const unit::UnitRow& row = unit.row();
  const unit::Gemm& g = arrays.gemm;
  const unit::UnitDescription* u = unit.description();
  const std::string rounding = rounding_text(u), overflow = overflow_text(u);
  const std::string scale =
      g.scale_a == nullptr ? "none"
                           : fmt::format("{} per {}", u->scaling.format->name, u->scaling.block);
  const std::string alpha = options.alpha ? fmt::format("{}", *options.alpha) : "none";
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(options.out)},
                             {"unit", row.name},
                             {"grade", unit::to_string(row.grade)},
                             {"format_a", g.a.format->name},
                             {"format_b", g.b.format->name},
                             {"format_d", row.result},
                             {"rounding", rounding},
                             {"overflow", overflow},
                             {"scale", scale},
                             {"m", g.m},
                             {"n", g.n},
                             {"k", g.k},
                             {"products", arrays.batch.count},
                             {"c", !options.files.c.empty()},
                             {"alpha", options.alpha ? Json(*options.alpha) : Json()},
                             {"seed", options.seed},
                             {"nan_scales", arrays.nan_scales}})
                           .dump(2));
    return;
  }
  if (options.quiet) return;
  note_short_names("--format-a", options.files.format_a);
  note_short_names("--format-b", options.files.format_b);
  fmt::print(
      "{}: {} {} = {} of {} x {}, K = {}, C {}; register {}, overflow {}, "
      "scales {}{}; evidence: {}\n",
      harmless(options.out), row.result, shape_text(arrays.d.shape), row.name, g.a.format->name,
      g.b.format->name, g.k, options.files.c.empty() ? "+0" : harmless(options.files.c), rounding,
      overflow, scale, options.alpha ? ", alpha " + alpha + " outside the unit" : "",
      unit::to_string(row.grade));
  if (arrays.nan_scales != 0)
    say("numemu: {}, {}: {}; outputs that use them are NaN", options.files.scale_a,
        options.files.scale_b, counted(arrays.nan_scales, "NaN scale"));
}

}  // namespace numemu::cli
