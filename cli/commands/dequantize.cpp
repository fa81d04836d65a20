// numemu dequantize: codes and their scales to the float32 numbers they represent.
#include <fmt/format.h>

#include "cli/block_options.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/input_arrays.hpp"
#include "cli/talk.hpp"
#include "formats/blocks/block_convert.hpp"
#include "formats/blocks/block_layout.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

struct DequantizeOptions {
  BlockOptions block;
  std::string codes, scales, tensor_scale, zero_points, out;
  bool no_tensor_scale = false, json = false, quiet = false;
};

void require_shape(const std::string& path, const ArrayShape& found, const ArrayShape& expected,
                   const std::string& why) {
  if (found == expected) return;
  throw Error(fmt::format("{}: shape: expected {} {}, found {}", path, shape_text(expected), why,
                          shape_text(found)));
}

/// What --format means without --granularity and sidecar: the one span whose scales have that
/// shape.
const BlockFormat& inferred_format(const DequantizeOptions& options, const Format& element,
                                   const ArrayShape& shape, const ArrayShape& scales) {
  std::vector<Span> fitting;
  for (const Span span : {Span::tensor, Span::channel, Span::row}) {
    if (span != Span::tensor && shape.empty()) continue;
    // A row of one axis is the tensor.
    if (span == Span::row && shape.size() == 1) continue;
    const BlockFormat& f = scaled_format(element, span, 0);
    if (block_layout(f, shape, options.block.axis_or_last()).scale_shape == scales)
      fitting.push_back(span);
  }
  if (fitting.size() == 1) return scaled_format(element, fitting[0], 0);
  throw Error(fmt::format("{}: shape: {} fits {} of {}: expected --granularity to choose one",
                          options.scales, shape_text(scales),
                          fitting.empty() ? "neither the tensor, the channels nor the rows"
                                          : "the channels and the rows",
                          shape_text(shape)));
}

/// The files that are read, opened together.
struct Inputs {
  explicit Inputs(const DequantizeOptions& o)
      : all(open_inputs({{o.codes, "codes"},
                         {o.scales, "scales"},
                         {o.zero_points, "zero_points"},
                         {o.tensor_scale, "tensor_scale"}})) {}
  std::vector<StoredArray> all;
  StoredArray &codes = all[0], &scales = all[1], &zero_points = all[2], &tensor_scale = all[3];
};

/// The block format that the sidecar of the codes names, else that of the scales; null where
/// neither does. Refused where --format names other elements.
const BlockFormat* format_in_sidecars(const DequantizeOptions& options, const Inputs& inputs) {
  for (const StoredArray* array : {&inputs.codes, &inputs.scales}) {
    if (!array->sidecar || !array->sidecar->block) continue;
    const BlockFormat& f = find_block_format(*array->sidecar->block);
    const std::string& asked = options.block.format;
    if (asked.empty() || f.element == &find_format(asked)) return &f;
    throw Error(fmt::format("{}: block: {} contradicts --format {}", sidecar_path(array->path()),
                            f.name, find_format(asked).name));
  }
  return nullptr;
}

/// The block format of the codes: from the options or a sidecar; null where the shapes decide.
const BlockFormat* told_format(const DequantizeOptions& options, const Inputs& inputs) {
  const BlockOptions& block = options.block;
  if (!block.block.empty() || !block.granularity.empty()) return &block_format_of(block);
  const BlockFormat* f = format_in_sidecars(options, inputs);
  return f != nullptr || !block.format.empty() ? f : &block_format_of(block);
}

/// The one number of the tensor scale; 1 where there is none.
float read_tensor_scale(const DequantizeOptions& options, const BlockFormat& f, Inputs& inputs) {
  const std::string& path = options.tensor_scale;
  check_tensor_scale(f, path, options.no_tensor_scale);
  if (!path.empty() && options.no_tensor_scale)
    throw Error("--no-tensor-scale: not allowed with --tensor-scale");
  if (path.empty()) {
    if (f.tensor_scale && !options.no_tensor_scale)
      throw Error(fmt::format(
          "--tensor-scale: expected a file for {}, or --no-tensor-scale where it is 1", f.name));
    return 1;
  }
  const Array scale = read_array(inputs.tensor_scale);
  require_type(path, scale.type, {ArrayType::float32}, "tensor scale");
  require_shape(path, scale.shape, {}, "for a tensor scale");
  return *scale.as<float>();
}

Array read_zero_points(const std::string& path, const BlockFormat& f, const ArrayShape& expected,
                       Inputs& inputs) {
  if (f.affine == Affine::sym) {
    if (!path.empty()) throw Error(fmt::format("--zero-points: {} has no zero points", f.name));
    return {};
  }
  if (path.empty()) throw Error(fmt::format("--zero-points: expected a file for {}", f.name));
  const Format& format = f.affine == Affine::min ? find_format("float32") : *f.element;
  Array array = read_codes(inputs.zero_points,
                           {.format = &format, .told_by = f.name + ", whose zero points are"})
                    .array;
  require_shape(path, array.shape, expected, "as the scales");
  return array;
}

void check_paths(const DequantizeOptions& options) {
  require_replaceable(options.out);
  require_distinct_paths({{"--out", options.out}}, {{"--codes", options.codes},
                                                    {"--scales", options.scales},
                                                    {"--zero-points", options.zero_points},
                                                    {"--tensor-scale", options.tensor_scale}});
}

/// The source of the block format, for messages.
std::string block_said_by(const DequantizeOptions& options, const Inputs& inputs) {
  if (!options.block.block.empty()) return "--block";
  if (!options.block.granularity.empty()) return "--granularity, which means";
  for (const StoredArray* array : {&inputs.codes, &inputs.scales}) {
    if (array->sidecar && array->sidecar->block) return sidecar_path(array->path()) + ": block:";
  }
  return "the shapes, which are those of";
}

/// Compares the sidecars with the options, before any codes are read as another format.
void check_sidecars(const Inputs& inputs, const SidecarTold& told) {
  for (const StoredArray* array : {&inputs.codes, &inputs.scales, &inputs.zero_points}) {
    if (array->sidecar) check_sidecar(array->path(), *array->sidecar, told);
  }
}

int run_dequantize(const DequantizeOptions& options) {
  check_paths(options);
  Inputs inputs(options);
  const BlockFormat* const named = told_format(options, inputs);
  SidecarTold known;
  known.block_by = block_said_by(options, inputs);
  if (named != nullptr) known.block = named->name;
  check_sidecars(inputs, known);
  BlockOptions told = options.block;
  const std::optional<Sidecar>& sidecar = inputs.codes.sidecar;
  if (!told.axis) known.axis_by = "the last axis,";
  if (!told.axis && sidecar && sidecar->axis) {
    told.axis = *sidecar->axis;
    known.axis_by = sidecar_path(options.codes) + ": axis:";
  }
  const Format& element = named != nullptr ? *named->element : find_format(told.format);
  const std::string elements = named != nullptr ? named->name + ", whose elements are" : "--format";
  const Codes codes = read_codes(inputs.codes, {.format = &element, .told_by = elements});
  const ArrayShape& shape = codes.array.shape;
  DequantizeOptions settled = options;
  settled.block = told;
  const BlockFormat* const chosen =
      named != nullptr ? named
                       : &inferred_format(settled, element, shape, read_array(inputs.scales).shape);
  const BlockFormat& f = *chosen;
  const BlockLayout layout = [&] {
    try {
      return block_layout(f, shape, told.axis_or_last());
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", options.codes, error.what()));
    }
  }();
  known.block = f.name;
  known.axis = sidecar_axis(f, shape, told.axis_or_last());
  check_sidecars(inputs, known);
  const Array scales =
      read_codes(inputs.scales, {.format = f.scale, .told_by = f.name + ", whose scales are"})
          .array;
  require_shape(options.scales, scales.shape, layout.scale_shape,
                fmt::format("for {} of {}", f.name, shape_text(shape)));
  const Array zero_points = read_zero_points(options.zero_points, f, layout.scale_shape, inputs);
  const float tensor_scale = read_tensor_scale(options, f, inputs);
  Array y(ArrayType::float32, shape);
  dequantize_blocks(
      f, layout,
      {codes.array.data.data(), scales.data.data(), zero_points.data.data(), tensor_scale,
       options.codes, options.scales, options.zero_points, options.tensor_scale},
      y.as<float>());
  write_numbers(options.out, find_format("float32"), y);
  if (!options.quiet) {
    note_short_names("--block", options.block.block);
    note_short_names("--format", options.block.format);
  }
  if (options.json) {
    fmt::print("{}\n", Json({{"out", utf8_text(options.out)},
                             {"block", f.name},
                             {"shape", shape},
                             {"n", layout.elements()},
                             {"scales", layout.blocks},
                             {"bits_per_element", stored_bits(f, layout)}})
                           .dump(2));
  } else if (!options.quiet) {
    fmt::print("{}: float32 of {} {}, {} elements, {} scales\n", harmless(options.out), f.name,
               shape_text(shape), layout.elements(), layout.blocks);
  }
  return kFine;
}

}  // namespace

void add_dequantize(Program& program) {
  auto options = std::make_shared<DequantizeOptions>();
  Command& command = program.command("dequantize", [options] { return run_dequantize(*options); });
  add_block_options(command, options->block);
  command.option("--codes C.npy", options->codes, "Codes of the elements").required();
  command.option("--scales S.npy", options->scales, "Codes of the scales").required();
  command.option("--tensor-scale T.npy", options->tensor_scale, "Scale of the tensor (nvfp4)");
  command.option("--zero-points Z.npy", options->zero_points, "Zero points (zp) or minima (min)");
  command.option("--out Y.npy", options->out, "Numbers: float32").required();
  command.flag("--no-tensor-scale", options->no_tensor_scale, "Tensor scale 1 (nvfp4)");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "No summary");
  add_threads(command);
}

}  // namespace numemu::cli
