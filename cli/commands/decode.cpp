// numemu decode: codes to the numbers they represent, exactly or not at all.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "api/array_files.hpp"
#include "api/conversion_files.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct DecodeOptions {
  api::DecodeRequest request;
  std::string codes;
  bool json = false, quiet = false;
};

void print_text(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw file_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void print_summary(const DecodeOptions& options, const api::DecodedFile& file) {
  const std::string& out = options.request.out;
  const ArrayShape& shape = file.codes.array.shape;
  const std::int64_t n = file.codes.array.elements();
  const std::string type = file.type == nullptr ? "text" : file.type->name;
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(out)},
                             {"format", file.codes.format->name},
                             {"dtype", type},
                             {"shape", shape},
                             {"n", n}})
                           .dump(2));
    return;
  }
  if (options.quiet) return;
  fmt::print("{}: {} of {} {}, {}\n", harmless(out), type, file.codes.format->name,
             shape_text(shape), counted(n, "element"));
}

int run_decode(const DecodeOptions& options) {
  api::DecodeRequest request = options.request;
  request.hex_codes = !options.codes.empty();
  const api::DecodedFile file = api::read_to_decode(request);
  if (!options.quiet) note_short_names("--format", request.format);
  api::write_decoded(request, file);
  if (request.to_stdout()) {
    print_text(api::text_of_numbers(file.codes));
  } else {
    print_summary(options, file);
  }
  return kFine;
}

}  // namespace

void add_decode(Program& program) {
  auto [command, options] = program.command<DecodeOptions>("decode", run_decode);
  api::DecodeRequest& request = options.request;
  command.option("--format F", request.format,
                 "A name, alias, descriptor or codebook(FILE) (default: the sidecar's)");
  command.option("--in CODES.npy", request.in, "Codes (.npy or .safetensors)").required();
  command.option("--out X.npy", request.out, "Numbers; with --text, - is the standard output")
      .required();
  command
      .option("--dtype TYPE", request.type,
              "float32 or float64 (default: the first that is exact for every value)")
      .one_of({"float32", "float64"});
  command.flag("--packed", request.packed, "Codes are packed in rows (default: from the sidecar)");
  command.option("--order ORDER", request.order, "Order of packed codes: low-first or high-first");
  command.option("--tensor NAME", request.tensor, "Tensor of a .safetensors file");
  command
      .option("--codes hex", options.codes,
              "hex: --in has one code of --format per line, such as 0x3c (- is standard input)")
      .one_of({"hex"});
  command.flag("--text", request.text, "Write one hexadecimal float per line");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "Print no summary (--json still prints)");
  add_threads(command);
}

}  // namespace numemu::cli
