#include "policies/recipe/fixed_scales.hpp"

#include <fmt/format.h>

#include <charconv>

#include "formats/scaling/scale_rule.hpp"

namespace numemu::policies {
namespace {

constexpr std::string_view kPrefix = "fixed ", kZeroPoint = " zero ";

/// Shortest decimal texts of float32 numbers come back exactly.
std::vector<float> numbers(std::string_view text) {
  std::vector<float> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    float value = 0;
    std::from_chars(text.data(), text.data() + end, value);
    values.push_back(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values;
}

}  // namespace

std::string fixed_scales_text(const std::vector<float>& scales) {
  return fmt::format("{}{}", kPrefix, fmt::join(scales, " "));
}

std::string fixed_scale_text(const TensorScale& scale) {
  return fmt::format("{}{}{}{}", kPrefix, scale.scale, kZeroPoint, scale.zero_point);
}

bool has_fixed_scales(std::string_view scale) { return scale.starts_with(kPrefix); }

bool stores_scale(const std::string& scale) {
  return has_fixed_scales(scale) || find_scale_rule(scale).stores_scale;
}

std::optional<std::vector<float>> fixed_scales(std::string_view scale) {
  if (!has_fixed_scales(scale)) return std::nullopt;
  scale.remove_prefix(kPrefix.size());
  return numbers(scale.substr(0, scale.find(kZeroPoint)));
}

std::optional<TensorScale> fixed_scale(std::string_view scale) {
  const std::optional<std::vector<float>> scales = fixed_scales(scale);
  if (!scales || scales->size() != 1) return std::nullopt;
  TensorScale fixed{scales->front()};
  if (const std::size_t zero = scale.find(kZeroPoint); zero != scale.npos) {
    const std::string_view number = scale.substr(zero + kZeroPoint.size());
    std::from_chars(number.data(), number.data() + number.size(), fixed.zero_point);
  }
  return fixed;
}

}  // namespace numemu::policies
