// numemu decode: codes to the numbers they represent, exactly or not at all.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/input_arrays.hpp"
#include "cli/talk.hpp"
#include "cli/text_numbers.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/storage/codebook_identity.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct DecodeOptions {
  std::string format, in, out, dtype, order, tensor, codes;
  bool packed = false, text = false, json = false, quiet = false;
};

/// float32 if that is exact for every finite value, else float64; the requested type or an Error.
const Format& target_of(const DecodeOptions& options, const Format& format) {
  const std::vector<std::string> candidates = options.dtype.empty()
                                                  ? std::vector<std::string>{"float32", "float64"}
                                                  : std::vector<std::string>{options.dtype};
  for (const std::string& name : candidates) {
    if (exact_in(format, find_format(name))) return find_format(name);
  }
  const bool wider = options.dtype == "float32" && exact_in(format, find_format("float64"));
  throw Error(fmt::format("{}: values of {} are not exact in {}: use --text{}", options.in,
                          format.name, candidates.back(), wider ? " or --dtype float64" : ""));
}

/// Every value is exact, so only the infinities need a rule: they stay.
Array decode_array(const Codes& codes, const Format& target) {
  Array values(container_type(target), codes.array.shape);
  Conversion conversion;
  conversion.format = &target;
  conversion.overflow = Overflow::propagate;
  convert_codes(conversion, *codes.format, codes.array.data.data(), codes.array.elements(),
                values.data.data());
  return values;
}

void print_summary(const DecodeOptions& options, const Codes& codes, const std::string& dtype) {
  const std::int64_t n = codes.array.elements();
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(options.out)},
                             {"format", codes.format->name},
                             {"dtype", dtype},
                             {"shape", codes.array.shape},
                             {"n", n}})
                           .dump(2));
    return;
  }
  if (options.quiet) return;
  fmt::print("{}: {} of {} {}, {}\n", harmless(options.out), dtype, codes.format->name,
             shape_text(codes.array.shape), counted(n, "element"));
}

int run_decode(const DecodeOptions& options) {
  const bool to_stdout = options.text && options.out == "-";
  const bool from_text = !options.codes.empty();
  if (!from_text) require_file("--in", options.in);
  if (!options.text) require_file("--out", options.out);
  if (!to_stdout) require_replaceable(options.out);
  require_distinct_paths({{"--out", options.out, !options.text}},
                         {{"--in", options.in, !from_text, true}});
  if (from_text && (options.packed || !options.order.empty() || !options.tensor.empty()))
    throw Error("--codes hex: not allowed with --packed, --order or --tensor");
  if (options.text && !options.dtype.empty())
    throw Error("--dtype: not allowed with --text, which has no type");
  CodesTold told;
  if (!options.format.empty()) told.format = &find_format(options.format);
  told.packed = options.packed;
  if (!options.order.empty()) told.order = parse_bit_order(options.order);
  told.tensor = options.tensor;
  if (from_text && told.format == nullptr)
    throw Error("--codes hex: expected --format, the format of the codes");
  const Codes codes = [&] {
    if (from_text) return read_text_codes(options.in, *told.format);
    StoredArray in = open_input(options.in);
    return read_codes(in, told);
  }();
  require_distinct_paths({{"--out", options.out, !options.text}},
                         {{"--format", codebook_file(codes.format->name), false}});
  const Format* const target = options.text ? nullptr : &target_of(options, *codes.format);
  if (!options.quiet) note_short_names("--format", options.format);
  if (options.text) {
    write_text_numbers(options.out, *codes.format, codes.array);
    if (!to_stdout) print_summary(options, codes, "text");
    return kFine;
  }
  write_numbers(options.out, *target, decode_array(codes, *target), options.tensor);
  print_summary(options, codes, target->name);
  return kFine;
}

}  // namespace

void add_decode(Program& program) {
  auto options = std::make_shared<DecodeOptions>();
  Command& command = program.command("decode", [options] { return run_decode(*options); });
  command.option("--format F", options->format,
                 "A name, alias, descriptor or codebook(FILE) (default: the sidecar's)");
  command.option("--in CODES.npy", options->in, "Codes (.npy or .safetensors)").required();
  command.option("--out X.npy", options->out, "Numbers; with --text, - is the standard output")
      .required();
  command
      .option("--dtype TYPE", options->dtype,
              "float32 or float64 (default: the first that is exact for every value)")
      .one_of({"float32", "float64"});
  command.flag("--packed", options->packed, "Codes are packed in rows (default: from the sidecar)");
  command.option("--order ORDER", options->order, "Order of packed codes: low-first or high-first");
  command.option("--tensor NAME", options->tensor, "Tensor of a .safetensors file");
  command
      .option("--codes hex", options->codes,
              "hex: --in has one code of --format per line, such as 0x3c (- is standard input)")
      .one_of({"hex"});
  command.flag("--text", options->text, "Write one hexadecimal float per line");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "Print no summary (--json still prints)");
  add_threads(command);
}

}  // namespace numemu::cli
