// Which type of ONNX stores the codes of a format, and the codes as its bytes.
#include <algorithm>

#include "emu/net/model/onnx_export.hpp"
#include "formats/quantize.hpp"

namespace numemu::net {

std::optional<OnnxType> storage_type(const Format& format) {
  if (format.kind == Kind::integer) {
    if (format.bits <= 4) return format.is_signed ? OnnxType::int4 : OnnxType::uint4;
    if (format.bits <= 8) return format.is_signed ? OnnxType::int8 : OnnxType::uint8;
    if (format.bits <= 16) return format.is_signed ? OnnxType::int16 : OnnxType::uint16;
    return std::nullopt;
  }
  constexpr OnnxType kFloats[] = {OnnxType::float8_e4m3fn, OnnxType::float8_e4m3fnuz,
                                  OnnxType::float8_e5m2, OnnxType::float8_e5m2fnuz};
  for (const OnnxType type : kFloats) {
    if (format.name == float8_format(type)) return type;
  }
  if (format.bits > 8 || format.kind == Kind::codebook) return std::nullopt;
  for (const OnnxType type : {OnnxType::float8_e4m3fn, OnnxType::float8_e5m2}) {
    const std::vector<double> all = finite_values(find_format(float8_format(type)));
    const auto holds = [&](double value) { return std::ranges::binary_search(all, value); };
    if (std::ranges::all_of(finite_values(format), holds)) return type;
  }
  return std::nullopt;
}

std::string stored_codes(const Format& format, OnnxType type,
                         const std::vector<std::uint16_t>& codes) {
  std::string out;
  if (format.kind != Kind::integer) {
    const Format& stored = find_format(float8_format(type));
    // As they are: a conversion would saturate infinity.
    if (format.name == stored.name) return {codes.begin(), codes.end()};
    const float* const table = decode_table(format);
    std::vector<float> values;
    for (const std::uint16_t code : codes) values.push_back(table[code & 255]);
    std::vector<std::uint8_t> bytes(values.size());
    quantize_codes(Conversion{.format = &stored}, values.data(),
                   static_cast<std::int64_t>(values.size()), 1, bytes.data());
    return {bytes.begin(), bytes.end()};
  }
  const bool packed = type == OnnxType::int4 || type == OnnxType::uint4,
             wide = type == OnnxType::int16 || type == OnnxType::uint16;
  const auto unused = 32 - format.bits;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    // Two's complement of the format's bits, widened.
    const auto word = static_cast<std::uint32_t>(codes[i]) << unused;
    const std::uint32_t code =
        format.is_signed ? static_cast<std::uint32_t>(static_cast<std::int32_t>(word) >> unused)
                         : word >> unused;
    if (packed) {
      if (i % 2 == 0) out += '\0';
      out.back() = static_cast<char>(out.back() | static_cast<char>((code & 15) << (i % 2 * 4)));
      continue;
    }
    out += static_cast<char>(code & 255);
    if (wide) out += static_cast<char>(code >> 8 & 255);
  }
  return out;
}

}  // namespace numemu::net
