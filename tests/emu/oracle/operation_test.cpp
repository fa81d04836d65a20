// Operations in exact rationals, by tables of IEEE 754 typed in here: all pairs of narrow formats,
// all codes of halves; comparisons and choices by this CPU's.
#include "emu/oracle/operation.hpp"

#include <bit>
#include <cfenv>
#include <cmath>
#include <optional>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/one_record.hpp"
#include "tests/oracle/rational_codec.hpp"

namespace numemu::oracle::operation_test {
namespace {

Rational signed_rational(const Decoded& d) {
  return d.negative ? Rational(-d.magnitude) : d.magnitude;
}

/// An exact result: a number, which may be zero of a sign or infinite, or NaN.
struct Exact {
  Place place;
  int flags = 0;  ///< besides those of the rounding
  bool divided_by_zero = false;
};

class Expected {
 public:
  Expected(const std::string& from, const std::string& to) : from_(from), to_(to) {}

  Encoded of(Operation operation, const std::vector<std::uint64_t>& codes, const Rounding& rounding,
             Overflow overflow) const {
    const Exact exact = exact_of(operation, codes, rounding.mode == RoundingMode::rdn);
    Encoded e = to_.encode(exact.place, rounding, overflow);
    if (exact.divided_by_zero) return {e.code, kDivideByZero};
    e.flags |= static_cast<std::uint8_t>(exact.flags);
    return e;
  }
  const RationalCodec& from() const { return from_; }

 private:
  Exact number(const Rational& x, bool negative_zero) const {
    if (x == 0) return {to_.special(Class::zero, negative_zero)};
    return {to_.place(x)};
  }
  Exact infinite(bool negative) const { return {to_.special(Class::infinite, negative)}; }
  Exact invalid() const { return {to_.special(Class::nan, false), kInvalid}; }

  Exact sum(const Decoded& x, const Decoded& y, bool down) const {
    const bool inf_x = x.kind == Class::infinite, inf_y = y.kind == Class::infinite;
    if (inf_x && inf_y && x.negative != y.negative) return invalid();
    if (inf_x || inf_y) return infinite(inf_x ? x.negative : y.negative);
    const bool zeros = x.magnitude == 0 && y.magnitude == 0;
    const bool alike = zeros && x.negative == y.negative;
    return number(signed_rational(x) + signed_rational(y), alike ? x.negative : down);
  }

  Exact exact_of(Operation operation, const std::vector<std::uint64_t>& codes, bool down) const {
    Decoded a = from_.decode(codes[0]);
    const Decoded b = codes.size() > 1 ? from_.decode(codes[1]) : Decoded{};
    Decoded c = codes.size() > 2 ? to_.decode(codes[2]) : Decoded{};
    const bool nan_a = a.kind == Class::nan, nan_b = b.kind == Class::nan;
    const bool any_nan = nan_a || nan_b || c.kind == Class::nan;
    const bool signalling = (nan_a && a.signalling) || (nan_b && b.signalling) ||
                            (c.kind == Class::nan && c.signalling);
    const int flags = signalling ? kInvalid : 0;
    const Exact nan{to_.special(Class::nan, false), flags};
    const bool product_invalid =
        !nan_a && !nan_b &&
        ((a.kind == Class::infinite && b.magnitude == 0 && b.kind != Class::infinite) ||
         (b.kind == Class::infinite && a.magnitude == 0 && a.kind != Class::infinite));
    switch (operation) {
      case Operation::sub: {
        if (any_nan) return nan;
        Decoded y = b;
        y.negative = !y.negative;
        return sum(a, y, down);
      }
      case Operation::div: {
        const bool negative = a.negative != b.negative;
        if (any_nan) return nan;
        const bool inf_a = a.kind == Class::infinite, inf_b = b.kind == Class::infinite;
        const bool zero_a = !inf_a && a.magnitude == 0, zero_b = !inf_b && b.magnitude == 0;
        if ((inf_a && inf_b) || (zero_a && zero_b)) return invalid();
        if (inf_a) return infinite(negative);
        if (inf_b) return number(0, negative);
        if (zero_b) {
          Exact e = infinite(negative);
          e.divided_by_zero = true;
          return e;
        }
        return number(signed_rational(a) / signed_rational(b), negative);
      }
      case Operation::fmsub:
      case Operation::fnmsub:
      case Operation::fnmadd: {
        if (product_invalid) return invalid();
        if (any_nan) return nan;
        if (operation != Operation::fmsub) a.negative = !a.negative;
        if (operation != Operation::fnmsub) c.negative = !c.negative;
        Decoded product;
        product.negative = a.negative != b.negative;
        if (a.kind == Class::infinite || b.kind == Class::infinite) {
          product.kind = Class::infinite;
        } else {
          product.magnitude = a.magnitude * b.magnitude;
        }
        return sum(product, c, down);
      }
      case Operation::sqrt:
        if (any_nan) return nan;
        if (a.kind != Class::infinite && a.magnitude == 0) return number(0, a.negative);
        if (a.negative) return invalid();
        if (a.kind == Class::infinite) return infinite(false);
        return {to_.place(root(a.magnitude))};
      case Operation::minimum:
      case Operation::maximum:
        return any_nan ? nan : choice(a, b, operation == Operation::maximum, 0);
      case Operation::minimum_number:
      case Operation::maximum_number:
        if (nan_a && nan_b) return nan;
        return nan_a   ? of(b, flags)
               : nan_b ? of(a, flags)
                       : choice(a, b, operation == Operation::maximum_number, flags);
      case Operation::min_num:
      case Operation::max_num:
        if ((nan_a && nan_b) || signalling) return nan;
        return nan_a   ? of(b, 0)
               : nan_b ? of(a, 0)
                       : choice(a, b, operation == Operation::max_num, 0);
      default:
        throw std::logic_error("no rule of this operation");
    }
  }

  Exact of(const Decoded& d, int flags) const {
    Exact e =
        d.kind == Class::infinite ? infinite(d.negative) : number(signed_rational(d), d.negative);
    e.flags = flags;
    return e;
  }

  Exact choice(const Decoded& a, const Decoded& b, bool largest, int flags) const {
    const auto below = [](const Decoded& x, const Decoded& y) {
      const auto height = [](const Decoded& d) {
        return d.kind != Class::infinite ? 0 : d.negative ? -1 : 1;
      };
      if (height(x) != height(y)) return height(x) < height(y);
      if (height(x) != 0) return false;
      const Rational p = signed_rational(x), q = signed_rational(y);
      return p != q ? p < q : x.negative && !y.negative;
    };
    return of((largest ? below(a, b) : below(b, a)) ? b : a, flags);
  }

  /// A fraction that lies between the same codes and middles as the root: of 40 bits more than
  /// narrow formats have, and odd below those where it is not the root itself.
  static Rational root(const Rational& x) {
    constexpr int kBits = 40;
    // x = y * 4^e with y in [1, 4)
    int e = 0;
    Rational y = x;
    for (; y < 1; --e) y *= 4;
    for (; y >= 4; ++e) y /= 4;
    std::int64_t low = 1, high = 2;  // of the root, in units that halve
    Rational unit = 1;
    for (int i = 0; i < kBits; ++i) {
      unit /= 2;
      const std::int64_t middle = low + high;
      low *= 2;
      high *= 2;
      const Rational m = Rational(middle) * unit;
      (m * m <= y ? low : high) = middle;
    }
    const Rational scale = Rational::power_of_two(e), found = Rational(low) * unit;
    if (found * found == y) return found * scale;
    return (found + unit / 2) * scale;
  }

  RationalCodec from_, to_;
};

constexpr Operation kPairs[] = {Operation::sub,
                                Operation::div,
                                Operation::minimum,
                                Operation::maximum,
                                Operation::minimum_number,
                                Operation::maximum_number,
                                Operation::min_num,
                                Operation::max_num};

struct Count {
  std::int64_t records = 0, differences = 0;
  std::string first;

  void add(bool same, const Subject& s, std::uint64_t a, std::uint64_t b) {
    ++records;
    if (!same && differences++ == 0)
      first = header_line(s) + ": " + std::to_string(a) + " " + std::to_string(b);
  }
};

/// All pairs of codes (or every `step`-th), in one rounding and overflow.
void all_pairs(const std::string& name, Operation operation, const std::string& rounding,
               Overflow overflow, std::size_t step, Count& count) {
  const Format& f = find_format(name);
  const Expected expected(name, name);
  const Subject s = operation_subject(operation, f, f, parse_rounding(rounding), overflow);
  const std::uint64_t codes = f.last_code() + 1;
  const auto n = static_cast<std::int64_t>((codes * codes + step - 1) / step);
  Records records(layout_of(s), n);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t pair = static_cast<std::uint64_t>(i) * step;
    records.columns[0][static_cast<std::size_t>(i)] = pair / codes;
    records.columns[1][static_cast<std::size_t>(i)] = pair % codes;
  }
  evaluate(s, records);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t a = records.code(0, i), b = records.code(1, i);
    const Encoded want = expected.of(operation, {a, b}, s.rounding, overflow);
    count.add(want.code == records.code(2, i) && want.flags == records.code(3, i), s, a, b);
  }
}

/// All codes under sqrt.
void all_roots(const std::string& name, const std::string& rounding, Overflow overflow,
               std::size_t step, Count& count) {
  const Format& f = find_format(name);
  const Expected expected(name, name);
  const Subject s = operation_subject(Operation::sqrt, f, f, parse_rounding(rounding), overflow);
  Records one(layout_of(s), 1);
  for (std::uint64_t a = 0; a <= f.last_code(); a += step) {
    one.columns[0][0] = a;
    evaluate(s, one);
    const Encoded want = expected.of(Operation::sqrt, {a}, s.rounding, overflow);
    count.add(want.code == one.code(1, 0) && want.flags == one.code(2, 0), s, a, 0);
  }
}

/// Triples of a multiplicative congruence.
void triples(const std::string& name, Operation operation, const std::string& rounding,
             Overflow overflow, std::int64_t n, Count& count) {
  const Format& f = find_format(name);
  const Expected expected(name, name);
  const Subject s = operation_subject(operation, f, f, parse_rounding(rounding), overflow);
  Records records(layout_of(s), n);
  std::uint64_t state = 5;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::size_t o = 0; o < 3; ++o) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      records.columns[o][static_cast<std::size_t>(i)] = (state >> 40) % (f.last_code() + 1);
    }
  }
  evaluate(s, records);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::vector<std::uint64_t> codes = {records.code(0, i), records.code(1, i),
                                              records.code(2, i)};
    const Encoded want = expected.of(operation, codes, s.rounding, overflow);
    count.add(want.code == records.code(3, i) && want.flags == records.code(4, i), s, codes[0],
              codes[1]);
  }
}

const std::vector<std::string> kRoundings = {"rne", "rna", "rtz", "rup", "rdn", "rodd"};
constexpr Operation kFused[] = {Operation::fmsub, Operation::fnmsub, Operation::fnmadd};

TEST_CASE("operations on narrow formats agree with exact rationals", "[fast]") {
  Count count;
  std::size_t at = 0;
  for (const char* const name :
       {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu", "float6_e3m2fn",
        "float4_e2m1fn", "hfp8_e4m3_nosub", "binary8p3se", "binary8p4uf", "e4m3+ftz"}) {
    const std::string& rounding = kRoundings[at++ % kRoundings.size()];
    for (const Operation operation : kPairs)
      all_pairs(name, operation, rounding, Overflow::ieee, 37, count);
    all_roots(name, rounding, Overflow::ieee, 1, count);
    for (const Operation operation : kFused)
      triples(name, operation, rounding, Overflow::ieee, 500, count);
  }
  for (const std::string& rounding : kRoundings)
    all_roots("float16", rounding, Overflow::ieee, 97, count);
  INFO(count.first);
  CHECK(count.records > 100000);
  CHECK(count.differences == 0);
}

TEST_CASE("operations on all formats of at most 8 bits agree with exact rationals",
          "[exhaustive]") {
  Count count;
  for (const Specified& row : specified_rows()) {
    if (row.bits > 8 || row.integer) continue;
    for (const std::string& rounding : kRoundings) {
      for (const Overflow overflow : {Overflow::ieee, Overflow::saturate, Overflow::propagate}) {
        const bool all = overflow == Overflow::ieee;
        for (const Operation operation : kPairs) {
          // Choices are not rounded.
          const bool once = row_of(operation).arithmetic == Arithmetic::choice;
          all_pairs(row.name, operation, rounding, overflow,
                    all && (!once || rounding == "rne") ? 1 : 31, count);
        }
        all_roots(row.name, rounding, overflow, 1, count);
        for (const Operation operation : kFused)
          triples(row.name, operation, rounding, overflow, 20000, count);
      }
    }
  }
  for (const std::string& rounding : kRoundings) {
    all_roots("float16", rounding, Overflow::ieee, 1, count);
    all_roots("bfloat16", rounding, Overflow::ieee, 1, count);
  }
  INFO(count.first);
  CHECK(count.differences == 0);
  WARN("operations of narrow formats: " << count.records << " records, " << count.differences
                                        << " differences");
}

/// What this CPU computes, with its flags; the operands are kept from the compiler.
template <class T, class Result>
std::pair<Result, int> by_host(Operation operation, T x, T y) {
  volatile T a = x, b = y;
  std::feclearexcept(FE_ALL_EXCEPT);
  volatile Result d = 0;
  switch (operation) {
    case Operation::sub:
      d = static_cast<Result>(a - b);
      break;
    case Operation::div:
      d = static_cast<Result>(a / b);
      break;
    case Operation::sqrt:
      d = static_cast<Result>(std::sqrt(a));
      break;
    case Operation::eq:
      d = a == b;
      break;
    case Operation::lt:
      d = a < b;
      break;
    case Operation::le:
      d = a <= b;
      break;
    case Operation::lt_quiet:
      d = __builtin_isless(a, b);
      break;
    default:
      d = __builtin_islessequal(a, b);
  }
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  int flags = 0;
  for (const auto& [host, ours] : {std::pair<int, Flag>{FE_INEXACT, kInexact},
                                   {FE_UNDERFLOW, kUnderflow},
                                   {FE_OVERFLOW, kOverflow},
                                   {FE_DIVBYZERO, kDivideByZero},
                                   {FE_INVALID, kInvalid}})
    flags |= (raised & host) != 0 ? ours : 0;
  return {d, flags};
}

/// Records of the operation in the host's own format, held against the host.
template <class T, class Code>
void against_host(const char* format, Operation operation, std::int64_t n, Count& count) {
  const Format& f = find_format(format);
  Subject s = operation_subject(operation, f, usual_result(operation, f), {}, Overflow::ieee);
  s.seed = 3;
  const Generator generator(s);
  Records records(generator.layout(), n);
  generator.fill(0, records);
  const int out = find_field(generator.layout(), "out");
  const bool compares = row_of(operation).arithmetic == Arithmetic::comparison;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto a = static_cast<Code>(records.code(0, i)),
               b = static_cast<Code>(out > 1 ? records.code(1, i) : 0);
    const std::uint64_t got = records.code(out, i), flags = records.code(out + 1, i);
    bool same = false;
    if (compares) {
      const auto [want, raised] =
          by_host<T, int>(operation, std::bit_cast<T>(a), std::bit_cast<T>(b));
      same = got == static_cast<std::uint64_t>(want) && flags == static_cast<std::uint64_t>(raised);
    } else {
      const auto [want, raised] =
          by_host<T, T>(operation, std::bit_cast<T>(a), std::bit_cast<T>(b));
      const bool nan = std::isnan(std::bit_cast<T>(static_cast<Code>(got)));
      same = (nan ? std::isnan(want) : got == std::bit_cast<Code>(want)) &&
             flags == static_cast<std::uint64_t>(raised);
    }
    count.add(same, s, a, b);
  }
}

TEST_CASE("operations on float32 and float64 are this CPU's, flags included", "[fast]") {
  Count count;
  for (const Operation operation :
       {Operation::sub, Operation::div, Operation::sqrt, Operation::eq, Operation::lt,
        Operation::le, Operation::lt_quiet, Operation::le_quiet}) {
    against_host<float, std::uint32_t>("float32", operation, 10000, count);
    against_host<double, std::uint64_t>("float64", operation, 10000, count);
  }
  INFO(count.first);
  CHECK(count.differences == 0);
}

Encoded result_of(const char* op, const char* from, const char* to,
                  std::initializer_list<std::uint64_t> operands, const char* rounding = "rne",
                  Overflow overflow = Overflow::ieee) {
  const Operation operation = parse_operation(op);
  const Format& source = find_format(from);
  const Subject s = operation_subject(
      operation, source, to[0] != 0 ? find_format(to) : usual_result(operation, source),
      parse_rounding(rounding), overflow);
  return one_record::result_of(s, operands);
}

TEST_CASE("NaN and zeros of choices and comparisons follow IEEE 754 and RISC-V", "[fast]") {
  constexpr std::uint64_t kOne = 0x3c00, kZero = 0, kMinusZero = 0x8000, kQuiet = 0x7e00,
                          kSignalling = 0x7d00;
  struct Row {
    const char* op;
    std::uint64_t a, b, code;
    int flags;
  };
  for (const Row& row : std::vector<Row>{{"minimum", kOne, kQuiet, kQuiet, 0},
                                         {"minimum", kOne, kSignalling, kQuiet, kInvalid},
                                         {"minimum", kZero, kMinusZero, kMinusZero, 0},
                                         {"maximum", kMinusZero, kZero, kZero, 0},
                                         {"minimum_number", kOne, kQuiet, kOne, 0},
                                         {"minimum_number", kSignalling, kOne, kOne, kInvalid},
                                         {"minimum_number", kQuiet, kQuiet, kQuiet, 0},
                                         {"minimum_number", kSignalling, kQuiet, kQuiet, kInvalid},
                                         {"min", kSignalling, kOne, kOne, kInvalid},
                                         {"max", kQuiet, kMinusZero, kMinusZero, 0},
                                         {"min_num", kOne, kQuiet, kOne, 0},
                                         {"min_num", kOne, kSignalling, kQuiet, kInvalid},
                                         {"max_num", kSignalling, kQuiet, kQuiet, kInvalid},
                                         {"eq", kZero, kMinusZero, 1, 0},
                                         {"eq", kOne, kQuiet, 0, 0},
                                         {"eq", kOne, kSignalling, 0, kInvalid},
                                         {"eq_signaling", kOne, kQuiet, 0, kInvalid},
                                         {"lt", kQuiet, kOne, 0, kInvalid},
                                         {"lt", kMinusZero, kZero, 0, 0},
                                         {"le", kZero, kMinusZero, 1, 0},
                                         {"le_quiet", kQuiet, kQuiet, 0, 0},
                                         {"lt_quiet", kOne, kSignalling, 0, kInvalid}}) {
    INFO(row.op << " " << std::hex << row.a << " " << row.b);
    const Encoded found = result_of(row.op, "float16", "", {row.a, row.b});
    CHECK(found.code == row.code);
    CHECK(found.flags == row.flags);
  }
}

TEST_CASE("divisions by zero raise DZ alone, whatever stands for infinity", "[fast]") {
  CHECK(result_of("div", "float16", "", {0x3c00, 0x8000}).code == 0xfc00);
  CHECK(result_of("div", "float16", "", {0x3c00, 0}).flags == kDivideByZero);
  CHECK(result_of("div", "float16", "", {0x7c00, 0}).flags == 0);
  CHECK(result_of("div", "float16", "", {0, 0}).flags == kInvalid);
  CHECK(result_of("div", "float8_e4m3fn", "", {0x38, 0}).code == 0x7f);
  CHECK(result_of("div", "float8_e4m3fn", "", {0x38, 0}).flags == kDivideByZero);
  CHECK(result_of("div", "float8_e4m3fn", "", {0x38, 0}, "rne", Overflow::saturate).code == 0x7e);
  CHECK(result_of("sqrt", "float16", "", {0x8000}).code == 0x8000);
  CHECK(result_of("sqrt", "float16", "", {0xbc00}).flags == kInvalid);
}

TEST_CASE("integers of 32 and 64 bits convert with RISC-V's ends", "[fast]") {
  constexpr std::uint64_t kMost32 = 0x7fffffff, kLeast32 = 0x80000000, kAll32 = 0xffffffff,
                          kMost64 = 0x7fffffffffffffff, kLeast64 = 0x8000000000000000;
  struct Row {
    const char *op, *from, *to, *rounding;
    std::uint64_t in, code;
    int flags;
  };
  for (const Row& row : std::vector<Row>{
           // 2^31, -2^31, -2^31 - 1, NaN, -infinity in float64
           {"convert", "float64", "int32", "rtz", 0x41e0000000000000, kMost32, kInvalid},
           {"convert", "float64", "int32", "rtz", 0xc1e0000000000000, kLeast32, 0},
           {"convert", "float64", "int32", "rtz", 0xc1e0000000200000, kLeast32, kInvalid},
           {"convert", "float64", "int32", "rtz", 0x7ff8000000000000, kMost32, kInvalid},
           {"convert", "float64", "uint32", "rtz", 0xfff0000000000000, 0, kInvalid},
           {"convert", "float64", "uint32", "rtz", 0x7ff8000000000000, kAll32, kInvalid},
           // -0.5 is 0, and inexact; rounded down it is no unsigned number
           {"convert", "float64", "uint32", "rtz", 0xbfe0000000000000, 0, kInexact},
           {"convert", "float64", "uint32", "rdn", 0xbfe0000000000000, 0, kInvalid},
           {"to_integer", "float64", "uint32", "rtz", 0xbfe0000000000000, 0, 0},
           {"to_integer", "float64", "int32", "rne", 0x3ff8000000000000, 2, 0},
           // 2^63, -2^63, 2^64 - 2^11, 2^64 in float64
           {"convert", "float64", "int64", "rne", 0x43e0000000000000, kMost64, kInvalid},
           {"convert", "float64", "int64", "rne", 0xc3e0000000000000, kLeast64, 0},
           {"convert", "float64", "uint64", "rne", 0x43efffffffffffff, 0xfffffffffffff800, 0},
           {"convert", "float64", "uint64", "rne", 0x43f0000000000000, ~std::uint64_t{0}, kInvalid},
           {"convert", "float32", "uint64", "rup", 0xff7fffff, 0, kInvalid},
           // 2^53 + 1 and the largest
           {"convert", "int64", "float64", "rne", 0x20000000000001, 0x4340000000000000, kInexact},
           {"convert", "int64", "float64", "rup", 0x20000000000001, 0x4340000000000001, kInexact},
           {"convert", "int64", "float64", "rne", kLeast64, 0xc3e0000000000000, 0},
           {"convert", "uint64", "float32", "rne", ~std::uint64_t{0}, 0x5f800000, kInexact},
           {"convert", "int64", "int32", "rne", kLeast64, kLeast32, kInvalid},
           {"convert", "uint64", "int64", "rne", kLeast64, kMost64, kInvalid}}) {
    INFO(row.op << " " << row.from << " " << row.to << " " << row.rounding << " " << std::hex
                << row.in);
    const Encoded found =
        result_of(row.op, row.from, row.to, {row.in}, row.rounding, Overflow::saturate);
    CHECK(found.code == row.code);
    CHECK(found.flags == row.flags);
  }
}

TEST_CASE("hard cases of quotients and roots lie beside ties", "[fast]") {
  for (const char* const op : {"div", "sqrt"}) {
    for (const auto& [format, bits] :
         {std::pair("float32", 18), {"float16", 6}, {"float64", 8}, {"bfloat16", 4}}) {
      INFO(op << " " << format);
      const Format& f = find_format(format);
      Subject s = operation_subject(parse_operation(op), f, f, {}, Overflow::ieee);
      s.style = "near_ties";
      const Generator generator(s);
      Records records(generator.layout(), 200);
      generator.fill(0, records);
      std::int64_t near = 0, up = 0;
      for (std::int64_t i = 0; i < 200; ++i) {
        const Value exact = exact_result(s, records, i);
        // The first bit that is dropped, and those behind it.
        const std::uint64_t dropped = exact.significand << std::countl_zero(exact.significand)
                                                        << (f.mantissa_bits + 1);
        const bool above = dropped >> 63 != 0;
        up += above;
        const std::uint64_t behind = above ? dropped << 1 : ~(dropped << 1);
        near += (behind == 0 && exact.sticky) || std::countl_zero(behind) >= bits - 2;
      }
      CHECK(near > 150);
      CHECK(up > 20);
      CHECK(up < 180);
    }
  }
}

TEST_CASE("operations refuse formats that they cannot have", "[fast]") {
  const auto refused = [](const char* op, const char* from, const char* to,
                          const char* rounding = "rne") {
    return [=] {
      operation_subject(parse_operation(op), find_format(from), find_format(to),
                        parse_rounding(rounding), Overflow::ieee);
    };
  };
  CHECK_THROWS_WITH(refused("lt", "float16", "float16")(), "lt to float16: expected uint1, 0 or 1");
  CHECK_THROWS_WITH(refused("to_integer", "float16", "float32")(),
                    "to_integer to float32: expected an integer format");
  CHECK_THROWS_WITH(refused("div", "float64", "int64")(),
                    "div to int64: expected a result of at most 61 bits");
  CHECK_THROWS_WITH(refused("sqrt", "float64", "float64", "sr(16)")(),
                    "sqrt to float64: expected at most 9 random bits, found 16");
  CHECK_THROWS_WITH(parse_operation("divide"), Catch::StartsWith("unknown operation 'divide'"));
}

}  // namespace
}  // namespace numemu::oracle::operation_test
