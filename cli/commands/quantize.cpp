// numemu quantize: an array of numbers to codes with shared scales, and back to numbers.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/scaling/clipping.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

using api::Sqnr;

struct QuantizeOptions {
  api::QuantizeRequest request;
  std::string nonfinite = "propagate";
  bool json = false, quiet = false;
};

const char* sqnr_kind(const Sqnr& s) {
  return s.kind == Sqnr::Kind::measured   ? "measured"
         : s.kind == Sqnr::Kind::infinite ? "infinite"
                                          : "undefined";
}

/// An element times its scale may be beyond float32, where nothing overflowed in its format.
std::string infinite_text(const Sqnr& s) {
  if (s.became_infinite == 0) return "";
  return fmt::format("; {} became infinite", counted(s.became_infinite, "finite number"));
}

std::string sqnr_text(const Sqnr& s) {
  if (s.finite == 0) return "undefined (no finite element)";
  const std::string over =
      s.finite == s.n ? "" : fmt::format(" over {} of {} elements, the finite ones", s.finite, s.n);
  if (s.kind == Sqnr::Kind::undefined) return "undefined (only zeros)" + over;
  return (s.kind == Sqnr::Kind::infinite ? "infinite" : fmt::format("{:.2f} dB", s.db)) + over;
}

void print_json(const std::string& out, const api::QuantizedFile& file, const Sqnr& sqnr) {
  const api::QuantizedArray& q = file.quantized;
  const BlockFormat& f = *q.how.format;
  const Sidecar& about = file.about;
  Json json = {{"out", utf8_text(out)},
               {"block", f.name},
               {"format", f.element->name},
               {"scale", f.scale->name},
               {"granularity", to_string(f.span)}};
  if (about.axis) json["axis"] = *about.axis;
  json.update(Json({{"rounding", *about.rounding},
                    {"overflow", *about.overflow},
                    {"scale_rule", about.scale_rule.value_or("given")},
                    {"shape", file.numbers.shape},
                    {"scale_shape", q.layout.scale_shape},
                    {"n", q.layout.elements()},
                    {"blocks", q.counts.blocks},
                    {"zero_blocks", q.counts.zero_blocks},
                    {"nan_blocks", q.counts.nan_blocks},
                    {"bits_per_element", stored_bits(f, q.layout)},
                    {"flags", flags_json(q.counts.elements)},
                    {"sqnr_db", sqnr.kind == Sqnr::Kind::measured ? Json(sqnr.db) : Json()},
                    {"sqnr", sqnr_kind(sqnr)},
                    {"sqnr_elements", sqnr.finite},
                    {"became_infinite", sqnr.became_infinite}}));
  if (!f.power_of_two_scale())
    json["scale_rounding"] = to_string(Rounding{.mode = q.how.scale_rounding});
  if (f.tensor_scale) json["tensor_scale"] = q.counts.tensor_scale;
  fmt::print("{}\n", json.dump(2));
}

void print_quantized(const std::string& out, const api::QuantizedFile& file, const Sqnr& sqnr) {
  const api::QuantizedArray& q = file.quantized;
  const BlockFormat& f = *q.how.format;
  const Sidecar& about = file.about;
  std::string rule = about.scale_rule.value_or("given");
  if (!f.power_of_two_scale()) rule += " " + to_string(Rounding{.mode = q.how.scale_rounding});
  std::string blocks = fmt::format("{} scales", q.counts.blocks);
  if (q.counts.zero_blocks > 0) blocks += fmt::format(", {} zero blocks", q.counts.zero_blocks);
  if (q.counts.nan_blocks > 0) blocks += fmt::format(", {} NaN blocks", q.counts.nan_blocks);
  if (f.tensor_scale) blocks += fmt::format(", tensor scale {:a}", q.counts.tensor_scale);
  fmt::print("{}: {} {} {} scale rule {}, {} {} elements, {}, {:.4g} bits: {}; SQNR {}{}\n",
             harmless(out), f.name, *about.rounding, *about.overflow, rule,
             shape_text(file.numbers.shape), q.layout.elements(), blocks, stored_bits(f, q.layout),
             flags_text(q.counts.elements), sqnr_text(sqnr), infinite_text(sqnr));
}

int run_quantize(const QuantizeOptions& options) {
  api::QuantizeRequest request = options.request;
  request.options.ignore_nonfinite = options.nonfinite == "ignore";
  const api::QuantizedFile file = api::quantize_file(request);
  if (!options.quiet) {
    if (!file.missing.empty())
      say("numemu: warning: {}: decoding it also needs the output of {}", request.parts.codes,
          file.missing);
    note_short_names("--block", request.block.block);
    note_short_names("--format", request.block.format);
    note_short_names("--from", request.from);
    const std::string clips =
        clipping_note(*file.quantized.how.format, file.about.scale_rule.value_or(""));
    if (!clips.empty()) say("numemu: note: {}", clips);
  }
  if (options.quiet && !options.json) return kFine;
  const Sqnr sqnr = api::sqnr_of(file.numbers, file.quantized.values);
  (options.json ? print_json : print_quantized)(request.out, file, sqnr);
  return kFine;
}

}  // namespace

void add_quantize(Program& program) {
  auto [command, options] = program.command<QuantizeOptions>("quantize", run_quantize);
  api::QuantizeRequest& request = options.request;
  add_block_options(command, request.block);
  command
      .option("--in X.npy", request.in,
              "Numbers that are exact in float32 (float16, float32, float64, intN), or codes "
              "with --from or a sidecar")
      .required();
  command.option("--from F", request.from, "Format of the codes in --in");
  command.option("--out Y.npy", request.out, "Quantized numbers as float32").required();
  command.option("--codes C.npy", request.parts.codes, "Codes of the elements");
  command.option("--scales S.npy", request.parts.scales, "Codes of the scales");
  command.option("--tensor-scale T.npy", request.parts.tensor_scale,
                 "Scale of the tensor: float32");
  command.option("--zero-points Z.npy", request.parts.zero_points,
                 "Zero points (zp) or minima (min)");
  command.option(
      "--scale-rule NAME", request.options.rule,
      "floor, ceil, even or nearest for powers of two; absmax, four-over-six or none "
      "for real scales; mse, mse(17), pow2(RULE) and others of docs/formats.md (default: the "
      "block format's)");
  command.option("--scales-in S.npy", request.scales_in,
                 "Codes of the scales, in place of a rule's: of the shape that --scales writes");
  command.option("--tensor-scale-in T.npy", request.tensor_scale_in,
                 "Scale of the tensor, float32, in place of the one from its largest magnitude");
  add_conversion_options(command, request.options.words, request.random_bits);
  command
      .option(
          "--scale-round,--scale-rounding R", request.options.scale_round,
          "Rounding of real scales to their format: rup (default; never clips) or rne; "
          "refused where the format fixes it: powers of two, and scales beside one of the tensor "
          "(rne)")
      .one_of({"rup", "rne"});
  command
      .option("--nonfinite MODE", options.nonfinite,
              "Blocks with NaN or Inf: propagate (the block is NaN) or ignore")
      .one_of({"propagate", "ignore"})
      .show_default();
  command.flag("--full-range", request.options.full_range,
               "Use the most negative code of symmetric integers");
  command.flag("--no-tensor-scale", request.options.no_tensor_scale, "Tensor scale 1 (nvfp4)");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No summary, no warnings");
  add_threads(command);
}

}  // namespace numemu::cli
