// Probes of single types: FP8 of lowered units, mixed accumulators, float64, block scales, integer
// registers.
#include <algorithm>
#include <string>

#include "emu/oracle/probes/probes.hpp"

namespace numemu::oracle::probing {

// Groups in which FP8 products are added: neighbours of a pair, k mod 4, the two halves of K, and
// C.

namespace {

constexpr const char* kFp8Lowering = "fp8-lowering";

/// A pair that cancels at k and k + 1 and a small product at `at`: the answer is `small` where that
/// enters after the pair, or apart from it.
void add_meeting(Sheet& sheet, int k, int at) {
  const Ports& ports = sheet.ports();
  const Value large = power(top_exponent(ports));
  sheet.add(
      probe(sheet,
            std::string(kFp8Lowering) + ".pair" + std::to_string(k) + "." + std::to_string(at),
            kFp8Lowering)
          .product(k, large)
          .product(k + 1, -large)
          .product(at, *small_beside(ports)));
}

}  // namespace

void ask_fp8_lowering(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (ports.a->bits != 8 || ports.b->bits != 8 || ports.block != 0) return;
  // Every pair of FP8 types has one, so small_beside() is there.
  for (const int at : {2, 3, 4, 6, 10, 18}) add_meeting(sheet, 0, at);
  for (const int at : {0, 1, 4, 6, 8, 16, 18}) add_meeting(sheet, 2, at);
  for (const int at : {0, 2, 18, 20}) add_meeting(sheet, 16, at);
  const Value large = power(top_exponent(ports));
  for (const int at : {1, 2, 4, 16})
    sheet.add(probe(sheet, std::string(kFp8Lowering) + ".c." + std::to_string(at), kFp8Lowering)
                  .product(0, large)
                  .product(at, *small_beside(ports))
                  .c(-large));
  // Beyond float16 after the first of two steps, within it after both.
  sheet.add(probe(sheet, "fp8-lowering.overflow", kFp8Lowering)
                .product(0, power(15))
                .product(1, power(15))
                .product(2, -power(15)));
  // A sum of products that float16 cannot hold, before C is added.
  sheet.add(probe(sheet, "fp8-lowering.rounded-half", kFp8Lowering)
                .product(0, power(11))
                .product(2, power(0))
                .c(-power(11)));
}

// C in float16 and D in float32 (m8n8k4 of Volta): sums that float16 could not have held on the
// way.

void ask_mixed_accumulator(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!is_half(ports.c) || !is_single(ports.d)) return;
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string("mixed-accumulator.") + id, "mixed-accumulator");
  };
  sheet.add(draft("fraction").c(power(0)).product(0, power(-20)));
  sheet.add(draft("beyond").c(largest(ports.c)).product(0, power(15)).product(1, power(15)));
  sheet.add(draft("returns").c(largest(ports.c)).product(0, power(15)).product(1, -power(15)));
  sheet.add(draft("below").c(power(-24)).product(0, power(-26)));
  sheet.add(draft("subnormal").c(number(3, -24)));
  sheet.add(draft("cancels").c(power(11)).product(0, -power(11)).product(1, power(-10)));
}

// Float64: fused or rounded products, the order of the chain, the rounding of each link.

void ask_double_chain(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!is_double(ports.a)) return;
  const auto draft = [&](const std::string& id) {
    return probe(sheet, "double-chain." + id, "double-chain");
  };
  // (1 + 2^-30)^2 less its rounding: 2^-60 where the product is not rounded.
  const Value near_one = number((1 << 30) + 1, -30);
  sheet.add(draft("fused").factors(0, near_one, near_one).c(-number((1 << 29) + 1, -29)));
  sheet.add(draft("fused-products")
                .factors(0, -number((1 << 29) + 1, -29), power(0))
                .factors(1, near_one, near_one));
  // 1 where position 1 comes after position 0 has met C.
  for (int k = 1; k < ports.k; k *= 2) {
    const std::string n = std::to_string(k);
    sheet.add(draft("after." + n)
                  .factors(0, power(60), power(0))
                  .factors(k, power(0), power(0))
                  .c(-power(60)));
    sheet.add(draft("before." + n)
                  .factors(k, power(60), power(0))
                  .factors(0, power(0), power(0))
                  .c(-power(60)));
    // Two halves of an ulp: each a tie to even in a chain, a whole ulp in an exact sum.
    sheet.add(draft("halves." + n)
                  .factors(0, power(-53), power(0))
                  .factors(k, power(-53), power(0))
                  .c(power(0)));
  }
  sheet.add(draft("up").factors(0, number(3, -54), power(0)).c(power(0)));
  sheet.add(draft("tie").factors(0, power(-53), power(0)).c(number((1ULL << 52) + 1, -52)));
  sheet.add(draft("down").factors(0, -number(3, -55), power(0)).c(-power(0)));
}

// Block scales: NaN, the extremes, the significand and sign bit of ue4m3, and an infinite C.

namespace {

Code nan_scale(const Format* scale) {
  return scale->has_nan() ? Code(scale->nan_code()) : std::nullopt;
}

void ask_nan(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const Code one = scale_code(ports.scale, 0), bad = nan_scale(ports.scale);
  const int last = ports.scales() - 1;
  const auto draft = [&](const std::string& id) {
    return probe(sheet, "scale-nan." + id, "scale-nan");
  };
  sheet.add(draft("a").scales(0, bad, one).factors(0, power(0), power(0)));
  sheet.add(draft("b").scales(0, one, bad).factors(0, power(0), power(0)));
  sheet.add(draft("a-of-zeros").scales(0, bad, one));
  sheet.add(draft("b-of-zeros").scales(last, one, bad));
  sheet.add(draft("both").scales(0, bad, bad).factors(0, power(0), power(0)));
  sheet.add(
      draft("beside").scales(last, bad, one).factors(0, power(0), power(0)).only_if(last > 0));
  sheet.add(draft("and-c").scales(0, bad, one).c_code(infinity_code(ports.c)));
}

void ask_range(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (!is_power(ports.scale)) return;
  struct Pair {
    const char* name;
    std::uint64_t a, b;
  };
  const auto draft = [&](const std::string& id, const Pair& pair) {
    return probe(sheet, "scale-range." + id + "." + pair.name, "scale-range")
        .scales(0, pair.a, pair.b);
  };
  for (const Pair& pair : {Pair{"least", 0, 0}, Pair{"least-a", 0, 127}, Pair{"opposed", 0, 254},
                           Pair{"greatest", 254, 254}}) {
    sheet.add(draft("one", pair).factors(0, power(0), power(0)));
    sheet.add(draft("minus-largest", pair).factors(0, -largest(ports.a), largest(ports.b)));
    // Equal and opposite, however far beyond the range: C is the answer, or lost beside them.
    sheet.add(draft("cancel", pair)
                  .factors(0, power(0), power(0))
                  .factors(1, -power(0), power(0))
                  .c(power(0)));
  }
  sheet.add(draft("zeros", {"greatest", 254, 254}).c(power(0)));
}

void ask_significand(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  if (is_power(ports.scale)) return;
  struct Pair {
    const char* name;
    std::uint64_t a, b;
  };
  for (const Pair& pair :
       {Pair{"odd", 0x39, 0x39}, Pair{"full", 0x3f, 0x3f}, Pair{"largest", 0x7e, 0x7e},
        Pair{"zero-a", 0x00, 0x38}, Pair{"zero-b", 0x38, 0x00}, Pair{"least-subnormal", 0x01, 0x38},
        Pair{"largest-subnormal", 0x07, 0x07}, Pair{"least-subnormals", 0x01, 0x01},
        Pair{"least-normal", 0x08, 0x08}, Pair{"sign", 0xb8, 0x38}, Pair{"both-signs", 0xb8, 0xb8},
        Pair{"minus-zero", 0x80, 0x38}, Pair{"sign-largest", 0x38, 0xfe},
        Pair{"sign-nan", 0xff, 0x38}}) {
    const auto draft = [&](const char* id) {
      return probe(sheet, std::string("scale-significand.") + id + "." + pair.name,
                   "scale-significand");
    };
    sheet.add(draft("one").scales(0, pair.a, pair.b).factors(0, power(0), power(0)));
    // A whole group of the largest elements: its sum times both significands needs every bit.
    Draft group = draft("group");
    group.scales(0, pair.a, pair.b).c(-power(0));
    for (int k = 0; k < ports.block; ++k) group.factors(k, largest(ports.a), number(3, -1));
    sheet.add(group);
  }
}

void ask_infinite_c(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const auto draft = [&](const char* id) {
    return probe(sheet, std::string("infinite-c.") + id, "infinite-c")
        .factors(0, -power(0), power(0));
  };
  sheet.add(draft("plus").c_code(infinity_code(ports.c)));
  sheet.add(draft("minus").c_code(infinity_code(ports.c, true)));
  sheet.add(draft("nan").c_code(nan_code(ports.c, true, true, 1)));
  sheet.add(draft("signalling").c_code(nan_code(ports.c, false, false, 1)));
  sheet.add(draft("largest").c(largest(ports.c)));
}

}  // namespace

void ask_scales(Sheet& sheet) {
  if (sheet.ports().block == 0) return;
  ask_nan(sheet);
  ask_range(sheet);
  ask_significand(sheet);
  ask_infinite_c(sheet);
}

// Accumulators at the ends of the register: sums that leave and return, pair by pair and all at
// once.

namespace {

constexpr const char* kIntSaturation = "int-saturation";

/// The ends of the register.
std::int64_t greatest(const Ports& ports) { return (std::int64_t{1} << (ports.bits - 1)) - 1; }
std::int64_t least(const Ports& ports) { return -greatest(ports) - 1; }

Draft draft(Sheet& sheet, const std::string& id) {
  return probe(sheet, std::string(kIntSaturation) + "." + id, kIntSaturation);
}

/// The product of the largest factors.
std::int64_t largest_product(const Ports& ports) {
  return static_cast<std::int64_t>(largest(ports.a).significand * largest(ports.b).significand);
}

/// C at an end; at `first` a product beyond it, at `second` the way back.
void add_return(Sheet& sheet, int first, int second) {
  const std::string n = std::to_string(first) + "." + std::to_string(second);
  sheet.add(draft(sheet, "above." + n)
                .c(number(greatest(sheet.ports())))
                .product(first, number(1))
                .product(second, number(-1)));
  sheet.add(draft(sheet, "below." + n)
                .c(number(least(sheet.ports())))
                .product(first, number(-1))
                .product(second, number(1)));
}

void ask_many(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  const int kept = ports.kept();
  const std::int64_t each = largest_product(ports);
  // C such that all products together just reach the end, or pass it by one.
  for (const int beyond : {0, 1}) {
    Draft up = draft(sheet, "sum-above." + std::to_string(beyond));
    Draft down = draft(sheet, "sum-below." + std::to_string(beyond));
    up.c(number(greatest(sheet.ports()) - kept * each + beyond));
    down.c(number(least(sheet.ports()) + kept * each - beyond));
    for (int k = 0; k < kept; ++k) {
      up.product(k, number(each));
      down.product(k, number(-each));
    }
    sheet.add(up);
    sheet.add(down);
  }
  // Across zero, far from both ends.
  Draft across = draft(sheet, "across-zero");
  across.c(number(-each));
  for (int k = 0; k < kept; ++k) across.product(k, number(each));
  sheet.add(across);
  // As many up as down, by halves and by turns.
  for (const bool by_turns : {false, true}) {
    for (const bool up_first : {true, false}) {
      Draft mixed = draft(sheet, std::string(by_turns ? "turns." : "halves.") +
                                     (up_first ? "up-first" : "down-first"));
      mixed.c(number(up_first ? greatest(sheet.ports()) : least(sheet.ports())));
      for (int k = 0; k < kept; ++k) {
        const bool first = by_turns ? k % 2 == 0 : k < kept / 2;
        mixed.product(k, number(first == up_first ? each : -each));
      }
      sheet.add(mixed);
    }
  }
}

}  // namespace

void ask_int_saturation(Sheet& sheet) {
  const Ports& ports = sheet.ports();
  sheet.add(draft(sheet, "greatest").c(number(greatest(sheet.ports()))));
  sheet.add(draft(sheet, "least").c(number(least(sheet.ports()))));
  sheet.add(
      draft(sheet, "greatest-and-one").c(number(greatest(sheet.ports()))).product(0, number(1)));
  sheet.add(draft(sheet, "least-and-one").c(number(least(sheet.ports()))).product(0, number(-1)));
  // The largest product at a position, C such that it passes the end by one.
  const std::int64_t each = largest_product(ports);
  for (int k = 1; k <= ports.kept(); k *= 2)
    sheet.add(draft(sheet, "past." + std::to_string(k - 1))
                  .c(number(greatest(sheet.ports()) - each + 1))
                  .product(k - 1, number(each)));
  for (int k = 1; k < ports.kept(); k *= 2) {
    add_return(sheet, 0, k);
    add_return(sheet, k, 0);
  }
  add_return(sheet, ports.kept() - 2, ports.kept() - 1);
  ask_many(sheet);
}

}  // namespace numemu::oracle::probing
