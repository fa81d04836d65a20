// numemu dequantize: codes and their scales to the float32 numbers they represent.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct DequantizeOptions {
  api::DequantizeRequest request;
  bool json = false, quiet = false;
};

int run_dequantize(const DequantizeOptions& options) {
  const api::DequantizeRequest& request = options.request;
  const api::DequantizedFile file = api::dequantize_file(request);
  const BlockFormat& f = *file.format;
  if (!options.quiet) {
    note_short_names("--block", request.block.block);
    note_short_names("--format", request.block.format);
  }
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(request.out)},
                             {"block", f.name},
                             {"shape", file.numbers.shape},
                             {"n", file.layout.elements()},
                             {"scales", file.layout.blocks},
                             {"bits_per_element", stored_bits(f, file.layout)}})
                           .dump(2));
  } else if (!options.quiet) {
    fmt::print("{}: float32 of {} {}, {} elements, {} scales\n", harmless(request.out), f.name,
               shape_text(file.numbers.shape), file.layout.elements(), file.layout.blocks);
  }
  return kFine;
}

}  // namespace

void add_dequantize(Program& program) {
  auto [command, options] = program.command<DequantizeOptions>("dequantize", run_dequantize);
  api::DequantizeRequest& request = options.request;
  add_block_options(command, request.block);
  command.option("--codes C.npy", request.parts.codes, "Codes of the elements").required();
  command.option("--scales S.npy", request.parts.scales, "Codes of the scales").required();
  command.option("--tensor-scale T.npy", request.parts.tensor_scale, "Scale of the tensor (nvfp4)");
  command.option("--zero-points Z.npy", request.parts.zero_points,
                 "Zero points (zp) or minima (min)");
  command.option("--out Y.npy", request.out, "Numbers: float32").required();
  command.flag("--no-tensor-scale", request.no_tensor_scale, "Tensor scale 1 (nvfp4)");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No summary");
  add_threads(command);
}

}  // namespace numemu::cli
