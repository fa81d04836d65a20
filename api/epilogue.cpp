// Codes from the sums of an integer unit: the epilogue's numbers from files and texts, and what it
// makes of a product.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "api/array_files.hpp"
#include "api/units.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using unit::Epilogue;
using unit::Requantization;

/// The float64 nearest to the number, ties to even.
double nearest_double(const std::string& number) {
  const std::uint64_t code =
      encode(find_format("float64"), parse_number(number), {}, Overflow::ieee).code;
  return std::bit_cast<double>(code);
}

/// A number, or one for each column in a file. Nothing for no text.
NamedNumbers read_numbers(const std::string& option, const std::string& text, bool whole) {
  NamedNumbers numbers{option};
  if (text.empty()) return numbers;
  if (!is_results_file(text)) {
    try {
      numbers.values = {nearest_double(text)};
      return numbers;
    } catch (const Error&) {
      throw usage_error(
          fmt::format("{}: expected a number or a file NAME.npy, found '{}'", option, text));
    }
  }
  const Array array = read_npy(text);
  require_type(text, array.type,
               whole ? std::vector{ArrayType::int32, ArrayType::int64}
                     : std::vector{ArrayType::float32, ArrayType::float64},
               whole ? "whole numbers" : "factors");
  numbers.name = text;
  with_element_type(array.type, [&]<class T>(T) {
    const T* const at = array.as<T>();
    for (std::int64_t i = 0; i < array.elements(); ++i)
      numbers.values.push_back(static_cast<double>(at[i]));
  });
  return numbers;
}

/// Whole numbers between two ends.
std::vector<std::int32_t> whole_numbers(const NamedNumbers& numbers, std::int64_t least,
                                        std::int64_t most) {
  std::vector<std::int32_t> whole;
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    const double x = numbers.values[i];
    const bool fits = x >= static_cast<double>(least) && x <= static_cast<double>(most) &&
                      x == static_cast<double>(static_cast<std::int64_t>(x));
    if (!fits)
      throw Error(fmt::format("{}: {}expected a whole number from {} to {}, found {}", numbers.name,
                              numbers.values.size() > 1 ? fmt::format("element {}: ", i) : "",
                              least, most, x));
    whole.push_back(static_cast<std::int32_t>(x));
  }
  return whole;
}

/// "--zero-point", or "zero_point".
std::string named(const EpilogueNumbers& given, std::string option) {
  if (!given.arguments) return "--" + option;
  std::ranges::replace(option, '-', '_');
  return option;
}

/// The numbers of each column: one for all, or as many as there are columns.
void require_columns(const std::string& name, std::size_t count, std::int64_t columns) {
  const auto n = static_cast<std::int64_t>(count);
  if (n > 1 && n != columns)
    throw Error(fmt::format("{}: shape: expected [{}], one for each column, or [1], found [{}]",
                            name, columns, n));
}

}  // namespace

Epilogue make_epilogue(const unit::Unit& unit, const EpilogueNumbers& given) {
  const auto option = [&](const char* name) { return named(given, name); };
  if (!unit::gives_int32(unit))
    throw usage_error(fmt::format("{}: expected a unit with int32 results, {} gives {}",
                                  option("requantize"), unit.row().name, unit.row().result));
  const Format& format = find_format(given.format);
  if (format.kind != Kind::integer || format.bits > 16)
    throw usage_error(fmt::format("{}: expected integers of at most 16 bits with {}, found {}",
                                  option("format-d"), option("requantize"), format.name));
  Epilogue e;
  e.how = unit::parse_requantization(given.requantize);
  const bool fixed = e.how != Requantization::real;
  const bool multiplier = !given.multiplier.values.empty(), shift = !given.shift.values.empty();
  const bool parts = multiplier || shift;
  if (parts && !fixed)
    throw usage_error(
        fmt::format("{}, {}: expected {} fixed-point-single or fixed-point-double; float has {}",
                    option("multiplier"), option("shift"), option("requantize"), option("factor")));
  if (parts == !given.factor.values.empty() || multiplier != shift)
    throw usage_error(fmt::format(
        "{}: expected {}{}", option("requantize"), option("factor"),
        fixed ? fmt::format(", or {} and {}", option("multiplier"), option("shift")) : ""));
  if (parts) {
    const auto multipliers =
        whole_numbers(given.multiplier, 0, std::numeric_limits<std::int32_t>::max());
    const auto shifts = whole_numbers(given.shift, unit::kLeastShift, unit::kMostShift);
    if (multipliers.size() > 1 && shifts.size() > 1)
      require_columns(given.shift.name, shifts.size(), std::ssize(multipliers));
    for (std::size_t i = 0; i < std::max(multipliers.size(), shifts.size()); ++i)
      e.fixed_factors.push_back(
          {multipliers[multipliers.size() == 1 ? 0 : i], shifts[shifts.size() == 1 ? 0 : i]});
  } else {
    std::vector<double> factors = given.factor.values;
    for (double& factor : factors) {
      if (!fixed) factor = static_cast<double>(static_cast<float>(factor));
    }
    at(given.factor.name, [&] { e.set_factors(factors); });
  }
  e.bias = given.bias;
  const auto [low, high] = unit::ends_of_integers(format);
  const auto within = [&, low = low, high = high](const char* name, std::int64_t value) {
    if (value < low || value > high)
      throw usage_error(fmt::format("{}: expected a number of {}, {} to {}, found {}", option(name),
                                    format.name, low, high, value));
    return static_cast<std::int32_t>(value);
  };
  e.zero_point = within("zero-point", given.zero_point);
  e.low = within("low", given.low.value_or(low));
  e.high = within("high", given.high.value_or(high));
  if (e.low > e.high)
    throw usage_error(fmt::format("{}: expected at most {}", option("low"), option("high")));
  return e;
}

EpilogueNumbers numbers_of(const EpilogueFiles& files) {
  return {.requantize = files.requantize,
          .format = files.format,
          .factor = read_numbers("--factor", files.factor, false),
          .multiplier = read_numbers("--multiplier", files.multiplier, true),
          .shift = read_numbers("--shift", files.shift, true),
          .zero_point = files.zero_point.value_or(0),
          .low = files.low,
          .high = files.high};
}

Epilogue read_epilogue(const Product& p, const EpilogueFiles& files) {
  const std::int64_t n = p.gemm.n;
  EpilogueNumbers numbers = numbers_of(files);
  if (!files.bias.empty()) {
    const Array bias = read_npy(files.bias);
    require_type(files.bias, bias.type, {ArrayType::int32}, "biases");
    if (bias.shape != ArrayShape{n})
      throw Error(fmt::format("{}: shape: expected [{}], one for each column, found {}", files.bias,
                              n, shape_text(bias.shape)));
    numbers.bias.assign(bias.as<std::int32_t>(), bias.as<std::int32_t>() + n);
  }
  for (const NamedNumbers* of : {&numbers.factor, &numbers.multiplier, &numbers.shift})
    require_columns(of->name, of->values.size(), n);
  return make_epilogue(*p.unit, numbers);
}

Codes requantized(const Product& p, const Epilogue& e, const Format& format) {
  for (const auto& [name, numbers] : {std::pair("factor", std::ssize(e.factors)),
                                      {"multiplier and shift", std::ssize(e.fixed_factors)},
                                      {"bias", std::ssize(e.bias)}})
    require_columns(name, static_cast<std::size_t>(numbers), p.gemm.n);
  Codes codes{&format, Array(container_type(format), p.d.shape)};
  const auto* const sums = p.d.as<std::int32_t>();
  const std::uint32_t mask = (1u << format.bits) - 1;
  const std::int64_t count = p.d.elements(), n = std::max<std::int64_t>(p.gemm.n, 1);
  const auto write = [&](auto* to) {
    using Code = std::remove_pointer_t<decltype(to)>;
#pragma omp parallel for schedule(static) if (count > 65536)
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<Code>(static_cast<std::uint32_t>(e.code(sums[i], i % n)) & mask);
  };
  if (format.bits <= 8) {
    write(codes.array.as<std::uint8_t>());
  } else {
    write(codes.array.as<std::uint16_t>());
  }
  return codes;
}

void write_codes(const Codes& codes, const std::string& path) {
  OutputFiles files;
  Sidecar about;
  about.numemu = NUMEMU_VERSION;
  files.add_codes("codes", path, *codes.format, codes.array.shape, codes.array.data.data(), about);
  files.publish();
}

}  // namespace numemu::api
