// numemu encode: an array of numbers, or of another format's codes, to codes; one rounding each.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/format_names.hpp"
#include "cli/input_arrays.hpp"
#include "cli/progress.hpp"
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

constexpr std::int64_t kChunk = std::int64_t{1} << 24;  // elements between two looks at the clock
constexpr std::int64_t kLong = std::int64_t{1} << 27;   // elements from which progress is shown

struct EncodeOptions {
  std::string format, in, out, from, flags, order, tensor, codes;
  ConversionOptions conversion;
  bool packed = false, text = false, json = false, quiet = false;
};

/// What was encoded, for the sidecar and the summary.
struct Result {
  std::string from;
  Array codes, flags;
  FlagCounts counts;
};

/// Converts in chunks, so that long work can show itself.
Result encode_array(const Codes& source, const Conversion& conversion,
                    const EncodeOptions& options) {
  const Format& format = *conversion.format;
  const std::int64_t n = source.array.elements();
  Result result{source.format->name,
                Array(container_type(format), source.array.shape),
                Array(ArrayType::uint8, options.flags.empty() ? ArrayShape{0} : source.array.shape),
                {}};
  Progress progress("encode", n, "elements", options.quiet || n < kLong);
  const int in_bytes = bytes_of(source.array.type), out_bytes = bytes_of(result.codes.type);
  for (std::int64_t first = 0; first < n; first += kChunk) {
    const std::int64_t count = std::min(kChunk, n - first);
    result.counts += convert_codes(
        conversion, *source.format, source.array.data.data() + first * in_bytes, count,
        result.codes.data.data() + first * out_bytes,
        options.flags.empty() ? nullptr : result.flags.as<std::uint8_t>() + first, first);
    progress.show(first + count);
  }
  return result;
}

/// A line may have more digits than the 64 bits of a Value hold. It is refused if these are too few
/// for a single rounding.
void check_precision(const EncodeOptions& options, const Conversion& conversion, const Value& value,
                     std::size_t line) {
  constexpr int kSignificand = 64;
  const int needed = conversion.format->mantissa_bits + 3 + conversion.rounding.random_bits;
  if (!value.sticky || needed <= kSignificand) return;
  throw Error(fmt::format("{}: line {}: expected at most {} significant bits for {} with {}",
                          options.in, line, kSignificand, conversion.format->name,
                          to_string(conversion.rounding)));
}

Result encode_text(const std::vector<Value>& values, const Conversion& conversion,
                   const EncodeOptions& options) {
  const Format& format = *conversion.format;
  const ArrayShape shape = {static_cast<std::int64_t>(values.size())};
  Result result{"text", Array(container_type(format), shape), Array(ArrayType::uint8, shape), {}};
  const int bytes = bytes_of(result.codes.type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    check_precision(options, conversion, values[i], i + 1);
    const Encoded encoded = encode_element(conversion, values[i], static_cast<std::int64_t>(i));
    const std::uint64_t container = encoded.code << format.container_shift;
    std::memcpy(result.codes.data.data() + i * bytes, &container, static_cast<std::size_t>(bytes));
    result.flags.as<std::uint8_t>()[i] = encoded.flags;
    result.counts.add(encoded.flags);
  }
  return result;
}

Result encode(const EncodeOptions& options, const Format& format, SettledConversion& settled) {
  if (options.text && options.codes.empty()) {
    const std::vector<Value> values = read_text_numbers(options.in);
    settled = settle(options.conversion, format, {static_cast<std::int64_t>(values.size())});
    return encode_text(values, settled.conversion, options);
  }
  CodesTold told;
  if (!options.from.empty()) told.format = &find_format(options.from);
  told.tensor = options.tensor;
  told.told_by = "--from";
  const Codes source = [&] {
    if (options.text) return read_text_codes(options.in, *told.format);
    StoredArray in = open_input(options.in);
    return read_numbers(in, told);
  }();
  settled = settle(options.conversion, format, source.array.shape);
  return encode_array(source, settled.conversion, options);
}

void print_summary(const EncodeOptions& options, const Result& result, const Sidecar& about) {
  const FlagCounts& counts = result.counts;
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(options.out)},
                             {"format", *about.format},
                             {"rounding", *about.rounding},
                             {"overflow", *about.overflow},
                             {"from", result.from},
                             {"shape", result.codes.shape},
                             {"packed", *about.packed},
                             {"n", result.codes.elements()},
                             {"flags",
                              {{"inexact", counts.inexact},
                               {"underflow", counts.underflow},
                               {"overflow", counts.overflow},
                               {"invalid", counts.invalid}}}})
                           .dump(2));
    return;
  }
  if (options.quiet) return;
  fmt::print("{}: {} {} {} of {} {}, {}: {}\n", harmless(options.out), *about.format,
             *about.rounding, *about.overflow, result.from, shape_text(result.codes.shape),
             counted(result.codes.elements(), "element"), flags_text(counts));
}

/// Everything that can be refused before anything is read.
void check_options(const EncodeOptions& options, const Format& format) {
  if (!options.text) require_file("--in", options.in);
  for (const auto& [option, path] :
       {std::pair("--out", &options.out), {"--flags", &options.flags}}) {
    require_file(option, *path);
    if (!path->empty()) require_replaceable(*path);
  }
  require_file("--random-bits", options.conversion.random_bits);
  const std::string from = options.from.empty() ? "" : find_format(options.from).name;
  require_distinct_paths({{"--out", options.out}, {"--flags", options.flags}},
                         {{"--in", options.in, !options.text, true},
                          {"--random-bits", options.conversion.random_bits, false},
                          {"--format", codebook_file(format.name), false},
                          {"--from", codebook_file(from), false}});
  if (!options.order.empty() && !options.packed)
    throw Error("--order: expected together with --packed");
  if (options.packed) {
    check_bit_order(options.order.empty() ? BitOrder::low_first : parse_bit_order(options.order),
                    format.bits);
  }
  if (!options.codes.empty() && (!options.text || options.from.empty()))
    throw Error("--codes hex: expected --text and --from FORMAT, the format of the codes");
  if (options.text && options.codes.empty() && !options.from.empty())
    throw Error(
        "--from: not allowed with --text, whose numbers have no format (for codes: --codes hex)");
}

int run_encode(const EncodeOptions& options) {
  const Format& format = find_format(options.format);
  check_options(options, format);
  SettledConversion settled = settle(
      {options.conversion.rounding, options.conversion.overflow, "", options.conversion.seed},
      format, {});
  const Result result = encode(options, format, settled);
  Sidecar about;
  about.numemu = NUMEMU_VERSION;
  about.format = format.name;
  about.packed = options.packed;
  if (options.packed)
    about.order = options.order.empty() ? BitOrder::low_first : parse_bit_order(options.order);
  about.rounding = to_string(settled.conversion.rounding);
  about.overflow = to_string(settled.conversion.overflow);
  about.seed = settled.seed;
  OutputFiles files;
  files.add_codes("codes", options.out, format, result.codes.shape, result.codes.data.data(), about,
                  options.tensor);
  if (!options.flags.empty()) {
    files.add_array("flags", options.flags, ArrayType::uint8, result.codes.shape,
                    result.flags.data.data());
  }
  files.publish();
  if (!options.quiet) {
    note_short_names("--format", options.format);
    note_short_names("--from", options.from);
  }
  print_summary(options, result, about);
  return kFine;
}

}  // namespace

void add_encode(Program& program) {
  auto options = std::make_shared<EncodeOptions>();
  Command& command = program.command("encode", [options] { return run_encode(*options); });
  command.option("--format F", options->format, "A name, alias, descriptor or codebook(FILE)")
      .required();
  command
      .option("--in X.npy", options->in,
              "Numbers (float16, float32, float64), codes with --from or a sidecar, or lines "
              "of text with --text (- is standard input)")
      .required();
  command.option("--out CODES.npy", options->out, "Codes (.npy or .safetensors), with a sidecar")
      .required();
  command.option("--from F", options->from, "Format of the codes in --in");
  add_conversion_options(command, options->conversion);
  command.option("--flags FLAGS.npy", options->flags, "Exception flags of each element, uint8");
  command.flag("--packed", options->packed, "Pack codes of 1 to 8 bits; rows start on a byte");
  command.option("--order ORDER", options->order, "Order of packed codes: low-first or high-first");
  command.option("--tensor NAME", options->tensor, "Tensor of a .safetensors file");
  command.flag("--text", options->text, "Read one number per line, hexadecimal or decimal");
  command
      .option("--codes hex", options->codes, "With --text: hex reads codes of --from, such as 0x3c")
      .one_of({"hex"});
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "Print no progress and no summary (--json still prints)");
  add_threads(command);
}

}  // namespace numemu::cli
