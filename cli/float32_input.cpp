// Commands that quantize must not round their input first; networks compute in float32 and may.
#include "cli/float32_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/input_arrays.hpp"
#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/storage/codes_file.hpp"
#include "formats/storage/safetensors_tensor.hpp"

namespace numemu::cli {
namespace {

bool is_signed_integer(ArrayType type) {
  return type == ArrayType::int8 || type == ArrayType::int16 || type == ArrayType::int32 ||
         type == ArrayType::int64;
}

template <class Integer>
void widen_integers(const std::string& path, const Array& integers, float* out) {
  const auto* x = integers.as<Integer>();
  for (std::int64_t i = 0; i < integers.elements(); ++i) {
    out[i] = static_cast<float>(x[i]);
    // 2^63 would not fit the way back, and is not an int64.
    if (out[i] < 0x1p63f && static_cast<std::int64_t>(out[i]) == x[i]) continue;
    throw Error(fmt::format("{}: element {} is {}, which float32 cannot represent", path, i, x[i]));
  }
}

Array float32_of_integers(const std::string& path, const Array& integers) {
  Array values(ArrayType::float32, integers.shape);
  const auto widen = integers.type == ArrayType::int8    ? widen_integers<std::int8_t>
                     : integers.type == ArrayType::int16 ? widen_integers<std::int16_t>
                     : integers.type == ArrayType::int32 ? widen_integers<std::int32_t>
                                                         : widen_integers<std::int64_t>;
  widen(path, integers, values.as<float>());
  return values;
}

/// Numbers of a format as float32 numbers. Each must be one, or is rounded to nearest even where
/// `rounded` counts them.
Array float32_of_codes(const std::string& path, Codes source, std::int64_t* rounded = nullptr) {
  const Format& float32 = find_format("float32");
  if (source.format->name == float32.name) return std::move(source.array);
  const std::int64_t n = source.array.elements();
  Array values(ArrayType::float32, source.array.shape);
  Array flags(ArrayType::uint8, {exact_in(*source.format, float32) ? 0 : n});
  Conversion widen;
  widen.format = &float32;
  widen.overflow = Overflow::propagate;
  const void* codes = source.array.data.data();
  const FlagCounts counts =
      convert_codes(widen, *source.format, codes, n, values.data.data(),
                    flags.elements() == 0 ? nullptr : flags.as<std::uint8_t>());
  if (rounded != nullptr) *rounded = counts.inexact;
  if (flags.elements() == 0 || counts.inexact == 0 || rounded != nullptr) return values;
  const std::uint8_t* first =
      std::find_if(flags.as<std::uint8_t>(), flags.as<std::uint8_t>() + n,
                   [](std::uint8_t flag) { return (flag & kInexact) != 0; });
  const std::int64_t i = first - flags.as<std::uint8_t>();
  throw Error(
      fmt::format("{}: element {} is {}, which float32 cannot represent and would be rounded "
                  "twice: round it first, "
                  "x.astype('float32')",
                  path, i, to_double(decode(*source.format, load_code(*source.format, codes, i)))));
}

}  // namespace

Array read_float32(const std::string& path, const std::string& from, std::int64_t* rounded) {
  // With `rounded` there is no option that names a format.
  CodesTold told{.told_by = rounded != nullptr ? "" : "--from"};
  if (!from.empty()) told.format = &find_format(from);
  StoredArray stored = open_input(path);
  if (from.empty() && !is_safetensors(path) && !stored.sidecar) {
    Array array = read_array(stored);
    if (is_signed_integer(array.type)) return float32_of_integers(path, array);
    require_type(path, array.type, {ArrayType::float16, ArrayType::float32, ArrayType::float64},
                 rounded != nullptr ? "numbers (codes need a sidecar that names their format)"
                                    : "numbers (for codes: --from FORMAT)");
    const Format& format = find_format(to_string(array.type));
    return float32_of_codes(path, checked_codes(path, format, std::move(array)), rounded);
  }
  return float32_of_codes(path, read_numbers(stored, told), rounded);
}

}  // namespace numemu::cli
