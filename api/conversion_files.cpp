#include "api/conversion_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "api/array_files.hpp"
#include "formats/blocks/block_convert.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/safetensors.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu::api {
namespace {

/// Everything that can be refused before anything is read.
void check_request(const EncodeRequest& o, const Format& format) {
  if (!o.text) require_file("--in", o.in);
  for (const auto& [option, path] : {std::pair("--out", &o.out), {"--flags", &o.flags}}) {
    require_file(option, *path);
    if (!path->empty()) require_replaceable(*path);
  }
  require_file("--random-bits", o.random_bits);
  const std::string from = o.from.empty() ? "" : find_format(o.from).name;
  require_distinct_paths({{"--out", o.out}, {"--flags", o.flags}},
                         {{"--in", o.in, !o.text, true},
                          {"--random-bits", o.random_bits, false},
                          {"--format", codebook_file(format.name), false},
                          {"--from", codebook_file(from), false}});
  require_array_name("--out", o.out);
  require_array_name("--flags", o.flags);
  if (!o.order.empty() && !o.packed) throw usage_error("--order: expected together with --packed");
  if (o.packed) {
    check_bit_order(o.order.empty() ? BitOrder::low_first : parse_bit_order(o.order), format.bits);
  }
  if (o.hex_codes && (!o.text || o.from.empty()))
    throw usage_error("--codes hex: expected --text and --from FORMAT, the format of the codes");
  if (o.text && !o.hex_codes && !o.from.empty())
    throw usage_error(
        "--from: not allowed with --text, whose numbers have no format (for codes: --codes hex)");
}

/// The block of OCP MX, where --granularity block comes without a size.
constexpr std::int64_t kUsualBlock = 32;
constexpr const char* kUsualTile = "128,128";

/// "ROWS,COLUMNS"
std::pair<std::int64_t, std::int64_t> parse_tile(const std::string& text) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto rows = whole_argument(text.substr(0, comma), 1, kLargestBlock);
  const auto columns =
      whole_argument(text.substr(std::min(comma + 1, text.size())), 1, kLargestBlock);
  if (!rows || !columns || *columns > kLargestBlock / *rows)
    throw usage_error(
        fmt::format("--tile: expected ROWS,COLUMNS such as 128,128 or 1,128, not '{}'", text));
  return {*rows, *columns};
}

/// The one number of a tensor scale, positive and finite.
float given_tensor_scale(const std::string& path, const BlockFormat& f) {
  const Array scale = read_npy(path);
  require_type(path, scale.type, {ArrayType::float32}, "tensor scale");
  if (scale.elements() != 1)
    throw Error(fmt::format("{}: expected one finite number above 0 as tensor scale", path));
  check_given_tensor_scale(path, f, *scale.as<float>());
  return *scale.as<float>();
}

/// Throws Error where --tensor-scale `path` or --no-tensor-scale (`without`) is given for a format
/// that has no tensor scale.
void check_tensor_scale(const BlockFormat& f, const std::string& path, bool without) {
  if (f.tensor_scale) return;
  for (const char* option :
       {path.empty() ? nullptr : "--tensor-scale", without ? "--no-tensor-scale" : nullptr}) {
    if (option != nullptr) throw Error(fmt::format("{}: {} has no tensor scale", option, f.name));
  }
}

/// The axis that a sidecar names: counted from 0, and only where blocks or channels follow one.
std::optional<std::int64_t> sidecar_axis(const BlockFormat& f, const ArrayShape& shape, int axis) {
  if (f.span != Span::block && f.span != Span::channel) return std::nullopt;
  return axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis;
}

BlockLayout layout_of(const std::string& path, const BlockFormat& f, const ArrayShape& shape,
                      int axis) {
  return at(path, [&] { return block_layout(f, shape, axis); });
}

/// Everything that can be refused before anything is read.
void check_request(const QuantizeRequest& o, const BlockFormat& f) {
  const std::initializer_list<std::pair<const char*, const std::string*>> outputs = {
      {"--out", &o.out},
      {"--codes", &o.parts.codes},
      {"--scales", &o.parts.scales},
      {"--tensor-scale", &o.parts.tensor_scale},
      {"--zero-points", &o.parts.zero_points}};
  for (const auto& [option, path] : outputs)
    if (!path->empty()) require_replaceable(*path);
  require_distinct_paths({{"--out", o.out},
                          {"--codes", o.parts.codes},
                          {"--scales", o.parts.scales},
                          {"--tensor-scale", o.parts.tensor_scale},
                          {"--zero-points", o.parts.zero_points}},
                         {{"--in", o.in, true, true},
                          {"--random-bits", o.random_bits, false},
                          {"--scales-in", o.scales_in, false, true},
                          {"--tensor-scale-in", o.tensor_scale_in, false}});
  for (const auto& [option, path] : outputs) require_array_name(option, *path);
  if (!o.scales_in.empty() && !o.options.rule.empty())
    throw usage_error("--scales-in: not allowed with --scale-rule, which would choose them");
  if (!o.scales_in.empty() && !o.options.scale_round.empty())
    throw usage_error("--scale-round: not allowed with --scales-in, whose scales are not rounded");
  if (!o.tensor_scale_in.empty() && (o.options.no_tensor_scale || !f.tensor_scale))
    throw usage_error(
        fmt::format("--tensor-scale-in: {}", f.tensor_scale ? "not allowed with --no-tensor-scale"
                                                            : f.name + " has no tensor scale"));
  check_tensor_scale(f, o.parts.tensor_scale, o.options.no_tensor_scale);
  if (o.block.axis && f.span != Span::block && f.span != Span::channel)
    throw usage_error(fmt::format("--axis: {} has no blocks or channels along an axis", f.name));
  if (!o.parts.zero_points.empty() && f.affine == Affine::sym)
    throw usage_error(fmt::format("--zero-points: {} has no zero points", f.name));
  const bool symmetric_integers =
      f.element->kind == Kind::integer && f.element->is_signed && f.affine == Affine::sym;
  if (o.options.full_range && !symmetric_integers)
    throw usage_error(fmt::format("--full-range: {} has no symmetric integers", f.name));
  if (!o.options.scale_round.empty() && (f.power_of_two_scale() || f.tensor_scale))
    throw usage_error(fmt::format("--scale-round: the scales of {} are {}, whatever it says",
                                  f.name,
                                  f.power_of_two_scale() ? "powers of two" : "rounded by rne"));
}

/// What decoding the codes will need and this run neither writes nor was given; "" for nothing.
std::string missing_to_decode(const QuantizeRequest& o, const BlockFormat& f) {
  if (o.parts.codes.empty()) return "";
  std::vector<std::string> missing;
  if (o.parts.scales.empty() && o.scales_in.empty()) missing.emplace_back("--scales");
  if (f.tensor_scale && o.parts.tensor_scale.empty() && o.tensor_scale_in.empty() &&
      !o.options.no_tensor_scale)
    missing.emplace_back("--tensor-scale");
  if (f.affine != Affine::sym && o.parts.zero_points.empty()) missing.emplace_back("--zero-points");
  return joined(missing, " and ");
}

void write_parts(const QuantizeRequest& o, const Sidecar& about, const QuantizedArray& q) {
  const BlockFormat& f = *q.how.format;
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
  add("values", o.out, find_format("float32"), q.values);
  add("codes", o.parts.codes, *f.element, q.codes);
  add("scales", o.parts.scales, *f.scale, q.scales);
  add("zero_points", o.parts.zero_points, *f.element, q.zero_points);
  if (!o.parts.tensor_scale.empty())
    files.add_array("tensor_scale", o.parts.tensor_scale, ArrayType::float32, {},
                    &q.counts.tensor_scale);
  files.publish();
}

void require_scale_shape(const std::string& path, const ArrayShape& found,
                         const ArrayShape& expected, const std::string& why) {
  if (found == expected) return;
  throw Error(fmt::format("{}: shape: expected {} {}, found {}", path, shape_text(expected), why,
                          shape_text(found)));
}

/// What --format means without --granularity and sidecar: the one span whose scales have that
/// shape.
const BlockFormat& inferred_format(const DequantizeRequest& options, const Format& element,
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
                          options.parts.scales, shape_text(scales),
                          fitting.empty() ? "neither the tensor, the channels nor the rows"
                                          : "the channels and the rows",
                          shape_text(shape)));
}

/// The files that are read, opened together.
struct BlockInputs {
  explicit BlockInputs(const DequantizeRequest& o)
      : all(open_inputs({{o.parts.codes, "codes"},
                         {o.parts.scales, "scales"},
                         {o.parts.zero_points, "zero_points"},
                         {o.parts.tensor_scale, "tensor_scale"}})) {}
  std::vector<StoredArray> all;
  StoredArray &codes = all[0], &scales = all[1], &zero_points = all[2], &tensor_scale = all[3];
};

/// The block format that the sidecar of the codes names, else that of the scales; null where
/// neither does. Refused where --format names other elements.
const BlockFormat* format_in_sidecars(const DequantizeRequest& options, const BlockInputs& inputs) {
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
const BlockFormat* told_format(const DequantizeRequest& options, const BlockInputs& inputs) {
  const BlockTold& block = options.block;
  if (!block.block.empty() || !block.granularity.empty()) return &block_format_of(block);
  const BlockFormat* f = format_in_sidecars(options, inputs);
  return f != nullptr || !block.format.empty() ? f : &block_format_of(block);
}

/// The one number of the tensor scale; 1 where there is none.
float read_tensor_scale(const DequantizeRequest& options, const BlockFormat& f,
                        BlockInputs& inputs) {
  const std::string& path = options.parts.tensor_scale;
  check_tensor_scale(f, path, options.no_tensor_scale);
  if (!path.empty() && options.no_tensor_scale)
    throw usage_error("--no-tensor-scale: not allowed with --tensor-scale");
  if (path.empty()) {
    if (f.tensor_scale && !options.no_tensor_scale)
      throw usage_error(fmt::format(
          "--tensor-scale: expected a file for {}, or --no-tensor-scale where it is 1", f.name));
    return 1;
  }
  const Array scale = read_array(inputs.tensor_scale);
  require_type(path, scale.type, {ArrayType::float32}, "tensor scale");
  require_scale_shape(path, scale.shape, {}, "for a tensor scale");
  return *scale.as<float>();
}

Array read_zero_points(const std::string& path, const BlockFormat& f, const ArrayShape& expected,
                       BlockInputs& inputs) {
  if (f.affine == Affine::sym) {
    if (!path.empty())
      throw usage_error(fmt::format("--zero-points: {} has no zero points", f.name));
    return {};
  }
  if (path.empty()) throw usage_error(fmt::format("--zero-points: expected a file for {}", f.name));
  const Format& format = f.affine == Affine::min ? find_format("float32") : *f.element;
  Array array = read_codes(inputs.zero_points,
                           {.format = &format, .told_by = f.name + ", whose zero points are"})
                    .array;
  require_scale_shape(path, array.shape, expected, "as the scales");
  return array;
}

/// The source of the block format, for messages.
std::string block_said_by(const DequantizeRequest& options, const BlockInputs& inputs) {
  if (!options.block.block.empty()) return "--block";
  if (!options.block.granularity.empty()) return "--granularity, which means";
  for (const StoredArray* array : {&inputs.codes, &inputs.scales}) {
    if (array->sidecar && array->sidecar->block) return sidecar_path(array->path()) + ": block:";
  }
  return "the shapes, which are those of";
}

/// Compares the sidecars with the options, before any codes are read as another format.
void check_sidecars(const BlockInputs& inputs, const SidecarTold& told) {
  for (const StoredArray* array : {&inputs.codes, &inputs.scales, &inputs.zero_points}) {
    if (array->sidecar) check_sidecar(array->path(), *array->sidecar, told);
  }
}

}  // namespace

SettledConversion settle(const RoundingWords& words, const std::string& random_bits,
                         const Format& format, const ArrayShape& shape) {
  SettledConversion settled;
  Conversion& conversion = settled.conversion;
  conversion.format = &format;
  conversion.rounding = parse_rounding(words.rounding);
  conversion.overflow = parse_overflow(words.overflow);
  conversion.symmetric = false;
  if (random_bits.empty()) {
    settled.seed = words.seed.value_or(0);
    conversion.random.seed = *settled.seed;
    return settled;
  }
  if (!conversion.rounding.stochastic()) {
    throw usage_error(fmt::format("--random-bits: expected --rounding sr(N), found {}",
                                  to_string(conversion.rounding)));
  }
  settled.random_words = read_npy(random_bits);
  require_type(random_bits, settled.random_words.type, {ArrayType::uint32}, "random bits");
  if (settled.random_words.shape != shape) {
    throw Error(fmt::format("{}: shape: expected {}, one word per element, found {}", random_bits,
                            shape_text(shape), shape_text(settled.random_words.shape)));
  }
  conversion.random_words = settled.random_words.as<std::uint32_t>();
  return settled;
}

EncodedFile encode_file(const EncodeRequest& o, const OnProgress& on_progress) {
  const Format& format = find_format(o.format);
  check_request(o, format);
  SettledConversion settled = settle(o.words, "", format, {});
  EncodedFile file;
  if (o.text && !o.hex_codes) {
    const std::vector<Value> values = read_text_numbers(o.in);
    settled = settle(o.words, o.random_bits, format, {std::ssize(values)});
    file.from = "text";
    file.n = std::ssize(values);
    if (!o.dry_run) file.encoded = encode(values, settled.conversion, o.in);
  } else {
    CodesTold told;
    if (!o.from.empty()) told.format = &find_format(o.from);
    told.tensor = o.tensor;
    told.told_by = "--from";
    const Codes source = [&] {
      if (o.text) return read_text_codes(o.in, *told.format);
      StoredArray in = open_input(o.in);
      return read_numbers(in, told);
    }();
    settled = settle(o.words, o.random_bits, format, source.array.shape);
    file.from = source.format->name;
    file.n = source.array.elements();
    file.path = conversion_path(settled.conversion, *source.format, file.n);
    if (!o.dry_run)
      file.encoded = encode(source, settled.conversion, !o.flags.empty(), on_progress);
  }
  Sidecar& about = file.about;
  about.numemu = NUMEMU_VERSION;
  about.format = format.name;
  about.packed = o.packed;
  if (o.packed) about.order = o.order.empty() ? BitOrder::low_first : parse_bit_order(o.order);
  about.rounding = to_string(settled.conversion.rounding);
  about.overflow = to_string(settled.conversion.overflow);
  about.seed = settled.seed;
  if (o.dry_run) return file;
  const Array& codes = file.encoded.codes.array;
  OutputFiles files;
  files.add_codes("codes", o.out, format, codes.shape, codes.data.data(), about, o.tensor);
  if (!o.flags.empty())
    files.add_array("flags", o.flags, ArrayType::uint8, codes.shape,
                    file.encoded.flags.data.data());
  files.publish();
  return file;
}

DecodedFile read_to_decode(const DecodeRequest& o) {
  if (!o.hex_codes) require_file("--in", o.in);
  if (!o.text) require_file("--out", o.out);
  if (!o.to_stdout()) require_replaceable(o.out);
  require_distinct_paths({{"--out", o.out, !o.text}}, {{"--in", o.in, !o.hex_codes, true}});
  if (!o.text) require_array_name("--out", o.out);
  if (o.hex_codes && (o.packed || !o.order.empty() || !o.tensor.empty()))
    throw usage_error("--codes hex: not allowed with --packed, --order or --tensor");
  if (o.text && !o.type.empty())
    throw usage_error("--dtype: not allowed with --text, which has no type");
  CodesTold told;
  if (!o.format.empty()) told.format = &find_format(o.format);
  told.packed = o.packed;
  if (!o.order.empty()) told.order = parse_bit_order(o.order);
  told.tensor = o.tensor;
  if (o.hex_codes && told.format == nullptr)
    throw usage_error("--codes hex: expected --format, the format of the codes");
  DecodedFile file;
  if (o.hex_codes) {
    file.codes = read_text_codes(o.in, *told.format);
  } else {
    StoredArray in = open_input(o.in);
    file.codes = read_codes(in, told);
  }
  const Format& format = *file.codes.format;
  require_distinct_paths({{"--out", o.out, !o.text}},
                         {{"--format", codebook_file(format.name), false}});
  if (!o.text) file.type = &decoded_type(format, o.type, o.in);
  return file;
}

void write_decoded(const DecodeRequest& o, const DecodedFile& file) {
  if (!o.text)
    return write_numbers(o.out, *file.type, decode(file.codes, file.type->name), o.tensor);
  if (o.to_stdout()) return;
  OutputFiles files;
  files.add_text("values", o.out, text_of_numbers(file.codes));
  files.publish();
}

const BlockFormat& block_format_of(const BlockTold& options) {
  if (!options.block.empty()) return find_block_format(options.block);
  if (options.format.empty())
    throw usage_error("expected --block B, or --format F with --granularity G");
  if (options.granularity.empty())
    throw usage_error(
        "--format: expected together with --granularity tensor, channel, row, block or tile");
  const Span span = parse_span(options.granularity);
  if (!options.tile.empty() && span != Span::tile)
    throw usage_error("--tile: expected together with --granularity tile");
  if (options.size && span != Span::block)
    throw usage_error("--block-size: expected together with --granularity block");
  if (span == Span::tile) {
    const auto [rows, columns] = parse_tile(options.tile.empty() ? kUsualTile : options.tile);
    return scaled_format(find_format(options.format), span, columns, rows);
  }
  return scaled_format(find_format(options.format), span, options.size.value_or(kUsualBlock));
}

QuantizedFile quantize_file(const QuantizeRequest& o) {
  const BlockFormat& f = block_format_of(o.block);
  check_request(o, f);
  parse_rounding(o.options.words.rounding);
  parse_overflow(o.options.words.overflow);
  find_scale_rule(o.options.rule.empty() ? f.default_rule : o.options.rule, f);
  QuantizedFile file;
  file.numbers = read_float32(o.in, o.from);
  const ArrayShape& shape = file.numbers.shape;
  const int axis = o.block.axis_or_last();
  const BlockLayout layout = layout_of(o.in, f, shape, axis);
  const SettledConversion settled = settle(o.options.words, o.random_bits, *f.element, shape);
  QuantizeOptions options = o.options;
  Array scales;
  if (!o.scales_in.empty()) {
    StoredArray in = open_input(o.scales_in);
    scales = read_codes(in, {.format = f.scale, .told_by = f.name + ", whose scales are"}).array;
    check_given_scales(o.scales_in, f, layout, scales, file.numbers);
    options.scales = &scales;
  }
  if (!o.tensor_scale_in.empty()) options.tensor_scale = given_tensor_scale(o.tensor_scale_in, f);
  file.quantized = quantize(file.numbers, quantization_of(options, f, settled.conversion), layout,
                            {.codes = !o.parts.codes.empty(),
                             .scales = !o.parts.scales.empty(),
                             .zero_points = !o.parts.zero_points.empty()});
  file.quantized.how.element.random_words = nullptr;  // they end here
  file.quantized.how.scales = nullptr;
  Sidecar& about = file.about;
  about.numemu = NUMEMU_VERSION;
  about.block = f.name;
  about.axis = sidecar_axis(f, shape, axis);
  about.packed = false;
  about.rounding = to_string(settled.conversion.rounding);
  about.overflow = to_string(settled.conversion.overflow);
  if (o.scales_in.empty()) about.scale_rule = file.quantized.how.rule->name;
  about.seed = settled.seed;
  write_parts(o, about, file.quantized);
  file.missing = missing_to_decode(o, f);
  return file;
}

DequantizedFile dequantize_file(const DequantizeRequest& o) {
  require_replaceable(o.out);
  require_distinct_paths({{"--out", o.out}}, {{"--codes", o.parts.codes},
                                              {"--scales", o.parts.scales},
                                              {"--zero-points", o.parts.zero_points},
                                              {"--tensor-scale", o.parts.tensor_scale}});
  require_array_name("--out", o.out);
  BlockInputs inputs(o);
  const BlockFormat* const named = told_format(o, inputs);
  SidecarTold known;
  known.block_by = block_said_by(o, inputs);
  if (named != nullptr) known.block = named->name;
  check_sidecars(inputs, known);
  BlockTold told = o.block;
  const std::optional<Sidecar>& sidecar = inputs.codes.sidecar;
  if (!told.axis) known.axis_by = "the last axis,";
  if (!told.axis && sidecar && sidecar->axis) {
    told.axis = *sidecar->axis;
    known.axis_by = sidecar_path(o.parts.codes) + ": axis:";
  }
  const Format& element = named != nullptr ? *named->element : find_format(told.format);
  const std::string elements = named != nullptr ? named->name + ", whose elements are" : "--format";
  const Codes codes = read_codes(inputs.codes, {.format = &element, .told_by = elements});
  const ArrayShape& shape = codes.array.shape;
  DequantizeRequest settled = o;
  settled.block = told;
  const BlockFormat* const chosen =
      named != nullptr ? named
                       : &inferred_format(settled, element, shape, read_array(inputs.scales).shape);
  const BlockFormat& f = *chosen;
  const BlockLayout layout = layout_of(o.parts.codes, f, shape, told.axis_or_last());
  known.block = f.name;
  known.axis = sidecar_axis(f, shape, told.axis_or_last());
  check_sidecars(inputs, known);
  const Array scales =
      read_codes(inputs.scales, {.format = f.scale, .told_by = f.name + ", whose scales are"})
          .array;
  require_scale_shape(o.parts.scales, scales.shape, layout.scale_shape,
                      fmt::format("for {} of {}", f.name, shape_text(shape)));
  const Array zero_points = read_zero_points(o.parts.zero_points, f, layout.scale_shape, inputs);
  const float tensor_scale = read_tensor_scale(o, f, inputs);
  Array y(ArrayType::float32, shape);
  dequantize_blocks(
      f, layout,
      {codes.array.data.data(), scales.data.data(), zero_points.data.data(), tensor_scale,
       o.parts.codes, o.parts.scales, o.parts.zero_points, o.parts.tensor_scale},
      y.as<float>());
  write_numbers(o.out, find_format("float32"), y);
  return {&f, layout, std::move(y)};
}

/// Null for no name.
const PackedLayout* layout_named(const std::string& name) {
  if (name.empty()) return nullptr;
  try {
    return &find_packed_layout(name);
  } catch (const Error& error) {
    throw usage_error(
        fmt::format("--packed: {} (`numemu dequantize --help` lists them)", error.what()));
  }
}

UnpackedFile unpack_file(const UnpackRequest& o) {
  // A part as float32, its codes, scales and zero points.
  constexpr std::int64_t kQuickPart = 16 << 20, kPartsOfMemory = 8;
  require_file("--in", o.in);
  require_file("--out", o.out);
  require_replaceable(o.out);
  require_distinct_paths({{"--out", o.out}}, {{"--in", o.in, false}});
  require_array_name("--out", o.out);
  const PackedLayout* const layout = layout_named(o.layout);
  PackedFile file(o.in);
  UnpackedFile unpacked{file.tensor(o.tensor, layout)};
  const PackedTensor& tensor = unpacked.tensor;
  const std::int64_t part =
      o.memory == 0 ? kQuickPart : std::min(kQuickPart, o.memory / kPartsOfMemory);
  const std::int64_t rows = rows_at_once(tensor, part);
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * tensor.length;
  if (o.memory > 0 && tensor.rows > 0 && bytes > o.memory / kPartsOfMemory)
    throw memory_error(fmt::format("{}: tensor {}: --memory: expected at least {} bytes for a row",
                                   o.in, quote_name(tensor.name), kPartsOfMemory * bytes));
  OutputFiles files;
  files.add_numbers("values", o.out, tensor.shape, [&](const OutputFiles::WriteNumbers& write) {
    std::vector<float> numbers(static_cast<std::size_t>(rows * tensor.length));
    for (std::int64_t first = 0; first < tensor.rows; first += rows) {
      const std::int64_t count = std::min(rows, tensor.rows - first);
      file.read(tensor, first, count, numbers.data());
      write(numbers.data(), count * tensor.length);
    }
  });
  files.publish();
  return unpacked;
}

std::vector<PackedFile::Item> tensors_of(const std::string& path) {
  require_file("--in", path);
  return PackedFile(path).items();
}

}  // namespace numemu::api
