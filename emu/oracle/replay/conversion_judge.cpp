#include "emu/oracle/replay/conversion_judge.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <filesystem>
#include <set>
#include <utility>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {

namespace {

using recording::Conversion;
using recording::CvtRounding;
using recording::Element;
using recording::ElementInfo;
using recording::Specials;

Rounding rounding_of(const Conversion& c, const ConversionRule& rule) {
  switch (c.rounding) {
    case CvtRounding::rz:
      return {.mode = RoundingMode::rtz};
    case CvtRounding::rna:
      return {.mode = RoundingMode::rna};
    case CvtRounding::rp:
      return {.mode = RoundingMode::rup};
    case CvtRounding::rs:
      return {RoundingMode::sr, StochasticVariant::a, rule.random_bits};
    default:
      return {};
  }
}

/// Whether a number beyond the largest becomes the largest: rz stays below infinity, but ue8m0
/// leaves its range to NaN.
bool stays_finite(const Conversion& c, const ConversionRule& rule) {
  const bool ieee = info(c.d).specials == Specials::ieee;
  return c.satfinite || (ieee && c.rounding == CvtRounding::rz) ||
         (c.rounding == CvtRounding::rs && rule.stochastic_stays_finite);
}

/// Infinity; NaN where there is none; the largest number where there is neither.
std::uint64_t beyond(const Format& d) {
  return d.has_infinity() ? d.infinity_code() : d.has_nan() ? d.nan_code() : d.largest_code();
}

std::uint64_t magnitude_code(const Conversion& c, Value x, std::uint32_t in,
                             const ConversionRule& rule) {
  const Format& d = element_format(c.d);
  x.negative = false;
  if (x.kind == Class::infinite)
    return c.satfinite && rule.infinity_saturates ? d.largest_code() : beyond(d);
  if (x.kind == Class::zero) return 0;
  // A scale has no zero: code 0 is 2^-127, which everything below takes.
  const bool scale = info(c.d).specials == Specials::exponent;
  if (scale && x.exponent + static_cast<int>(std::bit_width(x.significand)) <= -info(c.d).bias)
    return 0;
  const Encoded code = encode(d, x, rounding_of(c, rule), Overflow::saturate, random_bits(c, in));
  const bool overflows = (code.flags & kOverflow) != 0;
  return overflows && !stays_finite(c, rule) ? beyond(d) : code.code;
}

std::uint64_t nan_code(const Conversion& c, const Value& x, const ConversionRule& rule) {
  constexpr int kPayloadBits = 52;
  const Format& d = element_format(c.d);
  const ElementInfo f = info(c.d);
  if (!d.has_nan()) return d.largest_code();
  const std::uint64_t ones = (std::uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  const std::uint64_t sign = x.negative ? d.sign_bit() : 0;
  if (rule.nan == NanCode::signed_ones) return sign | ones;
  if (f.specials != Specials::ieee || rule.nan == NanCode::ones) return ones;
  const std::uint64_t quiet = std::uint64_t{1} << (f.mantissa_bits - 1);
  if (rule.nan == NanCode::quiet) return d.infinity_code() | quiet;
  const std::uint64_t payload = x.significand >> (kPayloadBits - f.mantissa_bits);
  const std::uint64_t kept =
      sign | d.infinity_code() | payload | (rule.nan == NanCode::payload ? quiet : 0);
  // rna to tf32 is an addition and a mask in the SASS of CUDA 13.0 (sm_80 to sm_90): the mask cuts
  // a payload, and .satfinite takes one off what is infinite or NaN then.
  const bool clamped = c.satfinite && c.rounding == CvtRounding::rna && rule.nan == NanCode::cut;
  return kept - (clamped ? 1 : 0);
}

std::uint64_t code_of(const Conversion& c, std::uint32_t in, const ConversionRule& rule) {
  const Format &a = element_format(c.a), &d = element_format(c.d);
  const Value x = decode(a, in >> a.container_shift & a.code_mask());
  if (x.kind == Class::nan) return nan_code(c, x, rule);
  const std::uint64_t magnitude = magnitude_code(c, x, in, rule);
  if (!x.negative) return magnitude;
  if (info(c.d).specials == Specials::exponent) {
    if (x.kind == Class::zero || rule.negative == NegativeScale::magnitude) return magnitude;
    return rule.negative == NegativeScale::nan ? d.nan_code() : 0;
  }
  if (c.relu) return magnitude == 0 && rule.relu_keeps_minus_zero ? d.sign_bit() : 0;
  return d.sign_bit() | magnitude;
}

/// The first rule and copies of it, each with one change.
class Rivals {
 public:
  explicit Rivals(ConversionRule first) : rules_{std::move(first)} {}

  template <class Change>
  void add(const char* name, const char* family, const Change& change) {
    ConversionRule rival = rules_.front();
    rival.name = name;
    rival.family = family;
    change(rival);
    rules_.push_back(std::move(rival));
  }
  std::vector<ConversionRule> take() { return std::move(rules_); }

 private:
  std::vector<ConversionRule> rules_;
};

/// cvt.f32.bf16 is a shift and cvt.rna.tf32 an addition and a mask: no unit sees the NaN.
bool is_lowered(const Conversion& c) {
  return (c.d == Element::f32 && c.a == Element::bf16) || c.rounding == CvtRounding::rna;
}

/// Random bits of a number: PTX ISA, "cvt", rbits.
int documented_random_bits(Element d) {
  return d == Element::f16 ? 13 : d == Element::e2m1 ? 8 : 16;
}

void add_nan_rivals(Rivals& rivals, const Conversion& c) {
  if (info(c.d).specials == Specials::finite || c.d == Element::ue8m0 ||
      info(c.a).specials == Specials::finite)
    return;
  const auto nan = [&](const char* name, NanCode code) {
    rivals.add(name, "conversion-nan", [=](ConversionRule& r) { r.nan = code; });
  };
  const bool ieee = info(c.d).specials == Specials::ieee;
  if (ieee) nan("NaN becomes positive, top mantissa bit only", NanCode::quiet);
  // PTX ISA: with .relu the NaN is canonical.
  if (c.relu || !info(c.a).has_sign) return;
  nan("NaN keeps its sign, all ones", NanCode::signed_ones);
  if (!ieee) return;
  nan("NaN keeps sign and payload, made quiet", NanCode::payload);
  if (is_lowered(c)) {
    nan("NaN becomes positive, all ones", NanCode::ones);
  } else {
    nan("NaN keeps sign and upper payload as they are", NanCode::cut);
  }
}

}  // namespace

std::uint32_t converted(const Conversion& c, std::uint32_t in, const ConversionRule& rule) {
  const std::uint64_t code = code_of(c, in, rule) << element_format(c.d).container_shift;
  const bool low = c.d == Element::tf32 && !rule.tf32_low_zero;
  return static_cast<std::uint32_t>(code) | (low ? in & 0x1fffU : 0);
}

std::vector<ConversionRule> conversion_rules(const Conversion& c) {
  ConversionRule first{.name = "PTX ISA, cvt", .family = ""};
  if (is_lowered(c)) first.nan = NanCode::cut;
  if (c.rounding == CvtRounding::rs) first.random_bits = documented_random_bits(c.d);
  Rivals rivals(first);

  add_nan_rivals(rivals, c);
  const bool source_has_infinity = info(c.a).specials == Specials::ieee;
  if (c.satfinite && source_has_infinity && info(c.d).specials != Specials::finite)
    rivals.add("infinity is not saturated", "conversion-infinity",
               [](ConversionRule& r) { r.infinity_saturates = false; });
  if (c.relu)
    rivals.add(".relu keeps -0", "conversion-relu-zero",
               [](ConversionRule& r) { r.relu_keeps_minus_zero = true; });
  if (c.d == Element::ue8m0) {
    rivals.add("a negative number is scale 0", "conversion-negative-scale",
               [](ConversionRule& r) { r.negative = NegativeScale::zero; });
    rivals.add("a negative number is NaN", "conversion-negative-scale",
               [](ConversionRule& r) { r.negative = NegativeScale::nan; });
  }
  if (c.rounding == CvtRounding::rs && c.d == Element::e2m1)
    rivals.add("sixteen random bits", "conversion-random-bits",
               [](ConversionRule& r) { r.random_bits = 16; });
  if (c.rounding == CvtRounding::rs && !c.satfinite)
    rivals.add("overflow ends at the largest number", "conversion-random-overflow",
               [](ConversionRule& r) { r.stochastic_stays_finite = true; });
  if (c.d == Element::tf32)
    rivals.add("the low 13 bits stay", "conversion-tf32-low-bits",
               [](ConversionRule& r) { r.tf32_low_zero = false; });
  return rivals.take();
}

namespace {

using recording::Conversion;

/// A row of the table, whose other columns must agree with the conversion.
struct Run {
  const Conversion* conversion;
  std::string unit;
  std::vector<std::uint8_t> records;
  std::vector<std::uint32_t> in;
  std::uint64_t hash = 0;
  std::int64_t lanes = 0;
};

std::uint64_t number(const TableRow& row, const char* column, int base) {
  const std::string& digits = row.text(column);
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, base);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    throw Error(fmt::format("{}: {}: expected a number in base {}, found '{}'", row.where, column,
                            base, digits));
  return value;
}

Run read_run(const std::string& folder, const TableRow& row) {
  const int found = recording::find_conversion(row.text("instr"));
  if (found < 0)
    throw Error(
        fmt::format("{}: expected a known conversion, found '{}'", row.where, row.text("instr")));
  const Conversion& c = recording::conversions()[static_cast<std::size_t>(found)];
  row.expect("from", info(c.a).name);
  row.expect("to", info(c.d).name);
  row.expect("record_bytes", std::to_string(record_bytes(c)));
  const std::int64_t count = row.number("count");
  if (count == 0 || count > recording::kRecordedBytes)
    throw Error(fmt::format("{}: count: expected 1 to {}, found {}", row.where,
                            recording::kRecordedBytes, count));
  Run run{&c, row.text("unit"), {}, {}, number(row, "hash", 16), row.number("lanes")};
  run.records = read_exactly(path_below(folder, row, row.text("file")), count * record_bytes(c),
                             fmt::format("{} records of {} bytes", count, record_bytes(c)));
  run.in = conversion_inputs(c, number(row, "seed", 10));
  row.expect("inputs", std::to_string(run.in.size()));
  return run;
}

/// Inputs and outputs, as they stand in their containers.
Recording recording_of(const Run& run) {
  const Conversion& c = *run.conversion;
  Layout layout = {{"in", 8 * info(c.a).bytes},
                   {.name = "out", .bits = 8 * info(c.d).bytes, .result = true}};
  Records records(layout, static_cast<std::int64_t>(run.records.size()) / record_bytes(c));
  const std::uint8_t* at = run.records.data();
  for (std::size_t i = 0; i < static_cast<std::size_t>(records.size); ++i) {
    for (std::size_t f = 0; f < layout.size(); ++f) {
      records.columns[f][i] = recording::load_code(at, layout[f].bits / 8);
      at += layout[f].bits / 8;
    }
  }
  return {std::move(layout), std::move(records), nullptr};
}

ConversionReplay replay_of(const Run& run, const Recording& records, const ConversionRule& rule) {
  const Conversion& c = *run.conversion;
  const Rule by_rule{.family = rule.family, .name = rule.name, .compute = [&](Records& r) {
                       for (std::size_t i = 0; i < r.columns[0].size(); ++i)
                         r.columns[1][i] =
                             converted(c, static_cast<std::uint32_t>(r.columns[0][i]), rule);
                     }};
  ConversionReplay v{.conversion = &c,
                     .unit = run.unit,
                     .records = records.judged({}, by_rule),
                     .lanes = run.lanes};
  v.whole_run = v.records.holds() && run_hash(c, run.in, rule) == run.hash;
  return v;
}

}  // namespace

std::uint64_t run_hash(const Conversion& c, const std::vector<std::uint32_t>& in,
                       const ConversionRule& rule) {
  std::uint64_t hash = recording::kFnvBasis;
  for (const std::uint32_t x : in) {
    const std::uint32_t code = converted(c, x, rule);
    std::uint32_t answer = 0;
    for (int lane = 0; lane < c.lanes(); ++lane) answer |= code << (answer_bits(c) * lane);
    std::uint8_t bytes[4];
    recording::store_code(bytes, 4, answer);
    hash = recording::fnv1a(hash, bytes, sizeof bytes);
  }
  return hash;
}

std::vector<ConversionReplay> judge_conversions(const std::string& folder,
                                                const std::string& only) {
  const std::string table = folder + "/conversions.tsv";
  if (!std::filesystem::exists(table)) return {};
  std::vector<TableRow> rows;
  std::set<std::string> seen;
  for (TableRow& row : read_table_rows(table)) {
    const std::string& name = row.text("instr");
    if (!seen.insert(name).second)
      throw Error(fmt::format("{}: {} appears twice", row.where, name));
    if (("cvt " + name).find(only) != std::string::npos) rows.push_back(std::move(row));
  }
  std::vector<std::vector<ConversionReplay>> of_row(rows.size());
  for_each_part(rows.size(), [&](std::size_t i) {
    const Run run = read_run(folder, rows[i]);
    const Recording records = recording_of(run);
    for (const ConversionRule& rule : conversion_rules(*run.conversion))
      of_row[i].push_back(replay_of(run, records, rule));
  });
  std::vector<ConversionReplay> all;
  for (const auto& some : of_row) all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace numemu::oracle
