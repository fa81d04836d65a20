#include "api/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "formats/blocks/block_convert.hpp"
#include "formats/codebooks/named_codebooks.hpp"
#include "formats/containers.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/quantize.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/suggest.hpp"

namespace numemu::api {
namespace {

/// Nothing where the limit is not a double (e15m2).
std::optional<double> limit_of(double (*of)(const Format&), const Format& format) {
  try {
    return of(format);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// A number may have more digits than the 64 bits of a Value hold. It is refused if these are too
/// few for a single rounding.
void check_precision(const std::string& name, const Conversion& conversion, const Value& value,
                     std::size_t line) {
  constexpr int kSignificand = 64;
  const int needed = conversion.format->mantissa_bits + 3 + conversion.rounding.random_bits;
  if (!value.sticky || needed <= kSignificand) return;
  throw Error(fmt::format("{}: line {}: expected at most {} significant bits for {} with {}", name,
                          line, kSignificand, conversion.format->name,
                          to_string(conversion.rounding)));
}

/// The names of the enumerators, in their order.
std::string_view to_text(Kind kind) {
  constexpr const char* kNames[] = {"float", "integer", "sign", "codebook"};
  return kNames[static_cast<int>(kind)];
}

std::string_view to_text(Specials specials) {
  constexpr const char* kNames[] = {"ieee", "nan1",           "fnuz",        "finite",
                                    "top",  "p3109_extended", "p3109_finite"};
  return kNames[static_cast<int>(specials)];
}

std::string_view to_text(FieldZero field_zero) {
  constexpr const char* kNames[] = {"subnormal", "normal", "scale", "flush"};
  return kNames[static_cast<int>(field_zero)];
}

/// null where the limit is not a double (e15m2).
Json limit(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// Throws Error unless results fit into the caller's array.
void require_room(const char* name, const Array& room, ArrayType type, const ArrayShape& shape) {
  require_type(name, room.type, {type}, "results");
  if (room.shape != shape)
    throw Error(fmt::format("{}: shape: expected {}, found {}", name, shape_text(shape),
                            shape_text(room.shape)));
}

/// Every value is exact in the target, so only the infinities need a rule: they stay.
void decode_exactly(const Codes& codes, const Format& target, Array& values) {
  convert_codes({.format = &target, .overflow = Overflow::propagate}, *codes.format,
                codes.array.data.data(), codes.array.elements(), values.data.data());
}

}  // namespace

Conversion conversion_of(const Format& format, const RoundingWords& words) {
  return {.format = &format,
          .rounding = parse_rounding(words.rounding),
          .overflow = parse_overflow(words.overflow),
          .symmetric = false,
          .random = {.seed = words.seed.value_or(0)}};
}

FormatFacts facts_of(const Format& format) {
  FormatFacts facts;
  facts.aliases = aliases_of(format);
  facts.largest = limit_of(largest_value, format);
  facts.smallest = limit_of(smallest_value, format);
  if (format.kind != Kind::integer) {
    facts.smallest_normal = limit_of(smallest_normal, format);
  } else {
    // It has no subnormal numbers to tell from normal ones.
    facts.lowest = format.is_signed ? to_double(numemu::decode(format, format.sign_bit())) : 0;
  }
  return facts;
}

Json format_json(const Format& format) {
  const bool floating = format.kind == Kind::floating;
  const FormatFacts facts = facts_of(format);
  Json json = {{"name", format.name},
               {"doc", format.doc},
               {"kind", to_text(format.kind)},
               {"signed", format.is_signed},
               {"bits", format.bits}};
  if (floating) {
    json.update({{"exponent_bits", format.exponent_bits},
                 {"mantissa_bits", format.mantissa_bits},
                 {"bias", format.bias},
                 {"specials", to_text(format.specials)},
                 {"field_zero", to_text(format.field_zero)},
                 {"container_shift", format.container_shift}});
  }
  json.update({{"infinity", format.has_infinity()},
               {"nan", format.has_nan()},
               {"negative_zero", format.has_negative_zero()},
               {"largest", limit(facts.largest)}});
  if (format.kind == Kind::integer) {
    json.update({{"lowest", limit(facts.lowest)}, {"smallest_normal", nullptr}});
  } else {
    json["smallest_normal"] = limit(facts.smallest_normal);
  }
  json.update(
      {{"smallest", limit(facts.smallest)}, {"aliases", facts.aliases}, {"source", format.source}});
  return json;
}

Json block_json(const BlockFormat& f) {
  Json json = {{"name", f.name},
               {"doc", f.doc},
               {"kind", "block"},
               {"element", f.element->name},
               {"element_exponent", f.element_exponent},
               {"largest_element", to_double(largest_element(f))},
               {"scale", f.scale->name},
               {"granularity", to_string(f.span)}};
  json["block"] = f.span == Span::block  ? Json(f.size)
                  : f.span == Span::tile ? Json({f.rows, f.size})
                                         : Json();
  const ServingRules rules = rules_serving(f);
  json.update(Json({{"affine", to_string(f.affine)},
                    {"tensor_scale", f.tensor_scale},
                    {"bits", f.bits_per_element()},
                    {"scale_rule", f.default_rule},
                    {"scale_rules", rules.names},
                    {"argument_rules", rules.with_arguments},
                    {"source", f.source}}));
  return json;
}

const Format& find_scalar_format(const std::string& name) {
  try {
    return find_format(name);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    if (!text.starts_with("unknown format") || text.find("': expected ") != text.npos) throw;
    std::vector<std::string> known;
    for (const Format* format : named_formats()) {
      known.push_back(format->name);
      for (const std::string& alias : aliases_of(*format)) known.push_back(alias);
    }
    for (const NamedCodebook& book : named_codebooks()) known.emplace_back(book.shape);
    for (const BlockFormat* format : named_block_formats()) known.push_back(format->name);
    throw Error(unknown_name("format", name, known), error.kind());
  }
}

bool is_block_name(std::string_view text) { return block_format_meant(text) == text; }

Codes float32(ArrayShape shape, const std::vector<float>& numbers) {
  return codes_of("float32", array_of(ArrayType::float32, std::move(shape), numbers));
}

Codes codes_of(const std::string& format, Array array) {
  return checked_codes("codes", find_format(format), std::move(array));
}

EncodedArray encode(const Codes& numbers, const std::string& format, const RoundingWords& words,
                    bool flags) {
  return encode(numbers, conversion_of(find_format(format), words), flags);
}

EncodedArray encode(const Codes& numbers, const Conversion& conversion, bool flags,
                    const OnProgress& on_progress) {
  EncodedArray result{
      {conversion.format, Array(container_type(*conversion.format), numbers.array.shape)},
      Array(ArrayType::uint8, flags ? numbers.array.shape : ArrayShape{0}),
      {}};
  result.counts = encode_into(numbers, conversion, result.codes.array,
                              flags ? &result.flags : nullptr, on_progress);
  return result;
}

FlagCounts encode_into(const Codes& numbers, const Conversion& conversion, Array& codes,
                       Array* flags, const OnProgress& on_progress) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 24;  // elements between two looks at the clock
  constexpr std::int64_t kLong = std::int64_t{1} << 27;   // elements from which progress is told
  require_room("codes", codes, container_type(*conversion.format), numbers.array.shape);
  if (flags != nullptr) require_room("flags", *flags, ArrayType::uint8, numbers.array.shape);
  const std::int64_t n = numbers.array.elements();
  FlagCounts counts;
  const auto tell = [&](std::int64_t done) {
    if (on_progress && n >= kLong)
      on_progress("elements", static_cast<double>(done), static_cast<double>(n));
  };
  tell(0);
  const int in_bytes = bytes_of(numbers.array.type), out_bytes = bytes_of(codes.type);
  for (std::int64_t first = 0; first < n; first += kChunk) {
    const std::int64_t count = std::min(kChunk, n - first);
    counts +=
        convert_codes(conversion, *numbers.format, numbers.array.data.data() + first * in_bytes,
                      count, codes.data.data() + first * out_bytes,
                      flags != nullptr ? flags->as<std::uint8_t>() + first : nullptr, first);
    tell(first + count);
  }
  return counts;
}

EncodedArray encode(const std::vector<Value>& numbers, const Conversion& conversion,
                    const std::string& name) {
  const Format& format = *conversion.format;
  const ArrayShape shape = {std::ssize(numbers)};
  EncodedArray result{
      {&format, Array(container_type(format), shape)}, Array(ArrayType::uint8, shape), {}};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    check_precision(name, conversion, numbers[i], i + 1);
    const auto at = static_cast<std::int64_t>(i);
    const Encoded encoded = encode_element(conversion, numbers[i], at);
    store_code(format, result.codes.array.data.data(), at, encoded.code);
    result.flags.as<std::uint8_t>()[i] = encoded.flags;
    result.counts.add(encoded.flags);
  }
  return result;
}

const Format& decoded_type(const Format& format, const std::string& type, const std::string& name) {
  const std::vector<std::string> candidates = type.empty()
                                                  ? std::vector<std::string>{"float32", "float64"}
                                                  : std::vector<std::string>{type};
  for (const std::string& candidate : candidates) {
    if (exact_in(format, find_format(candidate))) return find_format(candidate);
  }
  const bool wider = type == "float32" && exact_in(format, find_format("float64"));
  throw Error(fmt::format("{}: values of {} are not exact in {}: use --text{}", name, format.name,
                          candidates.back(), wider ? " or --dtype float64" : ""));
}

Array decode(const Codes& codes, const std::string& type, const std::string& name) {
  const Format& target = decoded_type(*codes.format, type, name);
  Array values(container_type(target), codes.array.shape);
  decode_exactly(codes, target, values);
  return values;
}

void decode_into(const Codes& codes, Array& values) {
  const Format& target = decoded_type(*codes.format, std::string(to_string(values.type)), "codes");
  require_room("values", values, values.type, codes.array.shape);
  decode_exactly(codes, target, values);
}

FlagCounts quantize_into(const Array& x, const Conversion& conversion, double scale, Array& y) {
  require_type("x", x.type, {ArrayType::float32}, "numbers");
  require_room("y", y, ArrayType::float32, x.shape);
  const auto by = static_cast<float>(scale);
  if (!(by > 0) || !std::isfinite(by))
    throw usage_error(
        fmt::format("scale: expected a positive number within float32, not {}", scale));
  constexpr std::int64_t kPiece = std::int64_t{1} << 14;
  const std::int64_t n = x.elements(), pieces = (n + kPiece - 1) / kPiece;
  FlagCounts counts;
  // The first piece also shows, outside the loop over threads, whether float32 holds the values.
  counts += quantize_values(conversion, x.as<float>(), std::min(n, kPiece), by, y.as<float>());
#pragma omp parallel if (pieces > 2)
  {
    FlagCounts own;
#pragma omp for schedule(static)
    for (std::int64_t i = 1; i < pieces; ++i) {
      const std::int64_t first = i * kPiece;
      own += quantize_values(conversion, x.as<float>() + first, std::min(kPiece, n - first), by,
                             y.as<float>() + first, first);
    }
#pragma omp critical
    counts += own;
  }
  return counts;
}

BlockQuantization quantization_of(const QuantizeOptions& options, const BlockFormat& f,
                                  const Conversion& conversion) {
  BlockQuantization how;
  how.format = &f;
  how.rule = &find_scale_rule(options.rule.empty() ? f.default_rule : options.rule, f);
  how.element = conversion;
  how.element.symmetric = !options.full_range;
  if (!options.scale_round.empty()) how.scale_rounding = parse_rounding(options.scale_round).mode;
  if (f.tensor_scale) how.scale_rounding = RoundingMode::rne;
  if (options.ignore_nonfinite) how.nonfinite = Nonfinite::ignore;
  how.use_tensor_scale = !options.no_tensor_scale;
  if (options.scales != nullptr) how.scales = options.scales->data.data();
  how.tensor_scale = options.tensor_scale;
  return how;
}

void check_given_scales(const std::string& name, const BlockFormat& f, const BlockLayout& layout,
                        const Array& scales, const Array& x) {
  require_type(name, scales.type, {container_type(*f.scale)}, "scales");
  if (scales.shape != layout.scale_shape)
    throw Error(fmt::format("{}: shape: expected {} for {}, found {}", name,
                            shape_text(layout.scale_shape), f.name, shape_text(scales.shape)));
  check_scales(f, name, scales.data.data(), layout.blocks);
  if (!f.tensor_scale) return;  // none is 0
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    const std::uint64_t code = load_code(*f.scale, scales.data.data(), b);
    if (numemu::decode(*f.scale, code).kind != Class::zero) continue;
    layout.block(b).for_each([&](std::int64_t i) {
      const float value = x.as<float>()[i];
      if (value != 0 && std::isfinite(value))
        throw Error(fmt::format(
            "{}: element {} is 0, expected a scale above 0 for a block whose element {} of x is {}",
            name, b, i, value));
    });
  }
}

void check_given_tensor_scale(const std::string& name, const BlockFormat& f, float scale) {
  if (!f.tensor_scale) throw usage_error(fmt::format("{}: {} has no tensor scale", name, f.name));
  if (!(scale > 0) || !std::isfinite(scale))
    throw Error(fmt::format("{}: expected one finite number above 0 as tensor scale", name));
}

QuantizedArray quantize(const Array& x, const QuantizeOptions& options) {
  require_type("x", x.type, {ArrayType::float32}, "numbers");
  const BlockFormat& f = find_block_format(options.block);
  const BlockLayout layout = block_layout(f, x.shape, options.axis);
  if (options.scales != nullptr) check_given_scales("scales", f, layout, *options.scales, x);
  if (options.tensor_scale) check_given_tensor_scale("tensor scale", f, *options.tensor_scale);
  return quantize(x, quantization_of(options, f, conversion_of(*f.element, options.words)), layout,
                  {.zero_points = f.affine != Affine::sym});
}

QuantizedArray quantize(const Array& x, const BlockQuantization& how, const BlockLayout& layout,
                        const QuantizedParts& parts) {
  const BlockFormat& f = *how.format;
  QuantizedArray q{how, layout, Array(ArrayType::float32, x.shape), {}, {}, {}, {}};
  if (parts.codes) q.codes = Array(container_type(*f.element), x.shape);
  if (parts.scales) q.scales = Array(container_type(*f.scale), layout.scale_shape);
  if (parts.zero_points)
    q.zero_points = Array(f.affine == Affine::min ? ArrayType::float32 : container_type(*f.element),
                          layout.scale_shape);
  quantize_into(x, q);
  return q;
}

void quantize_into(const Array& x, QuantizedArray& q) {
  float tensor_scale = 1;
  q.counts = quantize_blocks(
      q.how, q.layout, x.as<float>(),
      {q.codes.data.data(), q.scales.data.data(), q.zero_points.data.data(), &tensor_scale},
      q.values.as<float>());
}

Sqnr sqnr_of(const Array& before, const Array& after) {
  const float *x = before.as<float>(), *y = after.as<float>();
  const std::int64_t n = before.elements();
  const auto sum = [&](const auto& term) {
    return pairwise_sum(n, [&](std::int64_t i) {
      return std::isfinite(x[i]) && std::isfinite(y[i]) ? term(double{x[i]}, double{y[i]}) : 0.0;
    });
  };
  const double signal = sum([](double a, double) { return a * a; });
  const double noise = sum([](double a, double b) { return (b - a) * (b - a); });
  Sqnr sqnr;
  sqnr.n = n;
  for (std::int64_t i = 0; i < n; ++i) {
    sqnr.finite += std::isfinite(x[i]) && std::isfinite(y[i]);
    sqnr.became_infinite += std::isfinite(x[i]) && std::isinf(y[i]);
  }
  if (noise > 0) {
    sqnr.kind = Sqnr::Kind::measured;
    sqnr.db = 10 * portable::log10(signal / noise);
  } else if (signal > 0) {
    sqnr.kind = Sqnr::Kind::infinite;
  }
  return sqnr;
}

Array dequantize(const QuantizedArray& q) {
  Array y(ArrayType::float32, q.values.shape);
  dequantize_into(q, y);
  return y;
}

void dequantize_into(const QuantizedArray& q, Array& values) {
  require_room("values", values, ArrayType::float32, q.codes.shape);
  dequantize_blocks(
      *q.how.format, q.layout,
      {q.codes.data.data(), q.scales.data.data(), q.zero_points.data.data(), q.counts.tensor_scale},
      values.as<float>());
}

}  // namespace numemu::api
