#include "emu/oracle/edge_codes.hpp"

#include <algorithm>
#include <utility>

#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

namespace {

constexpr std::int64_t kMostPowers = 64;

void sort_once(std::vector<std::uint64_t>& codes) {
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
}

/// Codes within `distance` of these, as far as there are any.
std::vector<std::uint64_t> with_neighbours(const Format& f, std::vector<std::uint64_t> codes,
                                           std::uint64_t distance) {
  const std::size_t n = codes.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::uint64_t d = 1; d <= distance; ++d) {
      if (codes[i] >= d) codes.push_back(codes[i] - d);
      if (f.last_code() - codes[i] >= d) codes.push_back(codes[i] + d);
    }
  }
  sort_once(codes);
  return codes;
}

std::uint64_t code_of_power(const Format& f, int exponent) {
  return encode(f, {Class::finite, false, false, exponent, 1}, {.mode = RoundingMode::rtz},
                Overflow::saturate)
      .code;
}

}  // namespace

std::vector<std::uint64_t> edge_codes(const Format& f, int level) {
  std::vector<std::uint64_t> codes = {0, 1, f.largest_code(), f.largest_code() - 1, f.last_code()};
  if (f.kind == Kind::floating) {
    const int normal = unit::smallest_normal_exponent(f);
    const std::uint64_t hidden = std::uint64_t{1} << f.mantissa_bits, one = code_of_power(f, 0);
    codes.insert(codes.end(), {hidden, hidden - 1, one, one - (one != 0), one + 1});
    if (f.has_infinity()) codes.push_back(f.infinity_code());
    if (f.has_nan()) codes.push_back(f.nan_code());
    if (f.specials == Specials::ieee && f.mantissa_bits > 1)
      codes.push_back(f.infinity_code() + 1);  // a signalling NaN
    const int top = unit::exponents_of(f).top;
    const auto step = static_cast<int>(std::max<std::int64_t>((top - normal) / kMostPowers, 1));
    for (int e = normal; level > 1 && e < top; e += step) codes.push_back(code_of_power(f, e));
  }
  if (level > 1) codes = with_neighbours(f, std::move(codes), 1);
  const std::size_t n = codes.size();
  for (std::size_t i = 0; i < n; ++i) codes.push_back(codes[i] | f.sign_bit());
  std::erase_if(codes, [&](std::uint64_t code) { return code > f.last_code(); });
  sort_once(codes);
  return codes;
}

std::vector<std::uint64_t> conversion_edges(const Format& from, const Format& to, int level) {
  std::vector<std::uint64_t> codes = edge_codes(from, level), there;
  for (const std::uint64_t edge : edge_codes(to, level)) {
    const Value v = decode(to, edge);
    if (v.kind != Class::finite) continue;
    there.push_back(encode(from, v, {.mode = RoundingMode::rtz}, Overflow::saturate).code);
  }
  there = with_neighbours(from, std::move(there), static_cast<std::uint64_t>(level));
  codes.insert(codes.end(), there.begin(), there.end());
  sort_once(codes);
  return codes;
}

}  // namespace numemu::oracle
