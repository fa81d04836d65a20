// Formats, roundings, random bits, conversions of arrays and of single numbers.
#include "api/formats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "bindings/c/call.hpp"
#include "formats/containers.hpp"
#include "formats/convert.hpp"

using namespace numemu;
using c::guarded, c::required;

namespace {

numemu_type type_number(ArrayType type) { return static_cast<numemu_type>(type); }
static_assert(static_cast<int>(ArrayType::int8) == NUMEMU_INT8 &&
              static_cast<int>(ArrayType::uint16) == NUMEMU_UINT16 &&
              static_cast<int>(ArrayType::float16) == NUMEMU_FLOAT16 &&
              static_cast<int>(ArrayType::float64) == NUMEMU_FLOAT64);

/// The codes of an array; numbers where `format` is NULL. Codes are checked where they are
/// converted.
Codes codes_in(const c::Given& given, const Format* format) {
  if (format == nullptr) {
    if (given.type() != ArrayType::float32 && given.type() != ArrayType::float64)
      throw usage_error(fmt::format("{}: type: expected float32 or float64, found {}", given.name(),
                                    to_string(given.type())));
    format = &find_format(given.type() == ArrayType::float32 ? "float32" : "float64");
  }
  if (bytes_of(given.type()) != container_bytes(*format))
    given.require_type(container_type(*format));
  return {format, given.read()};
}

}  // namespace

numemu_status numemu_format_open(const char* name, numemu_format** out) {
  return guarded([&] {
    required(out, "format") = nullptr;
    *out = new numemu_format{&api::find_scalar_format(&required(name, "name"))};
  });
}
void numemu_format_close(numemu_format* format) { delete format; }

numemu_status numemu_format_describe(const numemu_format* handle, numemu_format_facts* out) {
  return guarded([&] {
    const Format& f = *required(handle, "format").format;
    const api::FormatFacts limits = api::facts_of(f);
    const auto number = [](const std::optional<double>& x) { return x.value_or(std::nan("")); };
    const bool floating = f.kind == Kind::floating;
    c::give({.size = 0,
             .name = f.name.c_str(),
             .bits = f.bits,
             .type = type_number(container_type(f)),
             .exponent_bits = floating ? f.exponent_bits : 0,
             .mantissa_bits = floating ? f.mantissa_bits : 0,
             .bias = floating ? f.bias : 0,
             .is_signed = f.is_signed,
             .has_infinity = f.has_infinity(),
             .has_nan = f.has_nan(),
             .largest = number(limits.largest),
             .smallest_normal = number(limits.smallest_normal),
             .smallest = number(limits.smallest)},
            out, "facts");
  });
}

const char* numemu_format_name(int32_t i) {
  const auto& all = named_formats();
  return i < 0 || i >= std::ssize(all) ? nullptr : all[static_cast<std::size_t>(i)]->name.c_str();
}

numemu_status numemu_rounding_open(const char* rounding, const char* overflow,
                                   numemu_rounding** out) {
  return guarded([&] {
    required(out, "rounding") = nullptr;
    *out = new numemu_rounding{parse_rounding(&required(rounding, "rounding")),
                               parse_overflow(&required(overflow, "overflow"))};
  });
}
void numemu_rounding_close(numemu_rounding* rounding) { delete rounding; }

numemu_status numemu_random_bits(const numemu_random* given, int32_t bits, uint64_t first,
                                 int64_t n, uint32_t* words) {
  return guarded([&] {
    if (bits < 1 || bits > 32)
      throw usage_error(fmt::format("bits: expected 1 to 32, found {}", bits));
    if (n < 0) throw usage_error(fmt::format("n: expected at least 0, found {}", n));
    if (n > 0) required(words, "words");
    Conversion source;
    c::set_random(given, source);
    for (int64_t i = 0; i < n; ++i)
      words[i] = source.random_words != nullptr
                     ? source.random_words[i]
                     : source.random.bits(first + static_cast<uint64_t>(i), bits);
  });
}

numemu_status numemu_encode(const numemu_format* to, const numemu_rounding* rounding,
                            const numemu_random* random, const numemu_format* from,
                            const numemu_array* in, const numemu_array* out,
                            const numemu_array* flags, numemu_counts* counts) {
  return guarded([&] {
    const Format& format = *required(to, "to").format;
    const Conversion conversion = c::conversion_to(format, rounding, random);
    const c::Given given(in, "in");
    const Codes numbers = codes_in(given, from == nullptr ? nullptr : from->format);
    required(out, "codes");
    c::Result codes(out, "codes", container_type(format), given.shape());
    c::Result raised(flags, "flags", ArrayType::uint8, given.shape());
    const FlagCounts made =
        convert_codes(conversion, *numbers.format, numbers.array.data.data(), given.elements(),
                      codes.data(), raised.as<std::uint8_t>());
    codes.finish();
    raised.finish();
    if (counts != nullptr) c::give(c::counts_of(made), counts, "counts");
  });
}

numemu_status numemu_decode(const numemu_format* handle, const numemu_array* in,
                            const numemu_array* out) {
  return guarded([&] {
    const Format& format = *required(handle, "format").format;
    const c::Given given(in, "codes");
    const Codes codes = codes_in(given, &format);
    const c::Given wanted(out, "numbers");
    const Format& target =
        api::decoded_type(format, std::string(to_string(wanted.type())), "numbers");
    c::Result numbers(out, "numbers", container_type(target), given.shape());
    // Every value is exact, so only the infinities need a rule: they stay.
    convert_codes({.format = &target, .overflow = Overflow::propagate}, format,
                  codes.array.data.data(), given.elements(), numbers.data());
    numbers.finish();
  });
}

numemu_status numemu_encode_one(const numemu_format* handle, const numemu_rounding* rounding,
                                double x, uint32_t r, uint64_t* code, uint8_t* flags) {
  return guarded([&] {
    const Format& format = *required(handle, "format").format;
    Conversion conversion = c::conversion_to(format, rounding, nullptr);
    conversion.random_words = &r;
    static const Format& float64 = find_format("float64");
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const Encoded made = encode_element(conversion, decode(float64, bits), 0);
    required(code, "code") = made.code;
    if (flags != nullptr) *flags = made.flags;
  });
}

numemu_status numemu_decode_one(const numemu_format* handle, uint64_t code, double* x) {
  return guarded([&] {
    const Format& format = *required(handle, "format").format;
    if (code > format.last_code())
      throw Error(fmt::format("code: expected at most {:#x}, a code of {}, found {:#x}",
                              format.last_code(), format.name, code));
    static const Format& float64 = find_format("float64");
    if (!exact_in(format, float64))
      throw Error("code: values of " + format.name + " are not exact in a double");
    const Encoded made = encode(float64, decode(format, code), Rounding{}, Overflow::propagate);
    std::memcpy(&required(x, "x"), &made.code, sizeof made.code);
  });
}
