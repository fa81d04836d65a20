// Reads conformance.def and writes its rows as a page of tables, one section per library.
#include "formats/conformance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "formats/joined.hpp"

namespace numemu {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

constexpr std::string_view kIntroduction =
    R"(<!-- Which numemu flags do what another library does; written by numemu formats --conformance. -->
# Conformance with other libraries

This page lists how libraries convert float32 numbers that a format cannot represent, and the flags of `numemu encode` that give the same
results. It is generated from `formats/conformance.def`, and a test compares the two:
```
./numemu formats --conformance > docs/conformance.md
```

Columns: the largest float32 number (*beyond*); *Inf*, *NaN*, *-0*; *half* of the smallest positive value, which shows the tie rule; the
*smallest* positive value itself (0: subnormals are flushed). `largest` is the largest finite value. Signs follow the input unless
stated; the sign and the payload of a NaN are not compared. Other numbers round by the rounding flag.

Evidence: **documented** in a text of the library; **read** in its source; **recalled** from memory, not tested. For the other rows with
flags, a test encodes these inputs and compares. For rows without flags, a test shows that no rounding to nearest with any overflow mode
gives all results. The tests prove numemu's side; the evidence covers the library's, for that version.
)";

std::string flags_text(const ConversionClaim& claim) {
  if (!claim.flags) return "none";
  return fmt::format("`--format {} --rounding {} --overflow {}`", claim.format,
                     to_string(claim.flags->rounding), to_string(claim.flags->overflow));
}

std::string value_text(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x < 0 ? "-Inf" : "Inf";
  constexpr double kShort = 0x1p-6;  // below, hexadecimal shows the power of two
  return x != 0 && std::abs(x) < kShort ? fmt::format("{:a}", x) : fmt::format("{}", x);
}

std::string note_text(const ConversionClaim& claim) {
  if (claim.flags) return claim.note;
  return fmt::format("{} ({} gives {})", claim.note, value_text(claim.input),
                     value_text(claim.output));
}

std::string row(const ConversionClaim& c) {
  return fmt::format("| {}; {} | `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {}: {} |\n",
                     c.origin.operation, c.origin.version, c.format, to_string(c.beyond),
                     to_string(c.infinity), to_string(c.nan), to_string(c.minus_zero),
                     to_string(c.half_smallest), to_string(c.smallest), flags_text(c), note_text(c),
                     to_string(c.origin.evidence), c.origin.source);
}

std::string row(const BlockClaim& c) {
  const std::string flags = c.rule.empty() ? "none"
                                           : fmt::format("`--scale-rule {} --rounding {}`", c.rule,
                                                         to_string(*c.rounding));
  return fmt::format("| {}; {}; {} | `{}` | {} | {} | {}: {} |\n", c.origin.library,
                     c.origin.version, c.origin.operation, joined(c.blocks, "` `"), flags, c.note,
                     to_string(c.origin.evidence), c.origin.source);
}

std::vector<std::string> libraries() {
  std::vector<std::string> names;
  for (const ConversionClaim& claim : conversion_claims())
    if (std::find(names.begin(), names.end(), claim.origin.library) == names.end())
      names.push_back(claim.origin.library);
  return names;
}

}  // namespace

std::string to_string(Outcome outcome) {
  constexpr std::string_view kNames[] = {"largest", "Inf", "NaN", "0", "-0", "smallest"};
  return std::string(kNames[static_cast<std::size_t>(outcome)]);
}

std::string to_string(Evidence evidence) {
  constexpr std::string_view kNames[] = {"documented", "read", "recalled"};
  return std::string(kNames[static_cast<std::size_t>(evidence)]);
}

const std::vector<ConversionClaim>& conversion_claims() {
  static const std::vector<ConversionClaim> claims = {
#define NUMEMU_SAME(library, version, operation, format, beyond, infinity, nan, minus_zero, half, \
                    smallest, rounding, overflow, note, grade, source)                            \
  ConversionClaim{{library, version, operation, Evidence::grade, source},                         \
                  #format,                                                                        \
                  Outcome::beyond,                                                                \
                  Outcome::infinity,                                                              \
                  Outcome::nan,                                                                   \
                  Outcome::minus_zero,                                                            \
                  Outcome::half,                                                                  \
                  Outcome::smallest,                                                              \
                  ConversionClaim::Flags{parse_rounding(#rounding), Overflow::overflow},          \
                  0,                                                                              \
                  0,                                                                              \
                  note},
#define NUMEMU_DIFFERS(library, version, operation, format, beyond, infinity, nan, minus_zero, \
                       half, smallest, input, output, note, grade, source)                     \
  ConversionClaim{{library, version, operation, Evidence::grade, source},                      \
                  #format,                                                                     \
                  Outcome::beyond,                                                             \
                  Outcome::infinity,                                                           \
                  Outcome::nan,                                                                \
                  Outcome::minus_zero,                                                         \
                  Outcome::half,                                                               \
                  Outcome::smallest,                                                           \
                  std::nullopt,                                                                \
                  input,                                                                       \
                  output,                                                                      \
                  note},
#include "formats/conformance.def"
  };
  return claims;
}

const std::vector<BlockClaim>& block_claims() {
  static const std::vector<BlockClaim> claims = {
#define NUMEMU_BLOCK_SAME(library, version, operation, blocks, rule, rounding, note, grade, \
                          source)                                                           \
  BlockClaim{{library, version, operation, Evidence::grade, source},                        \
             words(blocks),                                                                 \
             #rule,                                                                         \
             parse_rounding(#rounding),                                                     \
             note},
#define NUMEMU_BLOCK_DIFFERS(library, version, operation, blocks, note, grade, source) \
  BlockClaim{{library, version, operation, Evidence::grade, source},                   \
             words(blocks),                                                            \
             "",                                                                       \
             std::nullopt,                                                             \
             note},
#include "formats/conformance.def"
  };
  return claims;
}

std::string conformance_page() {
  std::string page(kIntroduction);
  for (const std::string& library : libraries()) {
    page += fmt::format(
        "\n## {}\n\n| operation, release or commit | format | beyond | Inf | NaN | -0 | half | "
        "smallest | "
        "flags | remarks | evidence |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
        library);
    for (const ConversionClaim& claim : conversion_claims())
      if (claim.origin.library == library) page += row(claim);
  }
  page +=
      "\n## Block scales\n\nFlags of `numemu quantize --block`; elements saturate everywhere.\n\n"
      "| library, release or commit, operation | blocks | flags | where it differs | evidence |\n"
      "|---|---|---|---|---|\n";
  for (const BlockClaim& claim : block_claims()) page += row(claim);
  return page;
}

}  // namespace numemu
