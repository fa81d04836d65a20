// numemu quantize: an array of numbers to codes with shared scales, and back to numbers.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "cli/block_options.hpp"
#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/float32_input.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct QuantizeOptions {
  BlockOptions block;
  ConversionOptions conversion;
  std::string in, from, out, codes, scales, tensor_scale, zero_points;
  std::string rule, scale_round, nonfinite = "propagate";
  bool full_range = false, no_tensor_scale = false, json = false, quiet = false;
};

/// The arrays that the run writes; only requested ones are allocated.
struct Outputs {
  Array y, codes, scales, zero_points;
  float tensor_scale = 1;

  Outputs(const QuantizeOptions& options, const BlockFormat& f, const BlockLayout& layout,
          const ArrayShape& shape)
      : y(ArrayType::float32, shape) {
    if (!options.codes.empty()) codes = Array(container_type(*f.element), shape);
    if (!options.scales.empty()) scales = Array(container_type(*f.scale), layout.scale_shape);
    if (!options.zero_points.empty()) {
      zero_points = Array(f.affine == Affine::min ? ArrayType::float32 : container_type(*f.element),
                          layout.scale_shape);
    }
  }
  BlockArrays arrays() {
    return {codes.data.data(), scales.data.data(), zero_points.data.data(), &tensor_scale};
  }
};

/// Everything that can be refused before anything is read.
void check_options(const QuantizeOptions& options, const BlockFormat& f) {
  for (const std::string& path :
       {options.out, options.codes, options.scales, options.tensor_scale, options.zero_points}) {
    if (!path.empty()) require_replaceable(path);
  }
  require_distinct_paths(
      {{"--out", options.out},
       {"--codes", options.codes},
       {"--scales", options.scales},
       {"--tensor-scale", options.tensor_scale},
       {"--zero-points", options.zero_points}},
      {{"--in", options.in, true, true}, {"--random-bits", options.conversion.random_bits, false}});
  check_tensor_scale(f, options.tensor_scale, options.no_tensor_scale);
  if (options.block.axis && (f.span == Span::tensor || f.span == Span::row))
    throw Error(fmt::format("--axis: {} has no blocks or channels along an axis", f.name));
  if (!options.zero_points.empty() && f.affine == Affine::sym)
    throw Error(fmt::format("--zero-points: {} has no zero points", f.name));
  const bool symmetric_integers =
      f.element->kind == Kind::integer && f.element->is_signed && f.affine == Affine::sym;
  if (options.full_range && !symmetric_integers)
    throw Error(fmt::format("--full-range: {} has no symmetric integers", f.name));
  if (!options.scale_round.empty() && (f.power_of_two_scale() || f.tensor_scale))
    throw Error(fmt::format("--scale-round: the scales of {} are not rounded up", f.name));
}

BlockQuantization quantization_of(const QuantizeOptions& options, const BlockFormat& f,
                                  const Conversion& conversion) {
  BlockQuantization how;
  how.format = &f;
  how.rule = &find_scale_rule(options.rule.empty() ? f.default_rule : options.rule, f);
  how.element = conversion;
  how.element.symmetric = !options.full_range;
  if (!options.scale_round.empty()) how.scale_rounding = parse_rounding(options.scale_round).mode;
  if (f.tensor_scale) how.scale_rounding = RoundingMode::rne;
  if (options.nonfinite == "ignore") how.nonfinite = Nonfinite::ignore;
  how.use_tensor_scale = !options.no_tensor_scale;
  return how;
}

/// What decoding the codes will need and this run does not write; "" for nothing.
std::string missing_to_decode(const QuantizeOptions& options, const BlockFormat& f) {
  if (options.codes.empty()) return "";
  std::vector<std::string> missing;
  if (options.scales.empty()) missing.emplace_back("--scales");
  if (f.tensor_scale && options.tensor_scale.empty() && !options.no_tensor_scale)
    missing.emplace_back("--tensor-scale");
  if (f.affine != Affine::sym && options.zero_points.empty()) missing.emplace_back("--zero-points");
  return joined(missing, " and ");
}

/// 10 log10 of signal over noise, over the elements that are finite before and after.
struct Sqnr {
  enum class Kind { measured, infinite, undefined };
  Kind kind = Kind::undefined;
  double db = 0;
  std::int64_t finite = 0, n = 0;

  const char* kind_text() const {
    return kind == Kind::measured ? "measured" : kind == Kind::infinite ? "infinite" : "undefined";
  }
  std::string text() const {
    if (finite == 0) return "undefined (no finite element)";
    const std::string over =
        finite == n ? "" : fmt::format(" over {} of {} elements, the finite ones", finite, n);
    if (kind == Kind::undefined) return "undefined (only zeros)" + over;
    return (kind == Kind::infinite ? "infinite" : fmt::format("{:.2f} dB", db)) + over;
  }
};

Sqnr sqnr_of(const float* x, const float* y, std::int64_t n) {
  const auto sum = [&](const auto& term) {
    return pairwise_sum(n, [&](std::int64_t i) {
      return std::isfinite(x[i]) && std::isfinite(y[i]) ? term(double{x[i]}, double{y[i]}) : 0.0;
    });
  };
  const double signal = sum([](double a, double) { return a * a; });
  const double noise = sum([](double a, double b) { return (b - a) * (b - a); });
  Sqnr sqnr;
  sqnr.n = n;
  for (std::int64_t i = 0; i < n; ++i) sqnr.finite += std::isfinite(x[i]) && std::isfinite(y[i]);
  if (noise > 0) {
    sqnr.kind = Sqnr::Kind::measured;
    sqnr.db = 10 * portable::log10(signal / noise);
  } else if (signal > 0) {
    sqnr.kind = Sqnr::Kind::infinite;
  }
  return sqnr;
}

void write_outputs(const QuantizeOptions& options, const BlockFormat& f, const Sidecar& about,
                   const Outputs& outputs) {
  OutputFiles files;
  // float32 scales and minima are numbers, everything else is codes of a format.
  const auto add = [&](std::string_view role, const std::string& path, const Format& format,
                       const Array& array) {
    if (path.empty()) return;
    if (array.type == ArrayType::float32) {
      files.add_numbers(role, path, find_format("float32"), array);
    } else {
      files.add_codes(role, path, format, array.shape, array.data.data(), about);
    }
  };
  add("values", options.out, find_format("float32"), outputs.y);
  add("codes", options.codes, *f.element, outputs.codes);
  add("scales", options.scales, *f.scale, outputs.scales);
  add("zero_points", options.zero_points, *f.element, outputs.zero_points);
  if (!options.tensor_scale.empty()) {
    files.add_array("tensor_scale", options.tensor_scale, ArrayType::float32, {},
                    &outputs.tensor_scale);
  }
  files.publish();
}

struct Summary {
  const QuantizeOptions& options;
  const BlockQuantization& how;
  const BlockLayout& layout;
  const Sidecar& about;
  const BlockCounts& counts;
  const ArrayShape& shape;
  const Sqnr& sqnr;
};

void print_json(const Summary& s) {
  const BlockFormat& f = *s.how.format;
  const FlagCounts& flags = s.counts.elements;
  Json json = {{"out", utf8_text(s.options.out)},
               {"block", f.name},
               {"format", f.element->name},
               {"scale", f.scale->name},
               {"granularity", to_string(f.span)}};
  if (s.about.axis) json["axis"] = *s.about.axis;
  json.update(Json({{"rounding", *s.about.rounding},
                    {"overflow", *s.about.overflow},
                    {"scale_rule", *s.about.scale_rule},
                    {"shape", s.shape},
                    {"scale_shape", s.layout.scale_shape},
                    {"n", s.layout.elements()},
                    {"blocks", s.counts.blocks},
                    {"zero_blocks", s.counts.zero_blocks},
                    {"nan_blocks", s.counts.nan_blocks},
                    {"bits_per_element", stored_bits(f, s.layout)},
                    {"flags",
                     {{"inexact", flags.inexact},
                      {"underflow", flags.underflow},
                      {"overflow", flags.overflow},
                      {"invalid", flags.invalid}}},
                    {"sqnr_db", s.sqnr.kind == Sqnr::Kind::measured ? Json(s.sqnr.db) : Json()},
                    {"sqnr", s.sqnr.kind_text()},
                    {"sqnr_elements", s.sqnr.finite}}));
  if (!f.power_of_two_scale())
    json["scale_rounding"] = to_string(Rounding{.mode = s.how.scale_rounding});
  if (f.tensor_scale) json["tensor_scale"] = s.counts.tensor_scale;
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Summary& s) {
  const BlockFormat& f = *s.how.format;
  std::string rule = *s.about.scale_rule;
  if (!f.power_of_two_scale()) rule += " " + to_string(Rounding{.mode = s.how.scale_rounding});
  std::string blocks = fmt::format("{} scales", s.counts.blocks);
  if (s.counts.zero_blocks > 0) blocks += fmt::format(", {} zero blocks", s.counts.zero_blocks);
  if (s.counts.nan_blocks > 0) blocks += fmt::format(", {} NaN blocks", s.counts.nan_blocks);
  if (f.tensor_scale) blocks += fmt::format(", tensor scale {:a}", s.counts.tensor_scale);
  fmt::print("{}: {} {} {} scale rule {}, {} {} elements, {}, {:.4g} bits: {}; SQNR {}\n",
             harmless(s.options.out), f.name, *s.about.rounding, *s.about.overflow, rule,
             shape_text(s.shape), s.layout.elements(), blocks, stored_bits(f, s.layout),
             flags_text(s.counts.elements), s.sqnr.text());
}

int run_quantize(const QuantizeOptions& options) {
  const BlockFormat& f = block_format_of(options.block);
  check_options(options, f);
  parse_rounding(options.conversion.rounding);
  parse_overflow(options.conversion.overflow);
  find_scale_rule(options.rule.empty() ? f.default_rule : options.rule, f);
  const Array x = read_float32(options.in, options.from);
  const int axis = options.block.axis_or_last();
  const BlockLayout layout = [&] {
    try {
      return block_layout(f, x.shape, axis);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", options.in, error.what()));
    }
  }();
  const SettledConversion settled = settle(options.conversion, *f.element, x.shape);
  const BlockQuantization how = quantization_of(options, f, settled.conversion);
  Outputs outputs(options, f, layout, x.shape);
  const float* numbers = x.as<float>();
  float* y = outputs.y.as<float>();
  const BlockCounts counts = quantize_blocks(how, layout, numbers, outputs.arrays(), y);
  Sidecar about;
  about.numemu = NUMEMU_VERSION;
  about.block = f.name;
  about.axis = sidecar_axis(f, x.shape, axis);
  about.packed = false;
  about.rounding = to_string(settled.conversion.rounding);
  about.overflow = to_string(settled.conversion.overflow);
  about.scale_rule = how.rule->name;
  about.seed = settled.seed;
  write_outputs(options, f, about, outputs);
  const std::string missing = missing_to_decode(options, f);
  if (!missing.empty() && !options.quiet)
    say("numemu: warning: {}: decoding it also needs the output of {}", options.codes, missing);
  if (!options.quiet) {
    note_short_names("--block", options.block.block);
    note_short_names("--format", options.block.format);
    note_short_names("--from", options.from);
  }
  if (options.quiet && !options.json) return kFine;
  const Sqnr sqnr = sqnr_of(numbers, y, layout.elements());
  (options.json ? print_json : print_text)({options, how, layout, about, counts, x.shape, sqnr});
  return kFine;
}

}  // namespace

void add_quantize(Program& program) {
  auto options = std::make_shared<QuantizeOptions>();
  Command& command = program.command("quantize", [options] { return run_quantize(*options); });
  add_block_options(command, options->block);
  command
      .option("--in X.npy", options->in,
              "Numbers that are exact in float32 (float16, float32, float64, intN), or codes "
              "with --from or a sidecar")
      .required();
  command.option("--from F", options->from, "Format of the codes in --in");
  command.option("--out Y.npy", options->out, "Quantized numbers as float32").required();
  command.option("--codes C.npy", options->codes, "Codes of the elements");
  command.option("--scales S.npy", options->scales, "Codes of the scales");
  command.option("--tensor-scale T.npy", options->tensor_scale, "Scale of the tensor: float32");
  command.option("--zero-points Z.npy", options->zero_points, "Zero points (zp) or minima (min)");
  command.option("--scale-rule NAME", options->rule,
                 "floor, ceil, even or nearest for powers of two; absmax or none for real "
                 "scales; mse, mse(17) for both (default: the block format's)");
  add_conversion_options(command, options->conversion);
  command
      .option("--scale-round,--scale-rounding R", options->scale_round,
              "Rounding of real scales to their format: rup (default; never clips) or rne; "
              "refused where the format fixes it: powers of two, and NVFP4 (rne)")
      .one_of({"rup", "rne"});
  command
      .option("--nonfinite MODE", options->nonfinite,
              "Blocks with NaN or Inf: propagate (the block is NaN) or ignore")
      .one_of({"propagate", "ignore"})
      .show_default();
  command.flag("--full-range", options->full_range,
               "Use the most negative code of symmetric integers");
  command.flag("--no-tensor-scale", options->no_tensor_scale, "Tensor scale 1 (nvfp4)");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "No summary, no warnings");
  add_threads(command);
}

}  // namespace numemu::cli
