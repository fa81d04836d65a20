// Probes of what bounds an alignment from below, and what probes of sums share.
// Cold: a negligible share of any run (docs/build.md).
#include <algorithm>
#include <string>

#include "emu/oracle/probes/families.hpp"

namespace numemu::oracle::probing {

// Zero times a large number beside small products: their low bits are lost where the zero raises
// the exponent of the alignment.

namespace {

constexpr const char* kZeroExponent = "zero-exponent";

Value near_one(int exponent) { return number(129, exponent - 7); }

/// Least exponent, every bit of the significand set.
Value least_full(const Format* e) {
  const int mantissa = e->mantissa_bits;
  return number((std::uint64_t{2} << mantissa) - 1, least_exponent(e) - mantissa);
}

}  // namespace

void ask_zero_exponent(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  sheet.add(probe(sheet, "Z1", kZeroExponent)
                .factors(0, zero(), power(120))
                .factors(1, near_one(0), near_one(-26))
                .factors(2, near_one(0), near_one(-27)));
  sheet.add(probe(sheet, "Z2", kZeroExponent)
                .factors(0, power(120), zero())
                .factors(1, near_one(0), near_one(-26))
                .factors(2, -near_one(0), near_one(-29)));
  sheet.add(probe(sheet, "Z3", kZeroExponent)
                .factors(0, zero(), power(126))
                .factors(1, near_one(0), near_one(-20))
                .c(number(0xffffff, -33)));
  // Types of few exponents: a zero that counts as the least exponent raises it all the same.
  sheet.add(probe(sheet, "zero-exponent.a", kZeroExponent)
                .factors(together(ports, 0), zero(), largest(ports.b))
                .factors(together(ports, 1), least_full(ports.a), least_full(ports.b)));
  sheet.add(probe(sheet, "zero-exponent.b", kZeroExponent)
                .factors(together(ports, 0), largest(ports.a), zero())
                .factors(together(ports, 1), least_full(ports.a), least_full(ports.b)));
  // Beside a tiny C and nothing else, even an exponent of -126 + 8 is too high.
  const Value tiny = tiny_c(ports);
  sheet.add(probe(sheet, "zero-exponent.a-and-c", kZeroExponent)
                .factors(0, zero(), largest(ports.b))
                .c(tiny));
  sheet.add(probe(sheet, "zero-exponent.b-and-c", kZeroExponent)
                .factors(0, largest(ports.a), zero())
                .c(tiny));
  // A zero whose block has the largest scale.
  sheet.add(probe(sheet, "zero-exponent.scale-and-c", kZeroExponent)
                .only_if(ports.scales() == 1)
                .common_scale(254)
                .factors(0, zero(), largest(ports.b))
                .c(number(0xffffff, -23)));
  if (ports.scales() < 2) return;
  // A block of zeros with a large scale beside a small block; twice, 30 and 40 bits apart.
  const int last = together(ports, 3);
  for (const int distance : {30, 36, 40}) {
    const int high = is_power(ports.scale) ? 20 : 16;
    sheet.add(probe(sheet, "zero-exponent.scale." + std::to_string(distance), kZeroExponent)
                  .scales(0, scale_code(ports.scale, high / 2), scale_code(ports.scale, high / 2))
                  .product(last, power(high - distance)));
  }
}

// Tiny sums with C = 0: where the exponent of the alignment has a floor, the smaller term is lost.

namespace {

constexpr const char* kExponentFloor = "exponent-floor";

/// Where the rivals' answers flip, and the whole series on the dense instruction of full width.
std::vector<int> flips(const Ports& ports) {
  if (ports.scales() > 1) return {150, 161, 162, 167, 168, 169};
  if (ports.k != 16 || !ports.sparsity.dense()) return {150, 151, 152, 158, 159, 160, 168};
  std::vector<int> all;
  for (int j = 150; j <= 168; ++j) all.push_back(j);
  return all;
}

/// 2^-149 - 2^-j: cut to 0 where the small term survives, else the least subnormal.
Draft below_least_float(Sheet& sheet, int j) {
  const Ports& ports = sheet.ports();
  Draft draft = probe(sheet, "F" + std::to_string(j), kExponentFloor);
  draft.only_if(is_single(ports.d));
  if (ports.block == 0)
    return draft.factors(0, power(-75), power(-74)).factors(1, -power(-84), power(84 - j));
  if (ports.scales() == 1) draft.common_scale(-(149 + j) / 2);
  return draft.product(together(ports, 0), power(-149))
      .product(together(ports, 2), -power(-j))
      .least_scales();
}

/// Half of the least float16 subnormal and a small term: a tie where that is lost.
void ask_ties_of_half(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!is_half(ports.d)) return;
  for (int n = 0; n < 6; ++n)
    sheet.add(probe(sheet, "H" + std::to_string(n), kExponentFloor)
                  .factors(0, power(-10), power(-15))
                  .factors(1, power(-24), power(n - 24)));
  // Sums with a subnormal factor, whose exponent is the least normal one, and C = -0.
  for (int n = 0; n < 4; ++n)
    sheet.add(probe(sheet, "G" + std::to_string(n), kExponentFloor)
                  .factors(0, power(-20), power(-5))
                  .factors(1, power(-24), power(n - 24))
                  .c(-zero()));
  for (int j = 26; j <= 32; ++j)
    sheet.add(probe(sheet, "exponent-floor.tie." + std::to_string(j), kExponentFloor)
                  .only_if(ports.a->bits == 8)
                  .product(together(ports, 0), power(-25))
                  .product(together(ports, 1), power(-j)));
}

}  // namespace

void ask_exponent_floor(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!sums_in_steps(ports)) return;
  for (const int j : flips(ports)) sheet.add(below_least_float(sheet, j));
  ask_ties_of_half(sheet);
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string(kExponentFloor) + "." + id, kExponentFloor);
  };
  const Value tiny = power(subnormal_exponent(ports.c));
  const std::uint64_t one = std::uint64_t{1} << ports.c->mantissa_bits;
  sheet.add(draft("product").product(0, power(subnormal_exponent(ports.d))).least_scales());
  sheet.add(draft("c").c(tiny).least_scales());
  sheet.add(draft("normal-c").c(number(one + 1, subnormal_exponent(ports.c))).least_scales());
  sheet.add(draft("both")
                .factors(0, power(subnormal_exponent(ports.a)), power(subnormal_exponent(ports.b)))
                .c(tiny)
                .least_scales());
}

// The places of rival widths, and the pair of products that every probe of a width begins with.

std::vector<int> candidate_widths(const Ports& ports) {
  if (ports.scales() > 1) return {25, 35};
  return ports.a->bits <= 8 ? std::vector<int>{13, 24, 25} : std::vector<int>{23, 24, 25};
}

std::optional<Value> small_beside(const Ports& ports) {
  const int top = top_exponent(ports);
  if (ports.scales() > 1) return power(top - (is_power(ports.scale) ? 40 : 36));
  const int least = subnormal_exponent(ports.a) + subnormal_exponent(ports.b);
  const int small = std::max({top - 40, least, subnormal_exponent(ports.d)});
  if (top - small <= 26) return {};
  return power(small);
}

Value tiny_c(const Ports& ports) {
  const int digits = ports.c->mantissa_bits;
  return number((std::int64_t{1} << digits) + (std::int64_t{1} << std::max(digits - 10, 0)) + 1,
                subnormal_exponent(ports.c));
}

Draft& cancelling_pair(Draft& draft) {
  const Ports& ports = draft.ports();
  const Value large = power(top_exponent(ports));
  return draft.product(together(ports, 0), large).product(together(ports, 1), -large);
}

}  // namespace numemu::oracle::probing
