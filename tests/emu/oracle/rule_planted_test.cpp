// Faults of kernels, trees, accumulators, conversions and their flags are named as planted.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/planted_faults.hpp"

namespace numemu::oracle::test::rule_planted_test {
namespace {

std::uint64_t bytes_reversed(std::uint64_t x) {
  return (x & 0xff) << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | (x >> 24 & 0xff);
}

Answer chain(const Call& call) {
  float sum = as_float(call.c);
  for (std::size_t k = 0; k < call.a.size(); ++k)
    sum = std::fma(as_float(call.a[k]), as_float(call.b[k]), sum);
  return {code_of(sum)};
}

TEST_CASE("planted faults of a float32 kernel are named", "[fast]") {
  const Bench bench{unit_subject(unit::find_unit("f32.sequential"), 12, &find_format("float32")),
                    chain};
  const bool named = all_named(
      bench,
      {{"A read from its end", "elements of A in reverse order",
        reads([](Call& c) { std::ranges::reverse(c.a); })},
       {"B read one element early", "elements of B one place early",
        reads([](Call& c) { std::rotate(c.b.begin(), c.b.begin() + 1, c.b.end()); })},
       {"pairs of A exchanged", "neighbours of A exchanged", reads([](Call& c) {
          for (std::size_t k = 0; k < 12; k += 2) std::swap(c.a[k], c.a[k + 1]);
        })},
       {"k descending", "products in descending k", reads([](Call& c) {
          std::ranges::reverse(c.a);
          std::ranges::reverse(c.b);
        })},
       {"C never loaded", "C is not added", reads([](Call& c) { c.c = 0; })},
       {"C subtracted", "C negated", reads([](Call& c) { c.c ^= 0x80000000; })},
       {"products subtracted", "A negated", reads([](Call& c) {
          for (auto& x : c.a) x ^= 0x80000000;
        })},
       {"sign of B not connected", "signs of B lost", reads([](Call& c) {
          for (auto& x : c.b) x &= 0x7fffffff;
        })},
       {"A big endian", "bytes of the codes of A in reverse order", reads([](Call& c) {
          for (auto& x : c.a) x = bytes_reversed(x);
        })},
       {"the last product left out", "the last product, of k 11, is lost", reads([](Call& c) {
          c.a.pop_back();
          c.b.pop_back();
        })},
       {"lane 5 gives zero", "lane 5 of 12 is dead", reads([](Call& c) { c.a[5] = c.b[5] = 0; })},
       {"K cut to a multiple of 8", "products from 8 on are lost: no whole 8", reads([](Call& c) {
          c.a.resize(8);
          c.b.resize(8);
        })},
       {"D big endian", "bytes of the codes of D in reverse order", writes(bytes_reversed)},
       {"D with the other sign", "results negated",
        writes([](std::uint64_t d) { return d ^ 0x80000000; })},
       {"subnormal D flushed to +0", "subnormal results become plus zero",
        writes([](std::uint64_t d) { return (d & 0x7f800000) == 0 && d != 0x80000000 ? 0 : d; })},
       {"-0 written as +0", "-0 becomes +0",
        writes([](std::uint64_t d) { return d == 0x80000000 ? 0 : d; })},
       {"D a cycle late", "D of the record before",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          return n == 0 ? Answer{0xdeadbeef} : m(calls[n - 1]);
        }},
       {"D two cycles late", "D of two records before",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          return n < 2 ? Answer{0xdeadbeef} : m(calls[n - 2]);
        }},
       {"C a cycle late", "C of the record before", late(&Call::c)},
       {"B a cycle late", "B of the record before", late(&Call::b)},
       {"products rounded first", "products rounded before they are added",
        by([](const Call& call) {
          float sum = as_float(call.c);
          for (std::size_t k = 0; k < 12; ++k) {
            const volatile float product = as_float(call.a[k]) * as_float(call.b[k]);
            sum += product;
          }
          return Answer{code_of(sum)};
        })},
       {"bit 4 stuck at 1 (not in the tables)", "", writes([](std::uint64_t d) { return d | 16; })},
       {"lane 3 dead in odd records (not in the tables)", "",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          Call call = calls[n];
          if (n % 2 == 1) call.a[3] = call.b[3] = 0;
          return m(call);
        }},
       {"a bit flips now and then (not in the tables)", "",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          Answer answer = m(calls[n]);
          if (n % 37 == 5) answer.code ^= std::uint64_t{1} << n % 31;
          return answer;
        }}});
  CHECK(named);
}

TEST_CASE("planted faults of an accumulator are named", "[fast]") {
  Subject subject = unit_subject(unit::find_unit("f32.sequential"), 12, &find_format("float32"));
  subject.style = "cancel";  // sums stay finite
  const bool named =
      all_named({subject, chain},
                {{"the sum goes on from the last D", "the accumulator is not loaded",
                  [](const Machine& m, const auto& calls, std::size_t n, const auto& given) {
                    Call call = calls[n];
                    if (n > 0) call.c = given[n - 1].code;
                    return m(call);
                  }},
                 {"C added to the last D", "the accumulator is not cleared",
                  [](const Machine& m, const auto& calls, std::size_t n, const auto& given) {
                    Call call = calls[n];
                    if (n > 0) call.c = code_of(as_float(call.c) + as_float(given[n - 1].code));
                    return m(call);
                  }}});
  CHECK(named);
}

float pairwise(std::vector<float> level) {
  while (level.size() > 1) {
    for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
    level.resize(level.size() / 2);
  }
  return level[0];
}

std::vector<float> products(const Call& call) {
  std::vector<float> all;
  for (std::size_t k = 0; k < call.a.size(); ++k)
    all.push_back(as_float(call.a[k]) * as_float(call.b[k]));
  return all;
}

TEST_CASE("planted faults of an adder tree are named", "[fast]") {
  unit::UnitDescription u;
  u.accumulator.format = &find_format("float32");
  u.core = unit::CoreKind::tree;
  u.k = u.group = 16;
  u.a = u.b = &find_format("float32");
  const Bench bench = described(u, 16, [](const Call& call) {
    return Answer{code_of(as_float(call.c) + pairwise(products(call)))};
  });
  const bool named = all_named(
      bench, {{"k meets k + 8, then k + 4, ...",
               "products paired k and k + 8 instead of neighbours", by([](const Call& call) {
                 std::vector<float> sums = products(call);
                 for (std::size_t width = 8; width > 0; width /= 2) {
                   for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
                 }
                 return Answer{code_of(as_float(call.c) + sums[0])};
               })}});
  CHECK(named);
}

/// float32 to bfloat16 to nearest even with IEEE's flags, and what a machine may do instead.
struct Bfloat16 {
  bool tiny_before = false, signalling = true, away = false, cut = false, sticky = true,
       flush = false, plus = false, tf32_first = false, flags_of_both = false;

  Answer operator()(const Call& call) const {
    auto x = static_cast<std::uint32_t>(call.a[0]);
    const std::uint32_t sign = x >> 16 & 0x8000;
    if ((x & 0x7fffffff) > 0x7f800000)
      return {0x7fc0, signalling && (x & 0x400000) == 0 ? 16u : 0u};
    std::uint64_t flags = 0;
    if (tf32_first) {
      const std::uint32_t y = (x + 0xfff + (x >> 13 & 1)) & 0xffffe000;
      if (flags_of_both && y != x) flags |= (x & 0x7f800000) == 0 && !half_way(x, 13) ? 3 : 1;
      if (flags_of_both && y != x && (y & 0x7fffffff) == 0x7f800000) flags |= 4;
      x = y;
    }
    std::uint32_t y = cut       ? x
                      : away    ? x + 0x8000
                      : !sticky ? x + ((x >> 16 & 1) << 15)
                                : x + 0x7fff + (x >> 16 & 1);
    y >>= 16;
    const bool inexact = (x & 0xffff) != 0;
    const bool below = (x & 0x7f800000) == 0;
    if (inexact) flags |= 1;
    if (inexact && below && (tiny_before || !half_way(x, 16))) flags |= 2;
    if ((y & 0x7f80) == 0x7f80 && (x & 0x7f800000) != 0x7f800000) flags |= 5;
    if (flush && (y & 0x7f80) == 0 && (y & 0x7fff) != 0) return {plus ? 0 : sign, flags | 3};
    return {y & 0xffff, flags};
  }

  /// Rounded to `dropped` bits fewer as if exponents had no end, it reaches the smallest normal.
  static bool half_way(std::uint32_t x, int dropped) {
    return (x & 0x7fffff) >= 0x800000u - (1u << (dropped - 2));
  }
};

TEST_CASE("planted faults of a conversion and its flags are named", "[fast]") {
  const Subject subject = operation_subject(Operation::convert, find_format("float32"),
                                            find_format("bfloat16"), {}, Overflow::ieee);
  const auto flags = [](std::function<std::uint64_t(std::uint64_t)> change) {
    return [change = std::move(change)](const Machine& m, const auto& calls, std::size_t n,
                                        const auto&) {
      Answer answer = m(calls[n]);
      answer.flags = change(answer.flags);
      return answer;
    };
  };
  const bool named = all_named(
      {subject, Bfloat16{}, true},
      {{"tininess before rounding", "tininess is detected before rounding",
        by(Bfloat16{.tiny_before = true})},
       {"no NV for signalling NaN", "NV is not raised by signalling NaN operands",
        by(Bfloat16{.signalling = false})},
       {"no flags at all", "flags never raised", flags([](auto) { return 0; })},
       {"UF not connected", "UF never raised", flags([](auto f) { return f & ~2u; })},
       {"OF without NX", "NX is not raised with OF",
        flags([](auto f) { return (f & 4) != 0 ? f & ~1u : f; })},
       {"flags a cycle late", "flags of the record before",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          return Answer{m(calls[n]).code, m(before(calls, n)).flags};
        }},
       {"flags never cleared", "flags are not cleared",
        [](const Machine& m, const auto& calls, std::size_t n, const auto& given) {
          Answer answer = m(calls[n]);
          if (n > 0) answer.flags |= given[n - 1].flags;
          return answer;
        }},
       {"through tfloat32, the last flags", "rounded to tfloat32 (rne) first",
        by(Bfloat16{.tf32_first = true})},
       {"through tfloat32, all flags",
        "rounded to tfloat32 (rne) first, with the flags of both roundings",
        by(Bfloat16{.tf32_first = true, .flags_of_both = true})},
       {"through tfloat32, no flags", "both roundings; flags never raised",
        by([](const Call& call) {
          return Answer{Bfloat16{.tf32_first = true}(call).code, 0};
        })},
       {"ties away", "rounding rna in place of rne", by(Bfloat16{.away = true})},
       {"sticky bit lost before rounding, not before NX",
        "the rounding sees one bit below the last and no sticky bit; flags are those of the right",
        by(Bfloat16{.sticky = false})},
       {"ties away, no NV for signalling NaN",
        "rounding rna in place of rne; NV is not raised by signalling NaN operands",
        by(Bfloat16{.signalling = false, .away = true})},
       {"subnormal results flushed", "subnormal results become zero", by(Bfloat16{.flush = true})},
       {"subnormal results flushed to +0", "subnormal results become plus zero",
        by(Bfloat16{.flush = true, .plus = true})},
       {"NX stuck at 1", "NX always raised", flags([](auto f) { return f | 1; })},
       {"OF stuck at 1", "OF always raised", flags([](auto f) { return f | 4; })},
       {"NX where the code is odd (not in the tables)", "",
        [](const Machine& m, const auto& calls, std::size_t n, const auto&) {
          Answer answer = m(calls[n]);
          answer.flags = (answer.flags & ~1u) | (answer.code & 1);
          return answer;
        }}});
  CHECK(named);
}

/// float32 to int8 to nearest even, 127 of NaN.
std::int64_t to_int8(std::uint64_t code, const std::function<std::int64_t(double)>& held) {
  const float x = as_float(code);
  if (std::isnan(x)) return 127;
  return std::isinf(x) ? (x > 0 ? 127 : -128) : held(std::nearbyint(double{x}));
}

TEST_CASE("planted faults of a conversion to integers are named", "[fast]") {
  const Subject subject = operation_subject(Operation::convert, find_format("float32"),
                                            find_format("int8"), {}, Overflow::saturate);
  const auto machine = [](std::function<std::int64_t(double)> held) {
    return [held = std::move(held)](const Call& call) {
      return Answer{static_cast<std::uint64_t>(to_int8(call.a[0], held)) & 0xff};
    };
  };
  const auto clamped = [](double x, double most) {
    return static_cast<std::int64_t>(std::clamp(x, -most - 1, most));
  };
  const bool named = all_named(
      {subject, machine([&](double x) { return clamped(x, 127); })},
      {{"the output wraps", "results beyond the range wrap modulo 2^8",
        by(machine([](double x) { return static_cast<std::int64_t>(std::fmod(x, 256.0)); }))},
       {"the low byte of an int32", "results are the low 8 bits of an int32 that saturates",
        by([&](const Call& call) {
          const float x = as_float(call.a[0]);
          if (std::isnan(x)) return Answer{127};
          const std::int64_t whole = clamped(std::nearbyint(double{x}), 2147483647);
          return Answer{static_cast<std::uint64_t>(whole) & 0xff};
        })},
       {"saturates at -127", "the lowest number becomes the one above it",
        writes([](std::uint64_t d) { return d == 0x80 ? 0x81 : d; })}});
  CHECK(named);
}

TEST_CASE("integers taken for those of the other sign are named", "[fast]") {
  const Bench to_float{operation_subject(Operation::convert, find_format("uint32"),
                                         find_format("float32"), {}, Overflow::ieee),
                       [](const Call& c) {
                         const auto x = static_cast<std::uint32_t>(c.a[0]);
                         return Answer{code_of(static_cast<float>(x))};
                       }};
  CHECK(all_named(to_float,
                  {{"FCVT.S.W for FCVT.S.WU", "operands read as int32", by([](const Call& c) {
                      const auto x = static_cast<std::int32_t>(c.a[0]);
                      return Answer{code_of(static_cast<float>(x))};
                    })}}));
  const auto held = [](double low, double high) {
    return [low, high](const Call& c) {
      const double x = as_float(c.a[0]);
      const double whole = std::isnan(x) ? high : std::clamp(std::nearbyint(x), low, high);
      return Answer{static_cast<std::uint64_t>(static_cast<std::int64_t>(whole)) & 0xffffffff};
    };
  };
  const Bench to_integer{operation_subject(Operation::convert, find_format("float32"),
                                           find_format("uint32"), {}, Overflow::saturate),
                         held(0, 0x1p32 - 1)};
  CHECK(all_named(to_integer, {{"FCVT.W.S for FCVT.WU.S", "results written as int32",
                                by(held(-0x1p31, 0x1p31 - 1))}}));
}

/// The least of two, of which `zeros` is that of +0 and -0, and `nan` that of NaN and a number.
template <class Zeros, class Nan>
Machine least(const Zeros& zeros, const Nan& nan) {
  return [zeros, nan](const Call& c) {
    const float x = as_float(c.a[0]), y = as_float(c.b[0]);
    if (std::isnan(x) || std::isnan(y)) return Answer{code_of(nan(x, y))};
    if (x == 0 && y == 0) return Answer{code_of(zeros(x, y))};
    return Answer{code_of(x < y ? x : y)};
  };
}

TEST_CASE("choices that take both zeros for equal are rules", "[fast]") {
  const auto second = [](float, float y) { return y; };
  const auto minus = [](float x, float y) { return std::signbit(x) ? x : y; };
  const auto number = [](float x, float y) { return std::isnan(x) ? y : x; };
  const Subject subject = operation_subject(Operation::minimum_number, find_format("float32"),
                                            find_format("float32"), {}, Overflow::ieee);
  const Bench bench{subject, least(minus, number)};
  CHECK(all_named(bench, {{"MINSS", "as x86 does", by(least(second, second))}}));
  // Both zeros meet too seldom in records of a bench.
  const Layout layout = layout_of(subject);
  const auto column = [&](Records& records, const char* name) -> std::uint64_t& {
    return records.columns[static_cast<std::size_t>(find_field(layout, name))].at(0);
  };
  int found = 0;
  for (const Rule& rule : operation_rules(subject)) {
    if (rule.name.find("both zeros are equal") == std::string::npos) continue;
    const bool first = rule.name.ends_with("A is the result");
    ++found;
    for (const std::uint64_t minus_zero : {std::uint64_t{0x80000000}, std::uint64_t{0}}) {
      Records records(layout, 1);
      column(records, "a") = minus_zero;
      column(records, "b") = minus_zero ^ 0x80000000;
      rule.compute(records);
      CHECK(column(records, "out") == (first ? minus_zero : minus_zero ^ 0x80000000));
    }
  }
  CHECK(found == 2);
}

Answer fma32(const Call& c) {
  return {code_of(std::fma(as_float(c.a[0]), as_float(c.b[0]), as_float(c.c)))};
}

TEST_CASE("planted faults of a fused multiply-add are named", "[fast]") {
  const Bench bench{operation_subject(Operation::fma, find_format("float32"),
                                      find_format("float32"), {}, Overflow::ieee),
                    fma32};
  const bool named = all_named(
      bench,
      {{"b and c exchanged", "b and c swapped", reads([](Call& c) { std::swap(c.b[0], c.c); })},
       {"a b - c", "C negated", reads([](Call& c) { c.c ^= 0x80000000; })},
       {"c - a b", "A negated", reads([](Call& c) { c.a[0] ^= 0x80000000; })},
       {"the product rounded", "the product is rounded before the addition",
        by([](const Call& call) {
          const volatile float product = as_float(call.a[0]) * as_float(call.b[0]);
          return Answer{code_of(product + as_float(call.c))};
        })},
       {"rounded to float64 first", "rounded to float64 (rne) first", by([](const Call& call) {
          const double sum =
              double(as_float(call.a[0])) * double(as_float(call.b[0])) + double(as_float(call.c));
          return Answer{code_of(static_cast<float>(sum))};
        })}});
  CHECK(named);
}

}  // namespace
}  // namespace numemu::oracle::test::rule_planted_test
