// numemu gemm: a matrix product as a unit computes it, or one output with everything that led to
// it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/format_names.hpp"
#include "cli/gemm_arrays.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "cli/text_numbers.hpp"
#include "cli/unit_trace.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct Options {
  std::string unit, out, trace;
  GemmFiles files;
  std::optional<float> alpha;
  std::uint64_t seed = 0;
  bool reference = false, json = false, quiet = false;
};

/// A unit by name, or described in a JSON file.
const unit::Unit& unit_of(const std::string& name) {
  if (!name.ends_with(".json")) return unit::find_unit(name);
  static std::unique_ptr<unit::Unit> own;
  own = unit::make_unit(unit::read_description(name));
  return *own;
}

/// "m,n" inside the result.
std::pair<std::int64_t, std::int64_t> parse_place(const std::string& text, const unit::Gemm& g) {
  const auto fail = [&](std::string_view what) {
    return Error(
        fmt::format("--trace {}: expected m,n with m < {} and n < {}{}", text, g.m, g.n, what));
  };
  std::int64_t m = -1, n = -1;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, m);
  if (first.ec == std::errc{} && (first.ptr == end || first.ptr + 1 == end))
    throw fail(", the column n is missing");
  if (first.ec != std::errc{} || *first.ptr != ',') throw fail("");
  const auto second = std::from_chars(first.ptr + 1, end, n);
  if (second.ec != std::errc{} || second.ptr != end) throw fail("");
  if (m < 0 || m >= g.m || n < 0 || n >= g.n) throw fail("");
  return {m, n};
}

/// Rows at a time, so that long work shows itself; a stochastic register counts its elements in the
/// whole product, which is then one piece.
void multiply(const unit::Unit& unit, const unit::Gemm& g, const Options& options, Array& d) {
  constexpr std::int64_t kQuick = std::int64_t{1} << 30, kSlowRate = 1 << 6;
  const unit::UnitDescription* u = unit.description();
  const bool whole = u != nullptr && u->accumulator.rounding.stochastic();
  const std::int64_t row_macs = std::max<std::int64_t>(g.n * g.k, 1);
  const std::int64_t budget = options.reference ? kQuick / kSlowRate : kQuick;
  const std::int64_t slab = whole ? g.m : std::max<std::int64_t>(budget / row_macs, 1);
  const auto run = [&](const unit::Gemm& part) {
    if (options.reference) {
      unit.multiply_reference(part);
    } else {
      unit.multiply(part);
    }
  };
  if (slab >= g.m) return run(g);
  const std::int64_t kept = static_cast<std::int64_t>(g.a.gather->depth.size());
  const int d_bytes = bytes_of(d.type);
  const std::int64_t blocks =
      u != nullptr && u->scaling.block != 0 ? (g.k + u->scaling.block - 1) / u->scaling.block : 0;
  Progress progress("gemm", g.m, "rows", options.quiet);
  for (std::int64_t first = 0; first < g.m; first += slab) {
    unit::Gemm part = g;
    part.m = std::min(slab, g.m - first);
    unit::Gather rows = *g.a.gather;
    rows.row.assign(g.a.gather->row.begin() + first, g.a.gather->row.begin() + first + part.m);
    part.a.gather = &rows;
    const std::int64_t at = first * g.n * d_bytes;
    if (g.c != nullptr) part.c = static_cast<const std::byte*>(g.c) + at;
    part.d = static_cast<std::byte*>(g.d) + at;
    if (g.scale_a != nullptr) part.scale_a = g.scale_a + first * blocks;
    if (g.kept != nullptr) part.kept = g.kept + first * kept;
    run(part);
    progress.show(first + part.m);
  }
}

/// D = RNE(RNE(alpha * acc) + C), acc the product without C.
void apply_alpha(float alpha, const float* c, Array& d) {
  const FloatGuard guard;
  auto* values = d.as<float>();
  for (std::int64_t i = 0; i < d.elements(); ++i) {
    const float scaled = alpha * values[i];
    const float sum = scaled + (c == nullptr ? 0.0f : c[i]);
    values[i] = sum != sum ? std::bit_cast<float>(0x7fc00000u) : sum;
  }
}

/// Of the register; where C is added apart, of that addition, too.
std::string rounding_text(const unit::UnitDescription* u) {
  if (u == nullptr) return "host";
  const unit::Register& r = u->accumulator;
  if (r.format == nullptr && r.fraction == 0 && r.rounding == Rounding{}) return "exact";
  const bool apart = u->c_entry == unit::CEntry::after_rounding && !(u->c_rounding == r.rounding);
  return to_string(r.rounding) + (apart ? ", C " + to_string(u->c_rounding) : "");
}

std::string overflow_text(const unit::UnitDescription* u) {
  if (u == nullptr) return "ieee";
  const unit::Register& r = u->accumulator;
  if (r.format == nullptr) return r.integer == unit::IntegerOverflow::wrap ? "wrap" : "saturate";
  return r.overflow_to_infinity ? "infinity" : to_string(r.overflow);
}

void print_summary(const Options& options, const unit::Unit& unit, const GemmArrays& arrays) {
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
      "{}: {} [{}, {}] = {} of {} x {}, K = {}, C {}; register {}, overflow {}, "
      "scales {}{}; evidence: {}\n",
      harmless(options.out), row.result, g.m, g.n, row.name, g.a.format->name, g.b.format->name,
      g.k, options.files.c.empty() ? "+0" : harmless(options.files.c), rounding, overflow, scale,
      options.alpha ? ", alpha " + alpha + " outside the unit" : "", unit::to_string(row.grade));
  if (arrays.nan_scales != 0)
    say("numemu: {}, {}: {}; outputs that use them are NaN", options.files.scale_a,
        options.files.scale_b, counted(arrays.nan_scales, "NaN scale"));
}

/// Everything that can be refused before anything is read.
void check_options(const Options& options) {
  const GemmFiles& files = options.files;
  unit::parse_meta_layout(files.meta_layout);
  if (options.alpha && !options.trace.empty())
    throw Error("--alpha: not allowed with --trace: alpha is applied outside the unit");
  if (options.alpha && !std::isfinite(*options.alpha))
    throw Error("--alpha: expected a finite float32 number");
  if (options.out.empty() == options.trace.empty())
    throw Error(options.out.empty() ? "--out: expected a file (or --trace m,n)"
                                    : "--trace: not allowed with --out");
  for (const auto& [option, path] : {std::pair("--a", &files.a),
                                     {"--b", &files.b},
                                     {"--c", &files.c},
                                     {"--scale-a", &files.scale_a},
                                     {"--scale-b", &files.scale_b},
                                     {"--meta", &files.meta}})
    require_file(option, *path);
  if (!options.out.empty()) {
    require_file("--out", options.out);
    require_replaceable(options.out);
  }
  require_distinct_paths({{"--out", options.out}},
                         {{"--a", files.a},
                          {"--b", files.b},
                          {"--c", files.c},
                          {"--scale-a", files.scale_a},
                          {"--scale-b", files.scale_b},
                          {"--meta", files.meta, false},
                          {"--unit", options.unit.ends_with(".json") ? options.unit : "", false}});
}

int print_trace(const Options& options, const unit::Unit& unit, const unit::Gemm& g) {
  if (unit.description() == nullptr)
    throw Error("--trace: unit " + unit.row().name + " has no description and cannot be traced");
  const auto [i, j] = parse_place(options.trace, g);
  unit::Trace trace;
  unit::ReferenceDot(*unit.description(), g).code(i, j, &trace);
  fmt::print("{}", options.json ? trace_json(unit, g, i, j, trace).dump(2) + "\n"
                                : trace_text(unit, g, i, j, trace));
  return kFine;
}

int run(const Options& options) {
  check_options(options);
  const unit::Unit& unit = unit_of(options.unit);
  GemmArrays arrays;
  read_gemm(unit, options.files, arrays);
  arrays.gemm.seed = options.seed;
  if (!options.trace.empty()) return print_trace(options, unit, arrays.gemm);
  if (!options.alpha) {
    multiply(unit, arrays.gemm, options, arrays.d);
  } else {
    if (unit.d_format() == nullptr || unit.d_format()->name != "float32")
      throw Error(fmt::format("--alpha: expected a unit with float32 results, {} gives {}",
                              unit.row().name, unit.row().result));
    unit::Gemm product = arrays.gemm;
    product.c = nullptr;
    multiply(unit, product, options, arrays.d);
    apply_alpha(*options.alpha, static_cast<const float*>(arrays.gemm.c), arrays.d);
  }
  write_gemm_result(unit, options.out, arrays.d, options.seed);
  print_summary(options, unit, arrays);
  return kFine;
}

}  // namespace

void add_gemm(Program& program) {
  auto options = std::make_shared<Options>();
  Command& command =
      program.command("gemm", "D = A x B + C as a matrix unit computes it, bit for bit",
                      [options] { return run(*options); });
  GemmFiles& files = options->files;
  command.option("--unit U", options->unit, "A unit's name (numemu units) or a file unit.json")
      .required();
  command.option("--a A.npy", files.a, "Codes of A, M x K (sparse units: the kept ones)")
      .required();
  command.option("--b B.npy", files.b, "Codes of B, K x N").required();
  command.option("--c C.npy", files.c, "C, M x N (default: +0)");
  command.option("--out D.npy", options->out, "D, M x N");
  command.option("--format-a F", files.format_a, "Format of A if the unit takes any format");
  command.option("--format-b F", files.format_b, "Format of B if the unit takes any format");
  command.option("--format-d F", files.format_d, "Format of D; must be the unit's");
  command.option("--scale-a SA.npy", files.scale_a, "Block scales of A, M x ceil(K / block)");
  command.option("--scale-b SB.npy", files.scale_b, "Block scales of B, ceil(K / block) x N");
  command.option("--meta E.npy", files.meta, "Metadata of a sparse A");
  command.option("--meta-layout LAYOUT", files.meta_layout, "index or ptx");
  command.option("--alpha X", options->alpha, "D = RNE(RNE(alpha x AB) + C) in float32");
  command.option("--seed S", options->seed, "Seed of stochastic registers (default: 0)");
  command.option("--trace m,n", options->trace, "Print the trace of output m,n instead");
  command.flag("--reference", options->reference, "Use the reference implementation (slow)");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "No progress, no summary");
  add_threads(command);
}

}  // namespace numemu::cli
