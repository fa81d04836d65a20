// A tensor as codes and scales, the way a role's policy stores it.
#include "policies/recipe/quantized_tensor.hpp"

#include "formats/codec.hpp"
#include "formats/value.hpp"
#include "policies/scale_rule.hpp"

namespace numemu::policies {
namespace {

constexpr int kNarrowBits = 8;

}  // namespace

float QuantizedTensor::element(std::int64_t i) const {
  if (format->bits <= kNarrowBits) return decode_table(*format)[narrow[i]];
  return static_cast<float>(to_double(decode(*format, wide[i])));
}

Conversion conversion_of(const RolePolicy& policy, const RandomSource& random) {
  Conversion conversion;
  conversion.format = policy.format;
  conversion.rounding = policy.rounding;
  conversion.overflow = policy.overflow;
  conversion.symmetric = true;
  conversion.random = random;
  return conversion;
}

std::vector<float> choose_scales(const RolePolicy& policy, const net::Tensor& x) {
  const Conversion conversion = conversion_of(policy);
  const ScaleRule& rule = find_scale_rule(policy.scale);
  const std::int64_t groups = policy.granularity == Granularity::channel ? x.dim(0) : 1;
  const std::int64_t size = groups == 0 ? 0 : x.size() / groups;
  std::vector<float> scales;
  for (std::int64_t g = 0; g < groups; ++g)
    scales.push_back(rule.scale({x.data.data() + g * size, size, &conversion}));
  return scales;
}

void quantize_tensor(const RolePolicy& policy, const net::Tensor& x,
                     const std::vector<float>& scales, const RandomSource& random,
                     std::int64_t first, QuantizedTensor& out) {
  const Conversion conversion = conversion_of(policy, random);
  out.format = policy.format;
  out.scales = scales;
  out.flags = {};
  const std::int64_t groups = static_cast<std::int64_t>(scales.size());
  const std::int64_t size = x.size() / groups;
  const bool narrow = policy.format->bits <= kNarrowBits;
  out.narrow.resize(narrow ? x.size() : 0);
  out.wide.resize(narrow ? 0 : x.size());
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t begin = g * size;
    out.flags += narrow ? quantize_codes(conversion, x.data.data() + begin, size, scales[g],
                                         out.narrow.data() + begin, first + begin)
                        : quantize_codes(conversion, x.data.data() + begin, size, scales[g],
                                         out.wide.data() + begin, first + begin);
  }
}

}  // namespace numemu::policies
