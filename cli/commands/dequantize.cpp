// numemu dequantize: codes and their scales to the float32 numbers they represent, of our own
// arrays or of a tensor of another program's checkpoint.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/conversion_options.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct DequantizeOptions {
  api::DequantizeRequest request;
  api::UnpackRequest unpack;
  std::shared_ptr<const std::optional<std::int64_t>> memory;
  bool list = false, json = false, quiet = false;
};

Json item_json(const PackedFile::Item& item) {
  return {{"tensor", utf8_text(item.name)},
          {"packed", item.layout == nullptr ? Json() : Json(item.layout->name)},
          {"stored", item.stored}};
}

int list_tensors(const DequantizeOptions& options) {
  const std::vector<PackedFile::Item> items = api::tensors_of(options.unpack.in);
  if (options.json) {
    Json list = Json::array();
    for (const PackedFile::Item& item : items) list.push_back(item_json(item));
    fmt::print("{}\n", list.dump(2));
    return kFine;
  }
  for (const PackedFile::Item& item : items)
    fmt::print("{:<16} {:<28} {}\n", item.layout == nullptr ? "-" : item.layout->name, item.stored,
               harmless(item.name));
  return kFine;
}

int unpack(const DequantizeOptions& options) {
  api::UnpackRequest request = options.unpack;
  request.out = options.request.out;
  request.memory = options.memory->value_or(0);
  const PackedTensor tensor = api::unpack_file(request).tensor;
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(request.out)},
                             {"tensor", utf8_text(tensor.name)},
                             {"packed", tensor.layout->name},
                             {"stored", tensor.stored},
                             {"shape", tensor.shape},
                             {"n", tensor.elements()}})
                           .dump(2));
  } else if (!options.quiet) {
    fmt::print("{}: float32 of {} ({}, {}) {}, {} elements\n", harmless(request.out),
               harmless(tensor.name), tensor.layout->name, tensor.stored, shape_text(tensor.shape),
               tensor.elements());
  }
  return kFine;
}

int convert(const DequantizeOptions& options) {
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

int run_dequantize(const DequantizeOptions& options) {
  const api::DequantizeRequest& request = options.request;
  const api::BlockFiles& parts = request.parts;
  const api::BlockTold& block = request.block;
  if (options.unpack.in.empty()) {
    if (options.list || !options.unpack.tensor.empty() || !options.unpack.layout.empty() ||
        options.memory->has_value())
      throw usage_error("--list, --tensor, --packed, --memory: expected together with --in FILE");
    if (parts.codes.empty() || parts.scales.empty())
      throw usage_error("expected --codes and --scales, or --in FILE, a checkpoint");
    if (request.out.empty()) throw usage_error("--out: expected a file");
    return convert(options);
  }
  if (options.unpack.in.ends_with(".npy"))
    throw usage_error(fmt::format(
        "--in: expected a checkpoint, safetensors or GGUF, found {0}; for codes: --codes {0}",
        harmless(options.unpack.in)));
  bool own = request.no_tensor_scale || block.size || block.axis;
  for (const std::string* text :
       {&parts.codes, &parts.scales, &parts.tensor_scale, &parts.zero_points, &block.block,
        &block.format, &block.granularity, &block.tile})
    own = own || !text->empty();
  if (own)
    throw usage_error(
        "--in: expected no option of arrays of codes beside it but --tensor, --packed, --memory "
        "and --out");
  if (options.list) return list_tensors(options);
  if (request.out.empty()) throw usage_error("--out: expected a file");
  return unpack(options);
}

}  // namespace

void add_dequantize(Program& program) {
  auto [command, options] = program.command<DequantizeOptions>("dequantize", run_dequantize);
  api::DequantizeRequest& request = options.request;
  std::vector<std::string> layouts;
  for (const PackedLayout& layout : packed_layouts()) layouts.push_back(layout.name);
  add_block_options(command, request.block);
  command.option("--codes C.npy", request.parts.codes, "Codes of the elements");
  command.option("--scales S.npy", request.parts.scales, "Codes of the scales");
  command.option("--tensor-scale T.npy", request.parts.tensor_scale, "Scale of the tensor (nvfp4)");
  command.option("--zero-points Z.npy", request.parts.zero_points,
                 "Zero points (zp) or minima (min)");
  command.option("--in FILE", options.unpack.in,
                 "A checkpoint of another program in place of arrays: safetensors or GGUF");
  command.option("--tensor NAME", options.unpack.tensor, "Tensor of the checkpoint");
  command
      .option("--packed LAYOUT", options.unpack.layout,
              fmt::format("How the checkpoint stores it (default: as the file says): {}",
                          joined(std::span<const std::string>(layouts), ", ")))
      .suggest([layouts] { return layouts; });
  options.memory = add_bytes(command, "--memory SIZE",
                             "Memory limit for the part of the tensor that is read at a time");
  command.option("--out Y.npy", request.out, "Numbers: float32");
  command.flag("--list", options.list, "List the tensors of the checkpoint");
  command.flag("--no-tensor-scale", request.no_tensor_scale, "Tensor scale 1 (nvfp4)");
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "No summary");
  add_threads(command);
}

}  // namespace numemu::cli
