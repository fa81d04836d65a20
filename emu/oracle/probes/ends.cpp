// Probes of the ends of the formats: signs of zero, overflow, subnormals, NaN, infinities.
#include <algorithm>
#include <string>

#include "emu/oracle/probes/probes.hpp"

namespace numemu::oracle::probing {

// Zero results of every origin: their sign.

namespace {

constexpr const char* kZeroSign = "zero-sign";

/// The same two factors everywhere.
Draft everywhere(Sheet& sheet, const char* id, Value a, Value b) {
  Draft draft = probe(sheet, id, kZeroSign);
  for (int k = 0; k < sheet.ports().kept(); ++k) draft.factors(k, a, b);
  return draft;
}

}  // namespace

void ask_zero_sign(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  sheet.add(probe(sheet, "S1", kZeroSign).factors(0, -power(-80), power(-80)));
  sheet.add(probe(sheet, "S2", kZeroSign).factors(0, -power(0), zero()).c(-zero()));
  sheet.add(
      probe(sheet, "S3", kZeroSign).factors(0, -power(0), power(0)).factors(1, power(0), power(0)));
  sheet.add(
      probe(sheet, "S4", kZeroSign).only_if(is_half(ports.d)).factors(0, -power(-24), power(-10)));
  sheet.add(probe(sheet, "zero-sign.c", kZeroSign).c(-zero()));
  sheet.add(everywhere(sheet, "zero-sign.products", -zero(), power(0)));
  sheet.add(everywhere(sheet, "zero-sign.all", -zero(), power(0)).c(-zero()));
  sheet.add(probe(sheet, "zero-sign.minus-c", kZeroSign).product(0, power(0)).c(-power(0)));
  sheet.add(probe(sheet, "zero-sign.plus-c", kZeroSign).product(0, -power(0)).c(power(0)));
  sheet.add(
      probe(sheet, "zero-sign.least", kZeroSign)
          .factors(0, -power(subnormal_exponent(ports.a)), power(subnormal_exponent(ports.b))));
  // A sum that is cut or rounded to zero when it is written, by the last step.
  Draft written = probe(sheet, "zero-sign.written", kZeroSign);
  if (ports.scales() == 1) written.common_scale(subnormal_exponent(ports.d));
  sheet.add(
      written.product(ports.kept() - 1, -power(subnormal_exponent(ports.d) - 1)).least_scales());
  if (!sums_in_steps(ports)) return;
  // A negative term that is lost beside two that cancel.
  const int top = top_exponent(ports);
  Draft product = probe(sheet, "zero-sign.cut", kZeroSign);
  sheet.add(cancelling_pair(product).product(together(ports, 2), -power(top - 38)));
  Draft c = probe(sheet, "zero-sign.cut-c", kZeroSign);
  sheet.add(cancelling_pair(c).c(-power(top - 38)));
}

// Results beyond the largest number, and terms beyond it that cancel.

namespace {

constexpr const char* kOverflow = "overflow";

/// Sums at the end of float16, from factors of half precision.
void ask_half(Sheet& sheet) {
  const Value almost_256 = number(2047, -3);  // times 2^8: 65504
  const auto at_end = [&](const char* id) {
    return probe(sheet, id, kOverflow)
        .only_if(is_half(sheet.ports().d))
        .factors(0, power(8), almost_256);
  };
  sheet.add(at_end("O1"));
  sheet.add(at_end("O2").factors(1, power(0), power(4)));
  sheet.add(at_end("O3").factors(1, power(0), number(2047, -7)));
}

/// Sums at the end of float32, from factors of its range.
void ask_single(Sheet& sheet) {
  const auto draft = [&](const char* id) {
    return probe(sheet, id, kOverflow).only_if(is_single(sheet.ports().d));
  };
  sheet.add(draft("O4").factors(0, power(127), power(0)).factors(1, power(127), power(0)));
  sheet.add(draft("O5")
                .factors(0, power(127), number(3, -1))
                .factors(1, power(127), number(3, -1))
                .factors(2, -power(127), power(1)));
  sheet.add(draft("O6")
                .factors(0, power(127), power(100))
                .factors(1, -power(127), power(100))
                .c(power(0)));
  sheet.add(draft("O7")
                .factors(0, number(255, 120), power(0))
                .factors(1, number(255, 113), number(255, -8))
                .c(number(0xffffff, 103)));
}

/// C is the largest number; a product of one ulp, half an ulp, or less is added.
void ask_beside_largest_c(Sheet& sheet, bool negative) {
  const Ports& ports = sheet.ports();
  const Value end = largest(ports.c);
  for (const int ulps_down : {0, 1, 2}) {
    Draft draft = probe(
        sheet, std::string("overflow.") + (negative ? "minus" : "plus") + std::to_string(ulps_down),
        kOverflow);
    if (ports.scales() == 1) draft.common_scale(end.exponent - ulps_down);
    const Value part = power(end.exponent - ulps_down);
    sheet.add(draft.c(negative ? -end : end).product(0, negative ? -part : part));
  }
}

}  // namespace

void ask_overflow(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  ask_half(sheet);
  ask_single(sheet);
  ask_beside_largest_c(sheet, false);
  ask_beside_largest_c(sheet, true);
  const int end = greatest_exponent(ports.d);
  const auto draft = [&](const char* id) {
    Draft empty = probe(sheet, id, kOverflow);
    if (ports.scales() == 1) empty.common_scale(end);
    return empty;
  };
  const int first = together(ports, 0), second = together(ports, 1), third = together(ports, 2);
  sheet.add(draft("overflow.sum").product(first, power(end)).product(second, power(end)));
  sheet.add(draft("overflow.cancel")
                .product(first, power(end))
                .product(second, power(end))
                .product(third, -power(end)));
  // Products beyond the range, equal and opposite.
  sheet.add(draft("overflow.beyond")
                .product(first, power(end + 1))
                .product(second, -power(end + 1))
                .c(power(end - 10)));
  sheet.add(draft("overflow.cancel-c")
                .product(first, power(end))
                .product(second, power(end))
                .c(-power(end)));
}

// Subnormal operands, a subnormal C and subnormal results: taken and written at their value?

namespace {

/// Every mantissa bit set, no leading bit.
Value largest_subnormal(const Format* e) {
  return number((std::uint64_t{1} << e->mantissa_bits) - 1, subnormal_exponent(e));
}
Value least_subnormal(const Format* e) { return power(subnormal_exponent(e)); }

void ask_inputs(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string("subnormal-inputs.") + id, "subnormal-inputs");
  };
  // Times the largest power of two, so that the result is normal where it can be.
  const Value up_a = power(std::min(greatest_exponent(ports.b), -subnormal_exponent(ports.a)));
  const Value up_b = power(std::min(greatest_exponent(ports.a), -subnormal_exponent(ports.b)));
  sheet.add(draft("a-least").factors(0, least_subnormal(ports.a), up_a));
  sheet.add(draft("a-minus").factors(0, -least_subnormal(ports.a), up_a));
  sheet.add(draft("a-largest").factors(0, largest_subnormal(ports.a), up_a));
  sheet.add(draft("b-least").factors(0, up_b, least_subnormal(ports.b)));
  sheet.add(draft("b-minus").factors(0, up_b, -least_subnormal(ports.b)));
  sheet.add(draft("b-largest").factors(0, up_b, largest_subnormal(ports.b)));
  sheet.add(draft("c-least").c(least_subnormal(ports.c)).least_scales());
  sheet.add(draft("c-minus").c(-least_subnormal(ports.c)).least_scales());
  sheet.add(draft("c-largest").c(largest_subnormal(ports.c)).least_scales());
  // A normal result: 1.5 times the least normal number, C a third of it.
  Draft normal = draft("c-normal-result");
  const int least = least_exponent(ports.c);
  if (ports.scales() == 1) normal.common_scale(least);
  sheet.add(normal.c(power(least - 1)).product(0, power(least)).least_scales());
}

void ask_results(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const int least = subnormal_exponent(ports.d);
  const auto draft = [&](const char* id) {
    Draft empty = probe(sheet, std::string("subnormal-results.") + id, "subnormal-results");
    if (ports.scales() == 1) empty.common_scale(least);
    return empty;
  };
  const auto add = [&](Draft each) { sheet.add(each.least_scales()); };
  add(draft("least").product(0, power(least)));
  add(draft("minus").product(0, -power(least)));
  add(draft("half-normal").product(0, power(least_exponent(ports.d) - 1)));
  // Fractions of the least subnormal, cut or rounded.
  add(draft("one-and-half").product(0, number(3, least - 1)));
  add(draft("half").product(0, power(least - 1)));
  add(draft("three-quarters").product(0, number(3, least - 2)));
  add(draft("minus-three-quarters").product(0, -number(3, least - 2)));
  add(draft("c").c(largest_subnormal(ports.c)));
  add(draft("from-normal").c(power(least_exponent(ports.c))).product(0, -power(least)));
}

}  // namespace

void ask_subnormals(Sheet& sheet) {
  ask_inputs(sheet);
  ask_results(sheet);
}

// NaN in A, B and C, quiet and signalling, of both signs: which bits of them reach the result.

namespace {

struct Kind {
  const char* name;
  bool negative, quiet;
  std::uint64_t payload;
};
constexpr Kind kKinds[] = {{"quiet", false, true, 0},
                           {"payload", false, true, 1},
                           {"minus", true, true, 0},
                           {"signalling", false, false, 1},
                           {"minus-signalling", true, false, 1}};

}  // namespace

void ask_nan_payload(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const auto draft = [&](const std::string& id) {
    return probe(sheet, "nan-payload." + id, "nan-payload");
  };
  const auto code = [](const Format* e, const Kind& kind) {
    return nan_code(e, kind.negative, kind.quiet, kind.payload);
  };
  const Code one_a = code_of(ports.a, power(0)), one_b = code_of(ports.b, power(0));
  for (const Kind& kind : kKinds) {
    sheet.add(draft(std::string("a-") + kind.name).factors(0, code(ports.a, kind), one_b));
    if (kind.payload != 0)
      sheet.add(draft(std::string("b-") + kind.name).factors(0, one_a, code(ports.b, kind)));
    sheet.add(draft(std::string("c-") + kind.name).c_code(code(ports.c, kind)));
  }
  const Code a = code(ports.a, kKinds[0]), b = code(ports.b, kKinds[0]),
             c = code(ports.c, kKinds[2]);
  sheet.add(draft("a-times-zero").factors(0, a, code_of(ports.b, zero())));
  sheet.add(draft("a-and-b").factors(0, a, b));
  sheet.add(draft("a-and-c").factors(0, a, one_b).c_code(c));
  sheet.add(draft("last").factors(ports.kept() - 1, a, one_b));
}

// Infinite operands and C: alone, opposed in one step and across steps, times zero.

void ask_infinities(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string("infinities.") + id, "infinities");
  };
  const Code plus = infinity_code(ports.a), minus = infinity_code(ports.a, true);
  const Code one = code_of(ports.b, power(0));
  const int last = ports.kept() - 1;
  sheet.add(draft("plus").factors(0, plus, one));
  sheet.add(draft("minus").factors(last, minus, one));
  sheet.add(draft("times-minus").factors(0, plus, code_of(ports.b, -power(0))));
  sheet.add(draft("times-zero").factors(0, plus, code_of(ports.b, zero())));
  sheet.add(draft("zero-times").factors(last, code_of(ports.a, zero()), infinity_code(ports.b)));
  sheet.add(draft("times-infinity").factors(0, plus, infinity_code(ports.b, true)));
  sheet.add(draft("opposed")
                .factors(together(ports, 0), plus, one)
                .factors(together(ports, 1), minus, one));
  sheet.add(draft("opposed-far").factors(0, plus, one).factors(last, minus, one));
  sheet.add(draft("opposed-c").factors(0, plus, one).c_code(infinity_code(ports.c, true)));
  sheet.add(draft("c").c_code(infinity_code(ports.c)).product(0, -power(0)));
  sheet.add(draft("c-minus").c_code(infinity_code(ports.c, true)));
}

}  // namespace numemu::oracle::probing
