#include "emu/oracle/recording/data_codes.hpp"

#include <algorithm>

namespace numemu::oracle::recording {
namespace {

std::uint64_t special_integer(Element e, std::uint32_t choice) {
  const std::uint64_t all = low_bits(info(e).bits);
  const std::uint64_t most = info(e).has_sign ? all >> 1 : all;
  const std::uint64_t least = info(e).has_sign ? most + 1 : 0;
  const std::uint64_t kCodes[8] = {least, least, most, most, 0, all, 1, least + 1};
  return kCodes[choice];
}

std::uint64_t special_scale(Element e, std::uint64_t code, std::uint32_t choice) {
  const Parts p(e);
  const std::uint64_t not_a_number = p.fields;
  if (p.specials == Specials::exponent)
    return choice < 3 ? not_a_number : choice < 5 ? p.largest : 0;
  const std::uint64_t sign = p.fields + 1;  // the unit is said to ignore it
  const std::uint64_t kCodes[8] = {not_a_number, not_a_number | sign, p.largest, 0, 1,
                                   code | sign,  code | sign,         sign};
  return kCodes[choice];
}

}  // namespace

Range exponents(const Parts& p, int low_exponent, int high_exponent) {
  const auto field = [&p](int exponent) { return std::clamp(exponent + p.bias, 0, p.top); };
  return {field(low_exponent), field(high_exponent), low_bits(p.mantissa) & ~low_bits(p.dropped)};
}

std::uint64_t near_an_end(const Draw& draw) {
  const auto shift = static_cast<int>(draw.code >> 20 & 31);
  const std::uint64_t distance = (draw.code & 0xfffff) >> std::min(shift, 20);
  return draw.sign ? 0x80000000U + distance : 0x7fffffffU - distance;
}

std::uint64_t special_code(Element e, std::uint64_t code, std::uint32_t word) {
  const std::uint32_t choice = word >> 28 & 7;
  if (is_integer(e)) return special_integer(e, choice);
  if (!info(e).has_sign) return special_scale(e, code, choice);
  const Parts p(e);
  const std::uint64_t payload = code & low_bits(p.mantissa), least = std::uint64_t{1} << p.dropped;
  const std::uint64_t quiet = std::uint64_t{1} << (p.mantissa - 1);
  const std::uint64_t infinity = p.largest + 1, sign = word >> 31 != 0 ? p.sign_bit : 0;
  const std::uint64_t largest = p.largest & ~low_bits(p.dropped);
  const std::uint64_t top_binade =
      p.finite(static_cast<std::uint64_t>(p.top) << p.mantissa | payload);
  std::uint64_t magnitude = 0;
  switch (choice) {
    case 0:
    case 1:
      // The bits of tf32 that the unit drops stay: an infinity, if it does drop them.
      magnitude = p.specials == Specials::ieee      ? infinity | (payload & low_bits(p.dropped))
                  : p.specials == Specials::one_nan ? p.fields
                                                    : largest;
      break;
    case 2:
      magnitude = p.specials == Specials::ieee ? infinity | quiet | payload : top_binade;
      break;
    case 3:
      magnitude = p.specials == Specials::ieee ? infinity | (payload & ~quiet) | least : top_binade;
      break;
    case 4:
      break;
    case 5:
      magnitude = largest;
      break;
    case 6:
      magnitude = top_binade;
      break;
    default:
      magnitude = least;
  }
  return magnitude | sign;
}

}  // namespace numemu::oracle::recording
