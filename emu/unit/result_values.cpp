#include "emu/unit/result_values.hpp"

#include <cmath>

#include "formats/convert.hpp"

namespace numemu::unit {
namespace {

template <class Code>
std::vector<double> scaled(const void* d, std::int64_t count, int fraction) {
  const auto* const codes = static_cast<const Code*>(d);
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(std::ldexp(static_cast<double>(codes[i]), -fraction));
  return out;
}

}  // namespace

std::vector<double> result_values(const Unit& unit, const void* d, std::int64_t count) {
  const Format* const format = unit.d_format();
  if (format == nullptr) {
    const Register& r = result_register(*unit.description());
    if (r.bits <= 8) return scaled<std::int8_t>(d, count, r.fraction);
    if (r.bits <= 16) return scaled<std::int16_t>(d, count, r.fraction);
    return scaled<std::int32_t>(d, count, r.fraction);
  }
  if (format->bits > 32) return scaled<double>(d, count, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  convert_codes(Conversion{.format = &find_format("float32"), .overflow = Overflow::ieee}, *format,
                d, count, values.data());
  return {values.begin(), values.end()};
}

}  // namespace numemu::unit
