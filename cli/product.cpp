#include "cli/product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/array_files.hpp"
#include "api/text/table.hpp"
#include "api/text/trace.hpp"
#include "cli/format_names.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

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

namespace {

using api::ComparedOutput;
using api::Product;
using api::TracedOutput;
using unit::Nearer;

constexpr std::int64_t kWorst = 5;

/// The file that stands in the place of a number; "" for a number.
std::string number_file(const std::string& text) { return api::is_results_file(text) ? text : ""; }

/// Options that only --requantize reads, and those that it does not go with.
void check_epilogue_options(const ProductOptions& options) {
  require_requantize(options.epilogue);
  if (options.epilogue.requantize.empty()) return;
  for (const auto& [option, given] : {std::pair("--trace", !options.trace.empty()),
                                      {"--compare", !options.compare.empty()},
                                      {"--flags", !options.flags.empty()},
                                      {"--alpha", options.alpha.has_value()}}) {
    if (given)
      throw usage_error(
          fmt::format("{}: not allowed with --requantize, which follows the unit", option));
  }
}

/// Throws Error for what can be refused before anything is read.
void check_product_options(const ProductOptions& options) {
  const api::ProductFiles& files = options.files;
  api::check_meta_layout(files);
  if (options.alpha && !options.trace.empty())
    throw usage_error("--alpha: not allowed with --trace: alpha is applied outside the unit");
  if (options.alpha && !std::isfinite(*options.alpha))
    throw usage_error("--alpha: expected a finite float32 number");
  const bool compares = !options.compare.empty();
  check_epilogue_options(options);
  if (options.out.empty() && options.trace.empty() && !compares)
    throw usage_error("--out: expected a file (or --trace PLACE, --compare OTHER)");
  if (!options.trace.empty() && (!options.out.empty() || compares))
    throw usage_error(compares ? "--trace: not allowed with --compare"
                               : "--trace: not allowed with --out");
  if (options.worst && !compares) throw usage_error("--worst: expected --compare OTHER, too");
  if (compares && options.alpha)
    throw usage_error("--compare: not allowed with --alpha, which is applied outside the unit");
  if (!options.flags.empty() && options.out.empty() && options.trace.empty())
    throw usage_error("--flags: expected --out, too");
  if (options.alpha && !options.flags.empty())
    throw usage_error("--flags: not allowed with --alpha, which is applied outside the unit");
  if (!options.flags.empty() && !options.trace.empty())
    throw usage_error("--flags: not allowed with --trace");
  for (const auto& [option, path] : {std::pair("--a", &files.a),
                                     {"--b", &files.b},
                                     {"--c", &files.c},
                                     {"--scale-a", &files.scale_a},
                                     {"--scale-b", &files.scale_b},
                                     {"--meta", &files.meta},
                                     {"--bias", &options.epilogue.bias}})
    api::require_file(option, *path);
  for (const auto& [option, path] :
       {std::pair("--out", &options.out), {"--flags", &options.flags}}) {
    if (path->empty()) continue;
    api::require_file(option, *path);
    require_replaceable(*path);
  }
  require_distinct_paths(
      {{"--out", options.out}, {"--flags", options.flags}},
      {{"--a", files.a},
       {"--b", files.b},
       {"--c", files.c},
       {"--scale-a", files.scale_a},
       {"--scale-b", files.scale_b},
       {"--meta", files.meta, false},
       {"--bias", options.epilogue.bias, false},
       {"--factor", number_file(options.epilogue.factor), false},
       {"--multiplier", number_file(options.epilogue.multiplier), false},
       {"--shift", number_file(options.epilogue.shift), false},
       {"--compare", api::is_results_file(options.compare) ? options.compare : ""},
       {"--unit", api::is_unit_file(options.unit) ? options.unit : "", false}});
}

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

/// A line, or with --json an object; nothing with --quiet.
void print_summary(const ProductOptions& options, const Product& p) {
  const unit::UnitRow& row = p.unit->row();
  const unit::Gemm& g = p.gemm;
  const unit::UnitDescription* u = p.unit->description();
  const std::string rounding = rounding_text(u), overflow = overflow_text(u);
  const std::string scale =
      g.scale_a == nullptr ? "none"
                           : fmt::format("{} per {}", u->scaling.format->name, u->scaling.block);
  const bool requantizes = !options.epilogue.requantize.empty();
  const std::string alpha = options.alpha ? fmt::format("{}", *options.alpha) : "none";
  if (options.json) {
    fmt::print("{}\n",
               Json({{"out", utf8_text(options.out)},
                     {"unit", row.name},
                     {"grade", unit::to_string(row.grade)},
                     {"format_a", g.a.format->name},
                     {"format_b", g.b.format->name},
                     {"format_d", requantizes ? options.epilogue.format : row.result},
                     {"rounding", rounding},
                     {"overflow", overflow},
                     {"scale", scale},
                     {"m", g.m},
                     {"n", g.n},
                     {"k", g.k},
                     {"products", p.batch.count},
                     {"c", !options.files.c.empty()},
                     {"alpha", options.alpha ? Json(*options.alpha) : Json()},
                     {"requantize", requantizes ? Json(options.epilogue.requantize) : Json()},
                     {"seed", options.files.seed},
                     {"nan_scales", p.nan_scales}})
                   .dump(2));
    return;
  }
  if (options.quiet) return;
  note_short_names("--format-a", options.files.format_a);
  note_short_names("--format-b", options.files.format_b);
  fmt::print(
      "{}: {} {} = {} of {} x {}, K = {}, C {}; register {}, overflow {}, "
      "scales {}{}; evidence: {}\n",
      harmless(options.out), requantizes ? options.epilogue.format : row.result,
      shape_text(p.d.shape), row.name, g.a.format->name, g.b.format->name, g.k,
      options.files.c.empty() ? "+0" : harmless(options.files.c), rounding, overflow, scale,
      requantizes ? fmt::format(", requantized by {} outside the unit", options.epilogue.requantize)
      : options.alpha ? ", alpha " + alpha + " outside the unit"
                      : "",
      unit::to_string(row.grade));
  if (p.nan_scales != 0)
    say("numemu: {}, {}: {}; outputs that use them are NaN", options.files.scale_a,
        options.files.scale_b, counted(p.nan_scales, "NaN scale"));
}

void print_trace(const ProductOptions& options, const Product& p) {
  if (p.unit->description() == nullptr) api::trace(p, {});  // refuses
  const api::Place place = api::parse_place("--trace", options.trace, p);
  const TracedOutput traced = api::trace(p, place);
  if (options.json) {
    Json json = api::trace_json(traced);
    api::add_place(place, p, json);
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", api::trace_text(traced, api::place_text(place, p)));
  }
}

/// Two texts as two columns.
std::string side_by_side(const std::string& left, const std::string& right) {
  const auto lines_of = [](const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  };
  std::vector<std::string> a = lines_of(left), b = lines_of(right);
  std::size_t width = 0;
  for (const std::string& line : a) width = std::max(width, line.size());
  a.resize(std::max(a.size(), b.size()));
  b.resize(a.size());
  std::string text;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::string line = fmt::format("{:{}} | {}", a[i], width, b[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// Counts, which of the two is nearer to the exact sums, and the worst outputs with the step in
/// which the two part.
class ComparisonWords {
 public:
  ComparisonWords(const api::Comparison& comparison, const std::string& other)
      : c_(comparison),
        p_(*comparison.product),
        unit_(p_.unit->row().name),
        other_(c_.other == nullptr ? harmless(other) : c_.other->row().name) {}

  void print() const {
    fmt::print("{} against {}: {} of {} outputs differ", other_, unit_, c_.differ, c_.outputs);
    if (c_.differ == 0) return fmt::print("\n");
    fmt::print(", by at most {}\n", ulps_text(c_.most_ulps));
    fmt::print("nearer to the exact sum: {} {}, {} {}, neither {}{}\n", other_, c_.other_nearer,
               unit_, c_.unit_nearer, c_.judged - c_.other_nearer - c_.unit_nearer,
               c_.judged < c_.differ ? fmt::format(" (of {} outputs judged)", c_.judged) : "");
    const bool whole = api::whole_numbers(*p_.unit, p_.batch.first);
    std::vector<std::vector<std::string>> rows;
    for (const ComparedOutput& one : c_.worst)
      rows.push_back({"D[" + api::place_text(one.place, p_) + "]", api::value_text(one.own, whole),
                      api::value_text(one.given, whole), ulps_text(one.ulps),
                      api::value_text(one.exact, whole), nearer_name(one.nearer)});
    fmt::print("{}",
               api::text_table({"output", unit_, other_, "apart", "exact sum", "nearer"}, rows));
    for (const ComparedOutput& one : c_.worst) print_parting(one);
  }

  Json json() const {
    Json json = {{"unit", unit_},
                 {"other", utf8_text(other_)},
                 {"outputs", c_.outputs},
                 {"differ", c_.differ},
                 {"judged", c_.judged},
                 {"unit_nearer", c_.unit_nearer},
                 {"other_nearer", c_.other_nearer}};
    if (c_.most_ulps) json["most_ulps"] = *c_.most_ulps;
    Json list = Json::array();
    for (const ComparedOutput& one : c_.worst) {
      Json entry = {{"unit", hex_text(one.own)},
                    {"other", hex_text(one.given)},
                    {"exact", hex_text(one.exact)},
                    {"nearer", nearer_name(one.nearer)}};
      api::add_place(one.place, p_, entry);
      if (one.ulps) entry["ulps"] = *one.ulps;
      add_parting(one, entry);
      list.push_back(entry);
    }
    json["worst"] = list;
    return json;
  }

 private:
  std::string nearer_name(Nearer n) const {
    return n == Nearer::first ? unit_ : n == Nearer::second ? other_ : "neither";
  }
  static std::string ulps_text(const std::optional<std::uint64_t>& ulps) {
    return ulps ? counted(static_cast<std::int64_t>(*ulps), "ulp") : "NaN";
  }
  TracedOutput traced(const unit::Unit& unit, const ComparedOutput& one,
                      unit::DivergentSide& side) const {
    const api::Place& place = one.place;
    return {unit, unit::slice(*p_.unit, p_.batch, place.product, place.product + 1).first, place.i,
            place.j, std::move(side.trace)};
  }
  static api::TraceWindow window(const unit::DivergentSide& side) {
    return {side.begin, side.end, side.begin_term, side.end_term};
  }

  void print_parting(const ComparedOutput& one) const {
    const std::string place = api::place_text(one.place, p_);
    if (c_.other == nullptr) {
      for (const std::string& line : api::explain(c_, one)) fmt::print("D[{}]: {}\n", place, line);
      return;
    }
    unit::Divergence d = api::find_divergence(c_, one);
    fmt::print("\nD[{}] parts in {}\n", place, unit::divergence_line(d));
    if (d.agreed > 0) fmt::print("the first {} agree\n", counted(d.agreed, "product"));
    const TracedOutput first = traced(*p_.unit, one, d.first),
                       second = traced(*c_.other, one, d.second);
    fmt::print("{}", side_by_side(unit_ + "\n" + api::steps_text(first, window(d.first)),
                                  other_ + "\n" + api::steps_text(second, window(d.second))));
  }

  void add_parting(const ComparedOutput& one, Json& json) const {
    if (c_.other == nullptr) {
      json["explanation"] = Json(api::explain(c_, one));
      return;
    }
    unit::Divergence d = api::find_divergence(c_, one);
    json["parts_in"] = unit::divergence_line(d);
    json["products_agreed"] = d.agreed;
    json["unit_steps"] = api::steps_json(traced(*p_.unit, one, d.first), window(d.first));
    json["other_steps"] = api::steps_json(traced(*c_.other, one, d.second), window(d.second));
  }

  const api::Comparison& c_;
  const Product& p_;
  const std::string unit_, other_;
};

}  // namespace

int run_product(const ProductOptions& options) {
  check_product_options(options);
  const api::UnitPtr unit = api::open_unit(options.unit);
  if (!options.flags.empty()) unit::require_flags(*unit);
  api::ProductFiles files = options.files;
  files.b_by_columns = options.b_layout == "nk";
  api::EpilogueFiles epilogue = options.epilogue;
  const bool requantizes = !epilogue.requantize.empty();
  if (requantizes && !files.format_d.empty())
    epilogue.format = find_format(std::exchange(files.format_d, "")).name;
  const std::unique_ptr<Product> product = api::read_product(unit, files);
  if (!options.trace.empty()) {
    print_trace(options, *product);
    return kFine;
  }
  std::optional<unit::Epilogue> follows;
  if (requantizes) follows = api::read_epilogue(*product, epilogue);
  const char* const name = files.shape == api::ProductShape::dots ? "dot" : "gemm";
  api::multiply(*product, {.alpha = options.alpha,
                           .reference = options.reference,
                           .flags = !options.flags.empty(),
                           .on_progress = progress_of(name, options.quiet)});
  if (!options.compare.empty()) {
    const api::Comparison comparison = api::compare(
        *product, options.compare, static_cast<std::size_t>(options.worst.value_or(kWorst)));
    const ComparisonWords words(comparison, options.compare);
    if (options.json) {
      fmt::print("{}\n", words.json().dump(2));
    } else {
      words.print();
    }
  }
  if (options.out.empty()) return kFine;
  if (follows) {
    api::write_codes(api::requantized(*product, *follows, find_format(epilogue.format)),
                     options.out);
  } else {
    api::write_result(*product, options.out, options.flags);
  }
  ProductOptions told = options;
  told.epilogue = epilogue;
  if (options.compare.empty()) print_summary(told, *product);
  return kFine;
}

void add_product_options(Command& command, ProductOptions& options) {
  api::ProductFiles& files = options.files;
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
  command.option("--seed S", files.seed, "Seed of stochastic registers (default: 0)");
  command.flag("--reference", options.reference, "Use the reference implementation (slow)");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No progress, no summary");
  add_threads(command);
}

}  // namespace numemu::cli
