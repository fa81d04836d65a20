#include "emu/oracle/codes_of_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "emu/oracle/dice.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using unit::FixedFactor;
using unit::Requantization;

__extension__ typedef __int128 WideSum;

constexpr int kSumBits = 32;
constexpr std::uint64_t kMostMultiplier = 0x7fffffff, kLargestFactor = 0x7f7fffff;

std::int64_t signed_code(std::uint64_t code, int bits) {
  return static_cast<std::int64_t>(code << (64 - bits)) >> (64 - bits);
}

std::uint64_t ones_of(int bits) { return ~std::uint64_t{0} >> (64 - bits); }

/// Two's complement, or as it is of a format without signs.
std::int64_t number_of(const Format& format, std::uint64_t code) {
  return format.is_signed ? signed_code(code, format.bits) : static_cast<std::int64_t>(code);
}

std::uint64_t input(const Layout& layout, const Records& records, const char* name,
                    std::int64_t i) {
  return records.code(find_field(layout, name), i);
}

std::int32_t wrapped(std::uint64_t sum) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
}

/// The numbers of record i, whose sum is `bare`.
SumRecord read_record(const Subject& s, const Layout& layout, const Records& records,
                      std::int64_t i, std::uint64_t bare) {
  SumRecord r;
  r.bare = wrapped(bare);
  r.sum = wrapped(bare + input(layout, records, "bias", i));
  r.zero_point =
      static_cast<std::int32_t>(number_of(*s.to, input(layout, records, "zero_point", i)));
  if (s.codes->how == Requantization::real) {
    const std::uint64_t factor = input(layout, records, "factor", i);
    if (factor > kLargestFactor)
      throw RecordError(
          i, fmt::format("factor: expected a finite number that is not negative, found {:#x}",
                         factor));
    r.factor = std::bit_cast<float>(static_cast<std::uint32_t>(factor));
    return r;
  }
  const std::uint64_t multiplier = input(layout, records, "multiplier", i);
  const std::int64_t shift = signed_code(input(layout, records, "shift", i), 8);
  if (multiplier > kMostMultiplier)
    throw RecordError(i, fmt::format("multiplier: expected at most {:#x}, found {:#x}",
                                     kMostMultiplier, multiplier));
  if (shift < unit::kLeastShift || shift > unit::kMostShift)
    throw RecordError(i, fmt::format("shift: expected {} to {}, found {}", unit::kLeastShift,
                                     unit::kMostShift, shift));
  r.fixed = {static_cast<std::int32_t>(multiplier), static_cast<int>(shift)};
  return r;
}

/// The records of the sums, computed.
Records computed_sums(const Subject& s, const Records& records, const unit::ShortEnds* ends) {
  const Subject of_sums = sums_of(s);
  const Layout own = layout_of(s), layout = layout_of(of_sums);
  Records sums(layout, records.size);
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (!layout[f].result)
      sums.columns[f] = records.columns[static_cast<std::size_t>(find_field(own, layout[f].name))];
  }
  evaluate(of_sums, sums, ends);
  return sums;
}

}  // namespace

Subject sums_of(const Subject& s) {
  Subject sums = s;
  sums.codes.reset();
  sums.to = s.unit->d_format();
  return sums;
}

Subject with_results_of(const Subject& own, Subject theirs) {
  if (!own.codes) return theirs;
  return codes_subject(std::move(theirs), own.codes->how, *own.to, own.codes->low, own.codes->high);
}

std::int64_t code_of_sum(const Subject& s, const SumRecord& r) {
  const std::int64_t scaled = s.codes->how == Requantization::real
                                  ? unit::requantize_real(r.sum, r.factor)
                                  : unit::requantize_fixed(s.codes->how, r.sum, r.fixed);
  return std::clamp<std::int64_t>(scaled + r.zero_point, s.codes->low, s.codes->high);
}

void evaluate_codes(const Subject& s, Records& records, const unit::ShortEnds* ends,
                    const CodeOfSum& code) {
  const Layout layout = layout_of(s);
  const Records sums = computed_sums(s, records, ends);
  const int sum = find_field(layout_of(sums_of(s)), "d");
  auto& d = records.columns[static_cast<std::size_t>(find_field(layout, "d"))];
  for (std::int64_t i = 0; i < records.size; ++i)
    d[static_cast<std::size_t>(i)] =
        static_cast<std::uint64_t>(code(s, read_record(s, layout, records, i, sums.code(sum, i)))) &
        ones_of(s.to->bits);
}

SumRecord sum_record(const Subject& s, const Records& records, std::int64_t i) {
  const Layout layout = layout_of(s);
  const Records sums = computed_sums(s, slice(layout, records, i, 1), nullptr);
  const int sum = find_field(layout_of(sums_of(s)), "d");
  return read_record(s, layout, records, i, sums.code(sum, 0));
}

std::string epilogue_text(const Subject& s, const SumRecord& r) {
  const bool real = s.codes->how == Requantization::real;
  const std::int32_t scaled = real ? unit::requantize_real(r.sum, r.factor)
                                   : unit::requantize_fixed(s.codes->how, r.sum, r.fixed);
  return fmt::format(
      "sum {}, with the bias {}; {} gives {}; with zero point {} the code {}", r.bare, r.sum,
      real ? fmt::format("factor {}", r.factor)
           : fmt::format("multiplier {}, shift {}", r.fixed.multiplier, r.fixed.shift),
      scaled, r.zero_point, code_of_sum(s, r));
}

namespace {

/// Draws what the epilogue of one record reads.
class EpilogueDraw {
 public:
  EpilogueDraw(const Subject& s, const EpilogueConstants& constants) : s_(s), is_(constants) {}

  SumRecord draw(Dice dice, std::int32_t bare, std::uint32_t& bias) const {
    const int kind = static_cast<int>(dice.below(4));
    // Half of the biases are zero, the others about as large as the sum.
    bias = 0;
    if (dice.below(2) != 0)
      bias = static_cast<std::uint32_t>(signed_code(dice.bits(kSumBits), kSumBits) >>
                                        (kSumBits - std::min(kSumBits, width(bare) + 1)));
    SumRecord r;
    r.bare = bare;
    r.sum = wrapped(static_cast<std::uint32_t>(bare) + bias);
    const auto span = std::int64_t{s_.codes->high} - s_.codes->low + 1;
    const auto zero = static_cast<std::int32_t>(s_.codes->low + dice.below(span));
    const bool none = dice.below(2) == 0 && s_.codes->low <= 0 && s_.codes->high >= 0;
    r.zero_point = is_.zero_point.value_or(none ? 0 : zero);
    // Codes of one bit to one more than there are.
    const int bits = 1 + static_cast<int>(dice.below(s_.to->bits + 1));
    if (kind == kTie && r.sum != 0) {
      set_tie(dice.bits(std::min(bits, s_.to->bits) - 1), r);
    } else {
      set_factor(dice, kind, bits - width(r.sum), r);
    }
    return r;
  }

 private:
  enum : std::uint8_t { kAny, kPower, kFew, kTie };

  static std::uint64_t magnitude(std::int32_t sum) {
    return static_cast<std::uint64_t>(sum < 0 ? -std::int64_t{sum} : std::int64_t{sum});
  }
  static int width(std::int32_t sum) { return std::bit_width(magnitude(sum)); }

  void set(const FixedFactor& fixed, float factor, SumRecord& r) const {
    if (s_.codes->how == Requantization::real) {
      r.factor = is_.factor.value_or(factor);
    } else {
      r.fixed = is_.fixed.value_or(fixed);
    }
  }

  /// A factor of about 2^exponent: any, a power of two, or one of few digits, whose products are
  /// halves more often.
  void set_factor(Dice& dice, int kind, int exponent, SumRecord& r) const {
    constexpr int kDigits = 31, kFewDigits = 6, kLeast = -126;
    std::uint64_t digits = std::uint64_t{1} << (kDigits - 1);
    if (kind == kAny || kind == kTie) digits |= dice.bits(kDigits - 1);
    if (kind == kFew) digits |= dice.bits(kFewDigits) << (kDigits - 1 - kFewDigits);
    // A float32 has 24 digits, the first of them implied.
    const auto field = static_cast<std::uint64_t>(std::max(exponent, kLeast) + 126);
    const std::uint64_t fraction = digits >> (kDigits - 24) & ones_of(23);
    set({static_cast<std::int32_t>(digits),
         std::clamp(exponent, unit::kLeastShift, unit::kMostShift)},
        std::bit_cast<float>(static_cast<std::uint32_t>(field << 23 | fraction)), r);
  }

  /// The largest factor that brings the sum to no more than k + 1/2. What it lacks is below half a
  /// unit of a first rounding, whose result a second one rounds away from k.
  void set_tie(std::uint64_t k, SumRecord& r) const {
    constexpr int kMostRight = 31;
    const std::uint64_t sum = magnitude(r.sum), odd = 2 * k + 1;
    int right = 0;
    while (right < kMostRight && odd << right < sum) ++right;
    const WideSum digits = (WideSum{odd} << (right + 30)) / WideSum{sum};
    set({static_cast<std::int32_t>(std::min<WideSum>(digits, kMostMultiplier)), -right},
        static_cast<float>(static_cast<double>(odd) / (2 * static_cast<double>(sum))), r);
  }

  const Subject& s_;
  const EpilogueConstants& is_;
};

}  // namespace

void draw_epilogues(const Subject& s, const EpilogueConstants& constants, std::int64_t first,
                    const Records& sums, Records& records) {
  // The sums' own inputs come from the dice of records below this.
  constexpr std::int64_t kFirst = std::int64_t{1} << 47;
  const Layout layout = layout_of(s), of_sums = layout_of(sums_of(s));
  for (std::size_t f = 0; f < of_sums.size(); ++f) {
    if (!of_sums[f].result)
      records.columns[static_cast<std::size_t>(find_field(layout, of_sums[f].name))] =
          sums.columns[f];
  }
  records.classes = sums.classes;
  records.class_of = sums.class_of;
  const EpilogueDraw drawn(s, constants);
  const int sum = find_field(of_sums, "d");
  for (std::int64_t i = 0; i < records.size; ++i) {
    std::uint32_t bias = 0;
    const SumRecord r =
        drawn.draw(Dice(s.seed, kFirst + first + i), wrapped(sums.code(sum, i)), bias);
    const auto put = [&](const char* name, std::uint64_t code) {
      const int f = find_field(layout, name);
      if (f < 0) return;
      const int bits = layout[static_cast<std::size_t>(f)].bits;
      records.columns[static_cast<std::size_t>(f)][static_cast<std::size_t>(i)] =
          code & ones_of(bits);
    };
    put("bias", bias);
    put("factor", std::bit_cast<std::uint32_t>(r.factor));
    put("multiplier", static_cast<std::uint64_t>(r.fixed.multiplier));
    put("shift", static_cast<std::uint64_t>(static_cast<std::int64_t>(r.fixed.shift)));
    put("zero_point", static_cast<std::uint64_t>(std::int64_t{r.zero_point}));
    put("d", static_cast<std::uint64_t>(code_of_sum(s, r)));
  }
}

namespace {

/// x / 2^e by a rule: down, toward zero, to the nearest with halves upward, away from zero, or to
/// even.
enum class Cut : std::uint8_t { down, zero, half_up, half_away, half_even };

std::int64_t cut(WideSum x, int e, Cut rule) {
  constexpr WideSum kMost = std::int64_t{1} << 62;
  if (e <= 0)
    return static_cast<std::int64_t>(std::clamp<WideSum>(x << std::min(-e, 31), -kMost, kMost));
  const bool negative = x < 0;
  const bool symmetric = rule == Cut::zero || rule == Cut::half_away;
  const WideSum m = symmetric && negative ? -x : x;
  const WideSum whole = m >> e, rest = m - (whole << e), half = WideSum{1} << (e - 1);
  bool up = false;
  if (rule == Cut::half_up || rule == Cut::half_away) up = rest >= half;
  if (rule == Cut::half_even) up = rest > half || (rest == half && (whole & 1) != 0);
  const auto rounded =
      static_cast<std::int64_t>(std::clamp<WideSum>(whole + (up ? 1 : 0), -kMost, kMost));
  return symmetric && negative ? -rounded : rounded;
}

std::int64_t clamped(const Subject& s, const SumRecord& r, std::int64_t scaled) {
  return std::clamp<std::int64_t>(scaled + r.zero_point, s.codes->low, s.codes->high);
}

/// The sum times the factor by the subject's own rule.
std::int64_t scaled_of(const Subject& s, const SumRecord& r) {
  return s.codes->how == Requantization::real
             ? unit::requantize_real(r.sum, r.factor)
             : unit::requantize_fixed(s.codes->how, r.sum, r.fixed);
}

/// One cut of the whole product, or two: behind the multiplication by the digits, and the shift.
std::int64_t in_one(const SumRecord& r, Cut rule) {
  return cut(WideSum{r.sum} * r.fixed.multiplier, 31 - r.fixed.shift, rule);
}
WideSum shifted_left(const SumRecord& r) {
  return wrapped(std::uint64_t{static_cast<std::uint32_t>(r.sum)} << std::max(r.fixed.shift, 0));
}
std::int64_t in_two(const SumRecord& r, Cut first, Cut second) {
  return cut(cut(shifted_left(r) * r.fixed.multiplier, 31, first), std::max(-r.fixed.shift, 0),
             second);
}
/// x / 2^e with 2^(e - 1 + more) added in place of a half; of magnitudes where it is symmetric.
std::int64_t with_half(WideSum x, int e, int more, bool symmetric) {
  if (e == 0) return static_cast<std::int64_t>(x);
  const bool negative = symmetric && x < 0;
  const WideSum half = (WideSum{1} << (e + 1 + more)) >> 2;
  const std::int64_t rounded = cut((negative ? -x : x) + half, e, Cut::down);
  return negative ? -rounded : rounded;
}
/// A float32 number 2^-e times an integer, of a magnitude that codes have.
std::int64_t cut_float(float x, Cut rule) {
  constexpr float kMost = 0x1p40f, kScale = 0x1p60f;
  constexpr int kDigits = 60;
  if (!(std::fabs(x) < kMost)) return x < 0 ? -(std::int64_t{1} << 40) : std::int64_t{1} << 40;
  return cut(static_cast<WideSum>(double{x} * double{kScale}), kDigits, rule);
}
/// The float32 product, as the subject has it before its last rounding.
std::int64_t in_float(const SumRecord& r, Cut rule) {
  return cut_float(static_cast<float>(r.sum) * r.factor, rule);
}
/// The exact product.
std::int64_t in_one_of_float(const SumRecord& r) {
  int e = 0;
  const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(r.factor, &e), 24));
  return cut(WideSum{r.sum} * digits, std::min(24 - e, 120), Cut::half_even);
}

class EpilogueRules {
 public:
  explicit EpilogueRules(const Subject& s) : s_(s) {}

  std::vector<Rule> make() {
    roundings();
    points();
    ends();
    inputs();
    return std::move(rules_);
  }

 private:
  void add(std::string family, std::string name, CodeOfSum code) {
    rules_.push_back({.family = std::move(family),
                      .name = std::move(name),
                      .compute = [s = s_, code = std::move(code)](Records& records) {
                        evaluate_codes(s, records, nullptr, code);
                      }});
  }
  /// Of the scaled sum alone.
  void scaled(const char* family, std::string name,
              std::function<std::int64_t(const SumRecord&)> of) {
    add(family, std::move(name), [of = std::move(of)](const Subject& s, const SumRecord& r) {
      return clamped(s, r, of(r));
    });
  }

  void roundings() {
    constexpr const char* kFamily = "requantization";
    const Requantization how = s_.codes->how;
    if (how == Requantization::real) {
      scaled(kFamily, "the scaled sum is rounded toward minus infinity",
             [](const SumRecord& r) { return in_float(r, Cut::down); });
      scaled(kFamily, "the scaled sum is rounded toward zero",
             [](const SumRecord& r) { return in_float(r, Cut::zero); });
      scaled(kFamily, "halves of the scaled sum are rounded away from zero",
             [](const SumRecord& r) { return in_float(r, Cut::half_away); });
      scaled(kFamily, "halves of the scaled sum are rounded upward",
             [](const SumRecord& r) { return in_float(r, Cut::half_up); });
      scaled(kFamily, "the sum is multiplied exactly: one rounding in place of three",
             in_one_of_float);
      for (const Requantization other :
           {Requantization::fixed_single, Requantization::fixed_double})
        scaled(kFamily, fmt::format("as {} in place of float", unit::row_of(other).name),
               [other](const SumRecord& r) -> std::int64_t {
                 constexpr float kMost = 0x1p30f;
                 if (!(r.factor < kMost)) return unit::requantize_real(r.sum, r.factor);
                 return unit::requantize_fixed(other, r.sum, unit::fixed_factor(r.factor));
               });
      return;
    }
    const bool two = how == Requantization::fixed_double;
    if (two) {
      scaled(kFamily, "one rounding in place of two, as fixed-point-single",
             [](const SumRecord& r) {
               return unit::requantize_fixed(Requantization::fixed_single, r.sum, r.fixed);
             });
    } else {
      scaled(kFamily, "two roundings in place of one, as fixed-point-double",
             [](const SumRecord& r) {
               return unit::requantize_fixed(Requantization::fixed_double, r.sum, r.fixed);
             });
    }
    // What is cut: down, as a shift of two's complement does, or toward zero.
    static constexpr std::pair<Cut, const char*> kCuts[] = {
        {Cut::down, "bits are cut by a shift, toward minus infinity"},
        {Cut::zero, "bits are cut toward zero"},
        {Cut::half_up, "halves are rounded upward"},
        {Cut::half_away, "halves are rounded away from zero"},
        {Cut::half_even, "halves are rounded to even"}};
    for (const auto& [rule, name] : kCuts) {
      const Cut c = rule;
      if (two || c != Cut::half_up)
        scaled(kFamily, fmt::format("one rounding: {}", name),
               [c](const SumRecord& r) { return in_one(r, c); });
    }
    for (const auto& [rule, name] : kCuts) {
      const Cut c = rule;
      if (c != Cut::half_up)
        scaled(kFamily, fmt::format("two roundings, in the first: {}", name),
               [c](const SumRecord& r) { return in_two(r, c, Cut::half_away); });
      if (c != Cut::half_away)
        scaled(kFamily, fmt::format("two roundings, in the second: {}", name),
               [c](const SumRecord& r) { return in_two(r, Cut::half_up, c); });
      scaled(kFamily, fmt::format("two roundings, in both: {}", name),
             [c](const SumRecord& r) { return in_two(r, c, c); });
    }
    scaled(kFamily, "as float in place of fixed point", [](const SumRecord& r) -> std::int64_t {
      const double factor = std::ldexp(static_cast<double>(r.fixed.multiplier), r.fixed.shift - 31);
      return unit::requantize_real(r.sum, static_cast<float>(factor));
    });
    for (const int more : {1, -1})
      scaled(kFamily, fmt::format("the shift is one too {}", more > 0 ? "large" : "small"),
             [how, more](const SumRecord& r) {
               FixedFactor f = r.fixed;
               f.shift = std::clamp(f.shift + more, unit::kLeastShift, unit::kMostShift);
               return unit::requantize_fixed(how, r.sum, f);
             });
    scaled(kFamily, "the shift has the other sign", [how](const SumRecord& r) {
      FixedFactor f = r.fixed;
      f.shift = std::min(-f.shift, unit::kMostShift);
      return unit::requantize_fixed(how, r.sum, f);
    });
    scaled(kFamily,
           fmt::format("shifts of {} and {} count as {} and {}", unit::kLeastShift,
                       unit::kMostShift, unit::kLeastShift + 1, unit::kMostShift - 1),
           [how](const SumRecord& r) {
             FixedFactor f = r.fixed;
             f.shift = std::clamp(f.shift, unit::kLeastShift + 1, unit::kMostShift - 1);
             return unit::requantize_fixed(how, r.sum, f);
           });
    if (!two)
      scaled(kFamily, "the shift of the product has 5 bits: modulo 32", [](const SumRecord& r) {
        return cut(WideSum{r.sum} * r.fixed.multiplier, (31 - r.fixed.shift) % 32, Cut::half_up);
      });
    for (const int more : {1, -1})
      scaled(kFamily,
             fmt::format("what is added to round {}is {}", two ? "the second time " : "",
                         more > 0 ? "one in place of a half" : "a quarter in place of a half"),
             [two, more](const SumRecord& r) {
               return two ? with_half(cut(shifted_left(r) * r.fixed.multiplier, 31, Cut::half_up),
                                      std::max(-r.fixed.shift, 0), more, true)
                          : with_half(WideSum{r.sum} * r.fixed.multiplier, 31 - r.fixed.shift, more,
                                      false);
             });
  }

  void points() {
    constexpr const char* kFamily = "zero point";
    add(kFamily, "the zero point is not added", [](const Subject& s, const SumRecord& r) {
      return std::clamp<std::int64_t>(scaled_of(s, r), s.codes->low, s.codes->high);
    });
    add(kFamily, "the zero point is subtracted", [](const Subject& s, const SumRecord& r) {
      return std::clamp<std::int64_t>(scaled_of(s, r) - r.zero_point, s.codes->low, s.codes->high);
    });
    add(kFamily, "the zero point is added twice", [](const Subject& s, const SumRecord& r) {
      return clamped(s, r, scaled_of(s, r) + r.zero_point);
    });
    add(kFamily, "the zero point is added behind the clamp, modulo the code's bits",
        [](const Subject& s, const SumRecord& r) {
          return std::clamp<std::int64_t>(scaled_of(s, r), s.codes->low, s.codes->high) +
                 r.zero_point;
        });
    add(kFamily, "the zero point is added to the sum", [](const Subject& s, const SumRecord& r) {
      SumRecord with = r;
      with.sum =
          wrapped(static_cast<std::uint32_t>(r.sum) + static_cast<std::uint32_t>(r.zero_point));
      return std::clamp<std::int64_t>(scaled_of(s, with), s.codes->low, s.codes->high);
    });
    // Where a rounding sees it.
    if (s_.codes->how == Requantization::real) {
      add(kFamily, "the zero point is added in float32 before the rounding",
          [](const Subject& s, const SumRecord& r) {
            const float x = static_cast<float>(r.sum) * r.factor + static_cast<float>(r.zero_point);
            return std::clamp<std::int64_t>(cut_float(x, Cut::half_even), s.codes->low,
                                            s.codes->high);
          });
    } else if (s_.codes->how == Requantization::fixed_double) {
      add(kFamily, "the zero point is added before the last shift",
          [](const Subject& s, const SumRecord& r) {
            const int right = std::max(-r.fixed.shift, 0);
            const WideSum x = cut(shifted_left(r) * r.fixed.multiplier, 31, Cut::half_up);
            return std::clamp<std::int64_t>(
                cut(x + (WideSum{r.zero_point} << right), right, Cut::half_away), s.codes->low,
                s.codes->high);
          });
    }
  }

  void ends() {
    constexpr const char* kFamily = "clamp";
    const auto [least, most] = unit::ends_of_integers(*s_.to);
    add(kFamily, "codes are not clamped: modulo the code's bits",
        [](const Subject& s, const SumRecord& r) { return scaled_of(s, r) + r.zero_point; });
    const auto other = [&](std::string name, std::int32_t low, std::int32_t high) {
      if (low == s_.codes->low && high == s_.codes->high) return;
      add(kFamily, std::move(name), [low, high](const Subject& s, const SumRecord& r) {
        return std::clamp<std::int64_t>(scaled_of(s, r) + r.zero_point, low, high);
      });
    };
    other(fmt::format("clamped to {} and {}", least, most), least, most);
    if (s_.to->is_signed) other(fmt::format("clamped to {} and {}", -most, most), -most, most);
    const auto before = [&](std::string name, std::int32_t low, std::int32_t high) {
      add(kFamily, std::move(name), [low, high](const Subject& s, const SumRecord& r) {
        const std::int64_t held =
            std::clamp<std::int64_t>(scaled_of(s, r), s.codes->low, s.codes->high);
        return std::clamp<std::int64_t>(held + r.zero_point, low, high);
      });
    };
    before("clamped before the zero point is added, and behind it", s_.codes->low, s_.codes->high);
    if (least != s_.codes->low || most != s_.codes->high)
      before(fmt::format("clamped before the zero point is added, then to {} and {}", least, most),
             least, most);
    add(kFamily, "codes below the zero point become it", [](const Subject& s, const SumRecord& r) {
      return clamped(s, r, std::max<std::int64_t>(scaled_of(s, r), 0));
    });
  }

  void inputs() {
    add("bias", "the bias is not added", [](const Subject& s, const SumRecord& r) {
      SumRecord bare = r;
      bare.sum = r.bare;
      return code_of_sum(s, bare);
    });
    add("bias", "the bias is added twice", [](const Subject& s, const SumRecord& r) {
      SumRecord twice = r;
      twice.sum =
          wrapped(2 * static_cast<std::uint64_t>(r.sum) - static_cast<std::uint64_t>(r.bare));
      return code_of_sum(s, twice);
    });
    add("bias", "the sum with the bias saturates at 32 bits",
        [](const Subject& s, const SumRecord& r) {
          const std::int64_t bias =
              wrapped(static_cast<std::uint32_t>(r.sum) - static_cast<std::uint32_t>(r.bare));
          SumRecord held = r;
          held.sum = static_cast<std::int32_t>(
              std::clamp<std::int64_t>(r.bare + bias, INT32_MIN, INT32_MAX));
          return code_of_sum(s, held);
        });
  }

  const Subject s_;
  std::vector<Rule> rules_;
};

}  // namespace

std::vector<Rule> epilogue_rules(const Subject& s) {
  return s.codes ? EpilogueRules(s).make() : std::vector<Rule>();
}

}  // namespace numemu::oracle
