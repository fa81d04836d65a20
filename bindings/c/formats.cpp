#include "api/formats.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "bindings/c/arrays.hpp"
#include "bindings/c/call.hpp"
#include "bindings/c/handles.hpp"
#include "formats/codec.hpp"
#include "formats/convert.hpp"
#include "formats/value.hpp"

namespace numemu::c {
namespace {

const Format& float64() {
  static const Format& format = find_format("float64");
  return format;
}

/// The numbers of an array as codes of their type.
Codes numbers_in(const char* name, const numemu_array& array) {
  Array numbers = in(name, array);
  require_type(name, numbers.type, {ArrayType::float32, ArrayType::float64}, "numbers");
  const Format& format = numbers.type == ArrayType::float32 ? float32() : float64();
  return {&format, std::move(numbers)};
}

double number(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

[[noreturn]] void refuse_type(const Format& format, const std::string& type) {
  throw Error(format.name + ": expected numbers that are exact in " + type);
}

}  // namespace

RandomSource random_source(const numemu_random& random, Stream otherwise) {
  constexpr std::uint32_t kMostDraws = 0xffff;
  require_within("random: draw", random.draw, 0, kMostDraws);
  return {.seed = random.seed,
          .stream = random.stream == 0 ? otherwise : static_cast<Stream>(random.stream),
          .tensor = random.tensor,
          .draw = static_cast<std::uint16_t>(random.draw)};
}

Conversion conversion_of(const Format& format, const numemu_rounding* rounding,
                         const numemu_random* random) {
  const numemu_rounding how = rounding_of(rounding);
  const numemu_random given = taken(random, "random");
  return {.format = &format,
          .rounding = how.rounding,
          .overflow = how.overflow,
          .symmetric = false,
          .random = random_source(given, Stream::quantize),
          .random_words = given.words};
}

numemu_counts counts_of(const FlagCounts& counts) {
  return {sizeof(numemu_counts), counts.elements, counts.inexact,
          counts.underflow,      counts.overflow, counts.invalid};
}

}  // namespace numemu::c

using namespace numemu;
using namespace numemu::c;

numemu_status numemu_format_open(const char* name, numemu_format** format) {
  return call([&] {
    required(format, "format") = nullptr;
    const Format& found = api::find_scalar_format(&required(name, "name"));
    *format = new numemu_format{&found, exact_in(found, float64())};
  });
}

void numemu_format_close(numemu_format* format) { delete format; }

numemu_status numemu_format_describe(const numemu_format* handle, numemu_format_facts* out) {
  return call([&] {
    const Format& f = *required(handle, "format").format;
    const api::FormatFacts known = api::facts_of(f);
    numemu_format_facts facts = {};
    facts.name = f.name.c_str();
    facts.bits = f.bits;
    facts.type = static_cast<numemu_type>(container_type(f));
    facts.exponent_bits = f.exponent_bits;
    facts.mantissa_bits = f.mantissa_bits;
    facts.bias = f.bias;
    facts.is_signed = f.is_signed;
    facts.has_infinity = f.has_infinity();
    facts.has_nan = f.has_nan();
    facts.largest = number(known.largest);
    facts.smallest_normal = number(known.smallest_normal);
    facts.smallest = number(known.smallest);
    give(facts, out, "facts");
  });
}

const char* numemu_format_name(int32_t i) {
  const auto& all = named_formats();
  return i < 0 || i >= std::ssize(all) ? nullptr : all[static_cast<std::size_t>(i)]->name.c_str();
}

numemu_status numemu_rounding_open(const char* rounding, const char* overflow,
                                   numemu_rounding** out) {
  return call([&] {
    required(out, "out") = nullptr;
    *out = new numemu_rounding{parse_rounding(rounding == nullptr ? "rne" : rounding),
                               parse_overflow(overflow == nullptr ? "saturate" : overflow)};
  });
}

void numemu_rounding_close(numemu_rounding* rounding) { delete rounding; }

numemu_status numemu_random_bits(const numemu_random* random, int32_t bits, uint64_t first,
                                 int64_t n, uint32_t* words) {
  return call([&] {
    constexpr int kMostBits = 32;
    require_within("bits", bits, 1, kMostBits);
    require_within("n", n, 0,
                   std::numeric_limits<std::int64_t>::max() / std::int64_t{sizeof *words});
    if (n != 0) required(words, "words");
    const numemu_random given = taken(random, "random");
    if (given.words != nullptr)
      throw usage_error("random: words: expected NULL where bits are made");
    const RandomSource source = random_source(given, Stream::quantize);
    for (std::int64_t i = 0; i < n; ++i)
      words[i] = source.bits(first + static_cast<std::uint64_t>(i), bits);
  });
}

numemu_status numemu_encode(const numemu_format* to, const numemu_rounding* rounding,
                            const numemu_random* random, const numemu_format* from,
                            const numemu_array* in, const numemu_array* codes,
                            const numemu_array* flags, numemu_counts* counts) {
  return call([&] {
    const Format& format = *required(to, "to").format;
    required(in, "in");
    const Codes numbers =
        from == nullptr ? numbers_in("in", *in) : codes_in("in", *from->format, *in);
    const ArrayShape& shape = numbers.array.shape;
    required(codes, "codes");
    Out out("codes", codes, container_type(format), shape);
    Out raised("flags", flags, ArrayType::uint8, shape);
    const FlagCounts counted = convert_codes(
        conversion_of(format, rounding, random), *numbers.format, numbers.array.data.data(),
        numbers.array.elements(), out.data(), static_cast<std::uint8_t*>(raised.data()));
    out.finish();
    raised.finish();
    if (counts != nullptr) give(counts_of(counted), counts, "counts");
  });
}

numemu_status numemu_decode(const numemu_format* handle, const numemu_array* codes,
                            const numemu_array* numbers) {
  return call([&] {
    const Format& format = *required(handle, "format").format;
    const bool wide = required(numbers, "numbers").type == NUMEMU_FLOAT64;
    const Format& to = wide ? float64() : float32();
    if (wide ? !handle->in_double : !exact_in(format, to)) refuse_type(format, to.name);
    const Codes from = codes_in("codes", format, required(codes, "codes"));
    Out out("numbers", numbers, wide ? ArrayType::float64 : ArrayType::float32, from.array.shape);
    // Every number is exact, so only the infinities need a rule: they stay.
    convert_codes({.format = &to, .overflow = Overflow::propagate}, format, from.array.data.data(),
                  from.array.elements(), out.data());
    out.finish();
  });
}

numemu_status numemu_encode_one(const numemu_format* handle, const numemu_rounding* rounding,
                                double x, uint32_t r, uint64_t* code, uint8_t* flags) {
  return call([&] {
    const numemu_rounding how = rounding_of(rounding);
    const Encoded encoded =
        encode(*required(handle, "format").format, value_of(x), how.rounding, how.overflow, r);
    required(code, "code") = encoded.code;
    if (flags != nullptr) *flags = encoded.flags;
  });
}

numemu_status numemu_decode_one(const numemu_format* handle, uint64_t code, double* x) {
  return call([&] {
    const Format& format = *required(handle, "format").format;
    if (code > format.last_code())
      throw Error("code: " + std::to_string(code) + " is not a code of " + format.name);
    if (!handle->in_double) refuse_type(format, "float64");
    required(x, "x") = to_double(decode(format, code));
  });
}
