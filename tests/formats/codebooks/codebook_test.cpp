// Codebooks: every rounding mode against exact rationals, hostile files, and their records.
#include "formats/codebooks/codebook.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "formats/analysis/cells.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/rational.hpp"

namespace numemu::codebook_test {
namespace {

using oracle::Rational;
using test::TemporaryFolder;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMost = std::numeric_limits<double>::max();
constexpr RoundingMode kDeterministic[] = {RoundingMode::rne, RoundingMode::rna,
                                           RoundingMode::rtz, RoundingMode::rup,
                                           RoundingMode::rdn, RoundingMode::rodd};

std::string file_of(const TemporaryFolder& folder, const std::vector<double>& entries,
                    const std::string& name = "book.npy") {
  const std::string path = folder.path() + "/" + name;
  write_npy(path, ArrayType::float64, {static_cast<std::int64_t>(entries.size())}, entries.data());
  return path;
}

const Format* format_of(const TemporaryFolder& folder, const std::vector<double>& entries) {
  return &find_format("codebook(" + file_of(folder, entries) + ")");
}

Rational exact(double x) { return Rational::of(x); }

// Rounding by the words of docs/formats.md over exact rationals; index of the chosen entry.
Encoded expected(const std::vector<double>& entries, double input, RoundingMode mode) {
  const Rational x = exact(input);
  const auto count = static_cast<std::uint64_t>(entries.size());
  if (x < exact(entries.front())) return {0, kOverflow | kInexact};
  if (x > exact(entries.back())) return {count - 1, kOverflow | kInexact};
  std::uint64_t i = 0;
  while (i + 1 < count && exact(entries[i + 1]) <= x) ++i;
  const Rational low = exact(entries[i]);
  if (low == x) return {i, 0};
  const Rational high = exact(entries[i + 1]);
  const Rational to_low = x - low, to_high = high - x;
  const std::uint64_t even = i % 2 == 0 ? i : i + 1, odd = i % 2 == 0 ? i + 1 : i;
  std::uint64_t code = 0;
  switch (mode) {
    case RoundingMode::rne:
      code = to_low == to_high ? even : to_low < to_high ? i : i + 1;
      break;
    case RoundingMode::rna:
      code = to_low == to_high ? (x < 0 ? i : i + 1) : to_low < to_high ? i : i + 1;
      break;
    case RoundingMode::rtz:
      code = abs(low) == abs(high) ? even : abs(low) < abs(high) ? i : i + 1;
      break;
    case RoundingMode::rup:
      code = i + 1;
      break;
    case RoundingMode::rdn:
      code = i;
      break;
    default:
      code = odd;
  }
  return {code, kInexact};
}

std::vector<std::vector<double>> books() {
  std::vector<std::vector<double>> list = {
      {0},
      {-3, 5},
      {-1, 1},
      {-2.5, -1, 0, 0.1, 7},
      {1, 2, 4, 8, 16},
      {-9, -3, -1},
      {-1, -0.25, 0.5, 3},
      {-kMost, -1, 0x1p-1074, 1, kMost},
      {-0x1p-1074, 0, 0x1p-1074, 0x1p-1022},
      {1, std::nextafter(1.0, 2.0), 1.5},
  };
  std::mt19937_64 random(3);
  std::vector<double> many;
  for (int i = 0; i < 37; ++i)
    many.push_back(std::ldexp(static_cast<double>(random() >> 11) - 0x1p52,
                              static_cast<int>(random() % 40) - 70));
  std::sort(many.begin(), many.end());
  list.push_back(many);
  return list;
}

std::vector<double> probes(const std::vector<double>& entries) {
  std::vector<double> list = {0.0, -0.0, 0x1p-1074, -0x1p-1074, 0.3, -0.3, kMost, -kMost};
  const auto around = [&](double x) {
    for (const double y : {x, std::nextafter(x, -kInf), std::nextafter(x, kInf)})
      if (std::isfinite(y)) list.push_back(y);
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    around(entries[i]);
    if (i > 0) {
      around(std::midpoint(entries[i - 1], entries[i]));
      around(entries[i - 1] * 0.75 + entries[i] * 0.25);
    }
  }
  return list;
}

TEST_CASE("codebook: every mode equals the search over exact rationals", "[fast]") {
  const TemporaryFolder folder;
  for (const std::vector<double>& entries : books()) {
    const Format& f = *format_of(folder, entries);
    int mismatches = 0;
    for (const double x : probes(entries)) {
      for (const RoundingMode mode : kDeterministic) {
        for (const Overflow overflow : {Overflow::saturate, Overflow::propagate, Overflow::ieee}) {
          const Encoded want = expected(entries, x, mode);
          const Encoded got = encode(f, value_of(x), {.mode = mode}, overflow);
          if (got.code == want.code && got.flags == want.flags) continue;
          ++mismatches;
          UNSCOPED_INFO(entries.size()
                        << " entries, x " << x << " " << to_string(Rounding{.mode = mode}) << ": "
                        << got.code << ", expected " << want.code);
        }
      }
    }
    CHECK(mismatches == 0);
  }
}

TEST_CASE("codebook: ties of inexact quotients are decided by what the quotient leaves", "[fast]") {
  const TemporaryFolder folder;
  const Format& f = *format_of(folder, {0, 1, 2, 3});
  // 1.5 + something below the 64th bit is not a tie; -0.5 lies outside.
  const Value above{Class::finite, false, true, -1, 3}, tie{Class::finite, false, false, -1, 3};
  CHECK(encode(f, tie, {}, Overflow::saturate).code == 2);
  CHECK(encode(f, {Class::finite, false, false, -1, 1}, {}, Overflow::saturate).code == 0);
  CHECK(encode(f, {Class::finite, false, true, -1, 1}, {}, Overflow::saturate).code == 1);
  CHECK(encode(f, above, {}, Overflow::saturate).code == 2);
  const Value at_entry{Class::finite, false, true, 0, 2};
  CHECK(encode(f, at_entry, {.mode = RoundingMode::rup}, Overflow::saturate).code == 3);
  CHECK(encode(f, at_entry, {}, Overflow::saturate).flags == kInexact);
  // Values far outside the exponents of doubles.
  const Value tiny{Class::finite, false, false, -2000000000, 1};
  CHECK(encode(f, tiny, {}, Overflow::saturate).code == 0);
  CHECK(encode(f, tiny, {.mode = RoundingMode::rup}, Overflow::saturate).code == 1);
  const Value huge{Class::finite, true, false, 2000000000, 1};
  CHECK(encode(f, huge, {}, Overflow::ieee).code == 0);
}

TEST_CASE("codebook: sr goes away from zero as often as the formula says", "[fast]") {
  const TemporaryFolder folder;
  const Format& f = *format_of(folder, {-3, -1, 0.5, 2, 9});
  struct Case {
    double x;
    std::uint64_t down, up;
    double d;  // the fraction of the gap
  };
  for (const Case& c : {Case{0.875, 2, 3, 0.25}, Case{-1.5, 1, 0, 0.25}, Case{0.125, 1, 2, 0.75},
                        Case{-0.25, 2, 1, 0.5}, Case{0.0, 1, 2, 2.0 / 3}, Case{3, 3, 4, 1.0 / 7}}) {
    for (const char* text : {"sr(8,a)", "sr(8,b)", "sr(8)", "sr(8,odd)"}) {
      int ups = 0, others = 0;
      for (std::uint32_t r = 0; r < 256; ++r) {
        const Encoded got = encode(f, value_of(c.x), parse_rounding(text), Overflow::saturate, r);
        ups += got.code == c.up;
        others += got.code != c.up && got.code != c.down;
      }
      INFO(c.x << " " << text);
      CHECK(others == 0);
      const bool floored = std::string(text) == "sr(8,a)";
      CHECK(ups == static_cast<int>(floored ? std::floor(c.d * 256) : std::lround(c.d * 256)));
    }
  }
}

TEST_CASE("codebook: specials saturate", "[fast]") {
  const TemporaryFolder folder;
  const Format& f = *format_of(folder, {1, 2, 4});
  for (const Overflow overflow : {Overflow::saturate, Overflow::propagate, Overflow::ieee}) {
    const auto of = [&](double x) { return encode(f, value_of(x), {}, overflow); };
    CHECK((of(kInf).code == 2 && of(kInf).flags == (kOverflow | kInexact)));
    CHECK((of(-kInf).code == 0 && of(-kInf).flags == (kOverflow | kInexact)));
    CHECK((of(kNan).code == 2 && of(kNan).flags == kInvalid));
    CHECK((of(-7).code == 0 && of(-7).flags == (kOverflow | kInexact)));
    CHECK((of(-0.0).code == 0 && of(-0.0).flags == (kOverflow | kInexact)));
  }
}

TEST_CASE("codebook: the record, its values and its users", "[fast]") {
  const TemporaryFolder folder;
  const std::vector<double> entries = {-1, -0.5, 0, 0.5, 1};
  const std::string path = file_of(folder, entries);
  const Format& f = find_format("codebook(" + path + ")");
  CHECK(&find_format("codebook(" + path + ")") == &f);
  CHECK(f.name == "codebook(" + path + ")");
  CHECK((f.bits == 3 && f.last_code() == 4 && f.largest_code() == 4 && f.largest_code(true) == 0));
  CHECK((f.has_zero() && !f.has_nan() && !f.has_infinity() && !f.has_negative_zero()));
  CHECK(f.sign_bit() == 0);
  CHECK(finite_values(f) == entries);
  CHECK((largest_value(f) == 1 && smallest_value(f) == 0.5 && smallest_normal(f) == 0.5));
  CHECK(decode(f, 2).kind == Class::zero);
  CHECK(decode(f, 5).kind == Class::nan);  // no code
  CHECK(decode_table(f)[3] == 0.5F);
  CHECK(aliases_of(f).empty());
  const float x[] = {0.4F, -9.0F, 0.75F};
  std::uint8_t codes[3];
  const FlagCounts counts = quantize_codes({.format = &f}, x, 3, 1, codes);
  CHECK((codes[0] == 3 && codes[1] == 0 && codes[2] == 4));
  CHECK(counts == FlagCounts{.elements = 3, .inexact = 3, .overflow = 1});

  // Changed contents under the same name are another format; the first stays what it was.
  file_of(folder, {1, 2});
  const Format& changed = find_format("codebook(" + path + ")");
  CHECK(&changed != &f);
  CHECK((changed.bits == 1 && !changed.has_zero()));
  CHECK(decode_table(changed)[1] == 2.0F);
  CHECK(finite_values(f) == entries);
  CHECK(format_of(folder, {7})->bits == 1);
  CHECK_THROWS_AS(smallest_value(*format_of(folder, {-2, -1})), Error);
  CHECK(format_of(folder, std::vector<double>{-0.0, 1})->codebook->value(0).negative == false);
  std::vector<double> most(Codebook::kMostEntries);
  for (std::size_t i = 0; i < most.size(); ++i) most[i] = static_cast<double>(i);
  CHECK(format_of(folder, most)->bits == 16);
  CHECK(encode(*format_of(folder, most), value_of(40000.5), {}, Overflow::saturate).code == 40000);
}

TEST_CASE("codebook: cells are the preimages of encode", "[fast]") {
  const TemporaryFolder folder;
  for (const std::vector<double>& entries :
       {std::vector<double>{-2.5, -1, 0, 0.5, 7}, {-1, 1}, {-3, 5}, {-5, 3}, {-2, -1, 4}}) {
    const Format& f = *format_of(folder, entries);
    for (const RoundingMode mode : kDeterministic) {
      const std::vector<Cell> list = cells(f, {.mode = mode}, true);
      int mismatches = 0;
      for (const double x : probes(entries)) {
        const Encoded code = encode(f, value_of(x), {.mode = mode}, Overflow::saturate);
        const auto inside = [&](const Cell& cell, bool next_closed) {
          return (cell.low_closed ? x >= cell.low : x > cell.low) &&
                 (next_closed ? x < cell.high : x <= cell.high);
        };
        for (std::size_t i = 0; i < list.size(); ++i) {
          const bool next_closed = i + 1 < list.size() && list[i + 1].low_closed;
          mismatches += inside(list[i], next_closed) != (code.code == i);
        }
      }
      INFO(entries.size() << " entries, " << to_string(Rounding{.mode = mode}));
      CHECK(mismatches == 0);
    }
  }
}

TEST_CASE("codebook: bad names and files are refused in one line", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [](const std::string& name) {
    return test::message_of([&] { find_format(name); });
  };
  const auto entries_refused = [&](const std::vector<double>& entries) {
    return refused("codebook(" + file_of(folder, entries) + ")");
  };
  const std::string path = folder.path() + "/book.npy";
  CHECK(refused("codebook()") == "format 'codebook()': expected codebook(FILE.npy)");
  CHECK(refused("codebook(x.npy") == "format 'codebook(x.npy': expected codebook(FILE.npy)");
  CHECK(refused("codebook(" + folder.path() + "/none.npy)").find("none.npy") != std::string::npos);
  CHECK(entries_refused({}) == path + ": 0 entries, expected 1 to 65536 for a codebook");
  CHECK(entries_refused({0, kNan}) == path + ": entry 1 is NaN, expected a finite number");
  CHECK(entries_refused({-kInf, 0}) == path + ": entry 0 is infinite, expected a finite number");
  CHECK(entries_refused({0, 2, 2}) ==
        path + ": entry 2 is 2, expected more than 2 before it (ascending)");
  CHECK(entries_refused({-0.0, 0.0}) ==
        path + ": entry 1 is 0, expected more than -0 before it (ascending)");
  CHECK(entries_refused(std::vector<double>(65537)).find("65537 entries") != std::string::npos);
  CHECK(entries_refused(std::vector<double>(80000)).find("at most 65536") != std::string::npos);
  const float narrow[] = {0, 1};
  write_npy(path, ArrayType::float32, {2}, narrow);
  CHECK(refused("codebook(" + path + ")") ==
        path + ": dtype float32, expected float64 for a codebook");
  const double square[] = {0, 1, 2, 3};
  write_npy(path, ArrayType::float64, {2, 2}, square);
  CHECK(refused("codebook(" + path + ")") ==
        path + ": shape [2, 2], expected one axis for a codebook");
  test::write_file(path, "no array");
  CHECK(refused("codebook(" + path + ")").find(path) == 0);
}

}  // namespace
}  // namespace numemu::codebook_test
