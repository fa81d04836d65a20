// Codes from the sums of an integer unit: the epilogue's numbers from files and texts, and what it
// makes of a product.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "api/array_files.hpp"
#include "api/units.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using unit::Epilogue;
using unit::Requantization;

/// A number, or one for each column in a file.
struct Numbers {
  std::vector<double> values = {};
  bool file = false;
};

Numbers read_numbers(const std::string& option, const std::string& text, std::int64_t columns,
                     bool whole) {
  if (!is_results_file(text)) {
    try {
      return {{to_double(parse_number(text))}, false};
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
  if (array.elements() != columns && array.elements() != 1)
    throw Error(fmt::format("{}: shape: expected [{}], one for each column, or [1], found {}", text,
                            columns, shape_text(array.shape)));
  Numbers numbers{.file = true};
  with_element_type(array.type, [&]<class T>(T) {
    const T* const at = array.as<T>();
    for (std::int64_t i = 0; i < array.elements(); ++i)
      numbers.values.push_back(static_cast<double>(at[i]));
  });
  return numbers;
}

/// Whole numbers between two ends.
std::vector<std::int32_t> read_whole(const std::string& option, const std::string& text,
                                     std::int64_t columns, std::int64_t least, std::int64_t most) {
  const Numbers numbers = read_numbers(option, text, columns, /*whole=*/true);
  std::vector<std::int32_t> whole;
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    const double x = numbers.values[i];
    const bool fits = x >= static_cast<double>(least) && x <= static_cast<double>(most) &&
                      x == static_cast<double>(static_cast<std::int64_t>(x));
    if (!fits)
      throw Error(fmt::format("{}: {}expected a whole number from {} to {}, found {}",
                              numbers.file ? text : option,
                              numbers.file ? fmt::format("element {}: ", i) : "", least, most, x));
    whole.push_back(static_cast<std::int32_t>(x));
  }
  return whole;
}

std::int32_t end_of(const Format& format, bool low) {
  if (!format.is_signed) return low ? 0 : (1 << format.bits) - 1;
  return low ? -(1 << (format.bits - 1)) : (1 << (format.bits - 1)) - 1;
}

}  // namespace

Epilogue read_epilogue(const Product& p, const EpilogueFiles& files) {
  const unit::UnitDescription* const u = p.unit->description();
  const bool sums = u != nullptr && p.unit->d_format() == nullptr &&
                    unit::result_register(*u).bits == 32 && unit::result_register(*u).fraction == 0;
  if (!sums)
    throw usage_error(fmt::format("--requantize: expected a unit with int32 results, {} gives {}",
                                  p.unit->row().name, p.unit->row().result));
  const Format& format = find_format(files.format);
  if (format.kind != Kind::integer || format.bits > 16)
    throw usage_error(
        fmt::format("--format-d: expected integers of at most 16 bits with --requantize, found {}",
                    format.name));
  Epilogue e;
  e.how = unit::parse_requantization(files.requantize);
  const bool fixed = e.how != Requantization::real;
  const std::int64_t n = p.gemm.n;
  const bool parts = !files.multiplier.empty() || !files.shift.empty();
  if (parts && !fixed)
    throw usage_error(
        "--multiplier, --shift: expected --requantize fixed-point-single or "
        "fixed-point-double; float has --factor");
  if (parts == !files.factor.empty() || files.multiplier.empty() != files.shift.empty())
    throw usage_error(fixed ? "--requantize: expected --factor, or --multiplier and --shift"
                            : "--requantize: expected --factor");
  if (parts) {
    const auto multipliers = read_whole("--multiplier", files.multiplier, n, 0,
                                        std::numeric_limits<std::int32_t>::max());
    const auto shifts = read_whole("--shift", files.shift, n, unit::kLeastShift, unit::kMostShift);
    for (std::size_t i = 0; i < std::max(multipliers.size(), shifts.size()); ++i)
      e.fixed_factors.push_back(
          {multipliers[multipliers.size() == 1 ? 0 : i], shifts[shifts.size() == 1 ? 0 : i]});
  } else {
    Numbers factors = read_numbers("--factor", files.factor, n, /*whole=*/false);
    for (double& factor : factors.values) {
      if (!fixed) factor = static_cast<double>(static_cast<float>(factor));
    }
    try {
      e.set_factors(factors.values);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", factors.file ? files.factor : "--factor", error.what()));
    }
  }
  if (!files.bias.empty()) {
    const Array bias = read_npy(files.bias);
    require_type(files.bias, bias.type, {ArrayType::int32}, "biases");
    if (bias.shape != ArrayShape{n})
      throw Error(fmt::format("{}: shape: expected [{}], one for each column, found {}", files.bias,
                              n, shape_text(bias.shape)));
    e.bias.assign(bias.as<std::int32_t>(), bias.as<std::int32_t>() + n);
  }
  const std::int32_t low = end_of(format, true), high = end_of(format, false);
  const auto within = [&](const char* option, std::int64_t value) {
    if (value < low || value > high)
      throw usage_error(fmt::format("{}: expected a number of {}, {} to {}, found {}", option,
                                    format.name, low, high, value));
    return static_cast<std::int32_t>(value);
  };
  e.zero_point = within("--zero-point", files.zero_point);
  e.low = within("--low", files.low.value_or(low));
  e.high = within("--high", files.high.value_or(high));
  if (e.low > e.high) throw usage_error("--low: expected at most --high");
  return e;
}

Codes requantized(const Product& p, const Epilogue& e, const Format& format) {
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
