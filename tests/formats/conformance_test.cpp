// The page of other libraries is the one generated, and every claim about numemu in it is true.
#include "formats/conformance.hpp"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "formats/blocks/block_format.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::conformance_test {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint64_t code_of(const Format& f, float x, const ConversionClaim::Flags& flags) {
  return encode(f, value_of(x), flags.rounding, flags.overflow).code;
}

// "?" where no outcome has a word; `negative` is the input's sign.
std::string outcome(const Format& f, std::uint64_t code, bool negative) {
  const Value v = decode(f, code);
  if (v.kind == Class::nan) return to_string(Outcome::nan);
  if (v.kind == Class::zero) return to_string(v.negative ? Outcome::minus_zero : Outcome::zero);
  if (v.negative != (negative && f.is_signed)) return "?";
  if (v.kind == Class::infinite) return to_string(Outcome::infinity);
  if (code == f.largest_code(negative)) return to_string(Outcome::largest);
  return std::abs(to_double(v)) == smallest_value(f) ? to_string(Outcome::smallest) : "?";
}

// Where `format` under `flags` departs from the claim's six columns; "" if nowhere.
std::string departure(const ConversionClaim& claim, const ConversionClaim::Flags& flags) {
  const Format& f = find_format(claim.format);
  std::string text;
  const auto check = [&](const char* column, float x, Outcome claimed) {
    const std::string got = outcome(f, code_of(f, x, flags), std::signbit(x));
    if (got != to_string(claimed))
      text += std::string(column) + ": " + got + ", the page says " + to_string(claimed) + "; ";
  };
  const auto smallest = static_cast<float>(smallest_value(f));
  check("beyond", kMost, claim.beyond);
  check("Inf", kInfinity, claim.infinity);
  check("NaN", std::bit_cast<float>(0x7fc00000u), claim.nan);
  check("-0", -0.0F, claim.minus_zero);
  check("half", smallest / 2, claim.half_smallest);
  check("smallest", smallest, claim.smallest);
  if (f.is_signed) {
    check("beyond", -kMost, claim.beyond);
    check("Inf", -kInfinity, claim.infinity);
  }
  return text;
}

bool same_number(double x, double y) {
  return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
}

std::string name_of(const ConversionClaim& claim) {
  return claim.origin.library + ", " + claim.origin.operation + ", " + claim.format;
}

TEST_CASE("conformance: docs/conformance.md is the generated page", "[fast]") {
  // To rewrite it: ./numemu formats --conformance > docs/conformance.md
  CHECK(test::read_file(NUMEMU_SOURCE "/docs/conformance.md") == conformance_page());
}

TEST_CASE("conformance: the flags of a row give its outcomes", "[fast]") {
  int compared = 0;
  for (const ConversionClaim& claim : conversion_claims()) {
    if (!claim.flags || claim.origin.evidence == Evidence::recalled) continue;
    INFO(name_of(claim));
    CHECK(departure(claim, *claim.flags) == "");
    ++compared;
  }
  CHECK(compared >= 40);
}

TEST_CASE("conformance: a row without flags has none", "[fast]") {
  int compared = 0;
  for (const ConversionClaim& claim : conversion_claims()) {
    if (claim.flags || claim.origin.evidence == Evidence::recalled) continue;
    const Format& f = find_format(claim.format);
    INFO(name_of(claim));
    for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna}) {
      for (const Overflow overflow : {Overflow::saturate, Overflow::propagate, Overflow::ieee}) {
        const ConversionClaim::Flags flags{{.mode = mode}, overflow};
        const auto input = static_cast<float>(claim.input);
        const double output = to_double(decode(f, code_of(f, input, flags)));
        INFO(to_string(flags.rounding) << " " << to_string(overflow));
        CHECK((!same_number(output, claim.output) || departure(claim, flags) != ""));
      }
    }
    ++compared;
  }
  CHECK(compared >= 15);
}

TEST_CASE("conformance: a wrong column or flag is noticed", "[fast]") {
  for (const ConversionClaim& claim : conversion_claims()) {
    if (claim.origin.library != "ONNX" || !claim.flags || claim.format != "float8_e4m3fn") continue;
    ConversionClaim wrong = claim;
    wrong.half_smallest = Outcome::smallest;
    CHECK(departure(wrong, *claim.flags) == "half: 0, the page says smallest; ");
    const bool saturates = claim.flags->overflow == Overflow::saturate;
    CHECK(departure(claim, {{}, saturates ? Overflow::ieee : Overflow::saturate}) != "");
  }
}

TEST_CASE("conformance: every row names its source, known formats, blocks and rules", "[fast]") {
  const auto sourced = [](const Origin& origin) {
    return !origin.library.empty() && !origin.version.empty() && !origin.operation.empty() &&
           !origin.source.empty();
  };
  for (const ConversionClaim& claim : conversion_claims()) {
    INFO(name_of(claim));
    CHECK(sourced(claim.origin));
    CHECK_NOTHROW(find_format(claim.format));
    CHECK((claim.flags || !claim.note.empty()));
    CHECK((claim.note + claim.origin.source + claim.origin.operation).find('|') ==
          std::string::npos);
  }
  for (const BlockClaim& claim : block_claims()) {
    INFO(claim.origin.library << ", " << claim.origin.operation);
    CHECK(sourced(claim.origin));
    CHECK(!claim.note.empty());
    for (const std::string& block : claim.blocks) CHECK_NOTHROW(find_block_format(block));
    const std::string rule = NUMEMU_SOURCE "/formats/scaling/rules/" + claim.rule + ".cpp";
    CHECK((claim.rule.empty() || std::filesystem::exists(rule)));
  }
}

}  // namespace
}  // namespace numemu::conformance_test
