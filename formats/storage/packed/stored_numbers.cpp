#include "formats/storage/packed/stored_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu {
namespace {

template <class T>
std::vector<T> elements_of(const StoredPart& part, InputFile& file, std::int64_t first,
                           std::int64_t count) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  std::vector<T> out(static_cast<std::size_t>(count));
  part.read_bytes(file, first * kSize, count * kSize, out.data());
  return out;
}

template <class T, class Value>
std::vector<double> mapped(const std::vector<T>& in, const Value& value) {
  std::vector<double> out(in.size());
  std::ranges::transform(in, out.begin(), value);
  return out;
}

}  // namespace

void fail_tensor(const std::string& path, const std::string& name, const std::string& text) {
  throw Error(fmt::format("{}: tensor {}: {}", path, quote_name(name), text));
}

StoredPart::StoredPart(const SafetensorsNames& names, const SafetensorsEntry& entry)
    : path_(names.path()),
      name_(entry.name),
      type_(entry.type),
      shape_(entry.shape),
      elements_(entry.elements),
      begin_(names.begin(entry)) {}

void StoredPart::require_type(const std::vector<std::string_view>& accepted) const {
  if (std::ranges::find(accepted, type_->name) == accepted.end())
    fail(fmt::format("dtype: expected {}, found {}", joined(std::span(accepted), " or "),
                     type_->name));
}

void StoredPart::require_shape(const ArrayShape& expected, const std::string& of) const {
  if (shape_ != expected)
    fail(fmt::format("shape: expected {} {}, found {}", shape_text(expected), of,
                     shape_text(shape_)));
}

std::vector<std::uint32_t> StoredPart::words(InputFile& file, std::int64_t first,
                                             std::int64_t count) const {
  return elements_of<std::uint32_t>(*this, file, first, count);
}

std::vector<double> StoredScales::read(InputFile& file, std::int64_t first,
                                       std::int64_t count) const {
  const std::string_view type = part_.type();
  std::vector<double> out;
  if (type == "F32") {
    out = mapped(elements_of<float>(part_, file, first, count), [](float x) { return x; });
  } else if (type == "F16") {
    out = mapped(elements_of<std::uint16_t>(part_, file, first, count), half_value);
  } else if (type == "BF16") {
    out = mapped(elements_of<std::uint16_t>(part_, file, first, count), brain_value);
  } else if (type == "F8_E4M3") {
    const float* const values = decode_table(find_format(part_.stored().format));
    out = mapped(elements_of<std::uint8_t>(part_, file, first, count),
                 [values](std::uint8_t code) { return values[code]; });
  } else {  // E8M0
    out = mapped(elements_of<std::uint8_t>(part_, file, first, count), [](std::uint8_t code) {
      return code == 255 ? std::nan("") : power_of_two(code - 127);
    });
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double x = out[i];
    if (std::isfinite(x) && !std::signbit(x) && (x > 0 || zero_ == Zero::allowed)) continue;
    part_.fail(fmt::format("element {}: expected a {} and finite scale, found {}",
                           first + static_cast<std::int64_t>(i),
                           zero_ == Zero::allowed ? "positive (or zero)" : "positive", x));
  }
  return out;
}

}  // namespace numemu
