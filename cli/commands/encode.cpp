// numemu encode: an array of numbers, or of another format's codes, to codes; one rounding each.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/format_names.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct EncodeOptions {
  api::EncodeRequest request;
  std::string codes;
  bool json = false, quiet = false;
};

void print_summary(const EncodeOptions& options, const api::EncodedFile& file) {
  const Sidecar& about = file.about;
  const Array& codes = file.encoded.codes.array;
  const std::string& out = options.request.out;
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(out)},
                             {"format", *about.format},
                             {"rounding", *about.rounding},
                             {"overflow", *about.overflow},
                             {"from", file.from},
                             {"shape", codes.shape},
                             {"packed", *about.packed},
                             {"n", codes.elements()},
                             {"flags", flags_json(file.encoded.counts)}})
                           .dump(2));
    return;
  }
  if (options.quiet) return;
  fmt::print("{}: {} {} {} of {} {}, {}: {}\n", harmless(out), *about.format, *about.rounding,
             *about.overflow, file.from, shape_text(codes.shape),
             counted(codes.elements(), "element"), flags_text(file.encoded.counts));
}

/// What a run would do, and how long it would take where each element is converted for itself.
void print_plan(const api::EncodedFile& file) {
  constexpr double kReferenceSeconds = 3e-8;  // of a processor, for an element
  const std::string how = file.path == ConversionPath::table ? "by a table"
                          : file.path == ConversionPath::vectors
                              ? "by vectors"
                              : fmt::format(
                                    "one by one, by the integer reference, "
                                    "about {:.2g} s of a processor",
                                    kReferenceSeconds * file.n);
  fmt::print("{} of {} to {} {} {}: {}\n", counted(file.n, "element"), file.from,
             *file.about.format, *file.about.rounding, *file.about.overflow, how);
}

int run_encode(const EncodeOptions& options) {
  api::EncodeRequest request = options.request;
  request.hex_codes = !options.codes.empty();
  const api::EncodedFile file = api::encode_file(request, progress_of("encode", options.quiet));
  if (!options.quiet) {
    note_short_names("--format", request.format);
    note_short_names("--from", request.from);
  }
  request.dry_run ? print_plan(file) : print_summary(options, file);
  return kFine;
}

}  // namespace

void add_encode(Program& program) {
  auto [command, options] = program.command<EncodeOptions>("encode", run_encode);
  api::EncodeRequest& request = options.request;
  command.option("--format F", request.format, "A name, alias, descriptor or codebook(FILE)")
      .required();
  command
      .option("--in X.npy", request.in,
              "Numbers (float16, float32, float64), codes with --from or a sidecar, or lines "
              "of text with --text (- is standard input)")
      .required();
  command.option("--out CODES.npy", request.out, "Codes (.npy or .safetensors), with a sidecar")
      .required();
  command.option("--from F", request.from, "Format of the codes in --in");
  add_conversion_options(command, request.words, request.random_bits);
  command.option("--flags FLAGS.npy", request.flags, "Exception flags of each element, uint8");
  command.flag("--packed", request.packed, "Pack codes of 1 to 8 bits; rows start on a byte");
  command.option("--order ORDER", request.order, "Order of packed codes: low-first or high-first");
  command.option("--tensor NAME", request.tensor, "Tensor of a .safetensors file");
  command.flag("--text", request.text, "Read one number per line, hexadecimal or decimal");
  command
      .option("--codes hex", options.codes, "With --text: hex reads codes of --from, such as 0x3c")
      .one_of({"hex"});
  command.flag("--dry-run", request.dry_run,
               "Say how the elements would be converted and convert none");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "Print no progress and no summary (--json still prints)");
  add_threads(command);
}

}  // namespace numemu::cli
