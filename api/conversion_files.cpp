#include "api/conversion_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "api/array_files.hpp"
#include "formats/error.hpp"
#include "formats/storage/codebook_identity.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/distinct_paths.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"

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
  if (!o.order.empty() && !o.packed) throw Error("--order: expected together with --packed");
  if (o.packed) {
    check_bit_order(o.order.empty() ? BitOrder::low_first : parse_bit_order(o.order), format.bits);
  }
  if (o.hex_codes && (!o.text || o.from.empty()))
    throw Error("--codes hex: expected --text and --from FORMAT, the format of the codes");
  if (o.text && !o.hex_codes && !o.from.empty())
    throw Error(
        "--from: not allowed with --text, whose numbers have no format (for codes: --codes hex)");
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
    throw Error(fmt::format("--random-bits: expected --rounding sr(N), found {}",
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
    file.encoded = encode(values, settled.conversion, o.in);
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
  if (o.hex_codes && (o.packed || !o.order.empty() || !o.tensor.empty()))
    throw Error("--codes hex: not allowed with --packed, --order or --tensor");
  if (o.text && !o.type.empty()) throw Error("--dtype: not allowed with --text, which has no type");
  CodesTold told;
  if (!o.format.empty()) told.format = &find_format(o.format);
  told.packed = o.packed;
  if (!o.order.empty()) told.order = parse_bit_order(o.order);
  told.tensor = o.tensor;
  if (o.hex_codes && told.format == nullptr)
    throw Error("--codes hex: expected --format, the format of the codes");
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

}  // namespace numemu::api
