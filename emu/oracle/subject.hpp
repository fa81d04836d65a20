// What a file of vectors is about: an operation on formats, or a unit; one line of text says it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emu/oracle/operation.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "emu/unit/unit.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

namespace numemu::oracle {

/// " description={...}", the canonical form without blanks; empty for units that have a name of the
/// catalogue, and for what no line can hold: tables of products, names of files with blanks, more
/// than 3,000 letters.
std::string description_word(const unit::Unit&);
/// The text behind description= in such a line; empty where there is none.
std::string_view described_in(std::string_view header);

/// How the epilogue behind an integer unit makes codes of its int32 sums.
struct CodesOfSums {
  unit::Requantization how = unit::Requantization::real;
  std::int32_t low = -128, high = 127;
  friend bool operator==(const CodesOfSums&, const CodesOfSums&) = default;
};

/// All but `unit` are exact and rounded once. c has the format of the result.
struct Subject {
  Operation operation = Operation::convert;
  const unit::Unit* unit = nullptr;         ///< of `unit` alone
  const Format *a = nullptr, *b = nullptr;  ///< of the operands; the same but for units
  const Format* to = nullptr;               ///< of the result; nullptr: a unit's two's complement
  /// Of a unit: its register's.
  Rounding rounding = {};
  Overflow overflow = Overflow::saturate;
  std::int64_t k = 1;                     ///< products of a dot or a unit
  std::optional<CodesOfSums> codes = {};  ///< of a unit: results are these, of format `to`

  /// How the file was made; of no meaning for its results.
  std::uint64_t seed = 0;
  int level = 1;
  std::string style = "mixed";
};

/// The largest K of a record.
inline constexpr std::int64_t kMostProducts = 1 << 16;

/// The format of results where none is told: that of comparisons is uint1, else that of operands.
const Format& usual_result(Operation, const Format& from);
/// One rounding of numbers of format `from` to format `to`. Throws Error where the formats cannot
/// be computed with: codebooks, results whose bits and random bits exceed 64, comparisons with
/// another result than uint1, to_integer without an integer.
Subject operation_subject(Operation, const Format& from, const Format& to, const Rounding&,
                          Overflow, std::int64_t k = 1);
/// Products of one of the unit's instructions; 32 where that is any number.
std::int64_t usual_depth(const unit::UnitDescription&);
/// The unit with its own formats, or with the given ones where it takes any; k = 0: usual_depth().
/// Throws Error naming the unit where the
/// formats contradict it, or K is no multiple of its sparsity group.
Subject unit_subject(const unit::Unit&, std::int64_t k = 0, const Format* a = nullptr,
                     const Format* b = nullptr);
/// The unit's subject with codes of its sums as results, by default from the least to the largest
/// of the format. Throws Error unless the unit has int32 results and the format is of integers of
/// at most 16 bits, which hold the ends.
Subject codes_subject(Subject of_unit, unit::Requantization, const Format&,
                      std::optional<std::int64_t> low = {}, std::optional<std::int64_t> high = {});

/// The first line of a file, without its end: "# numemu-vectors 1 op=mul from=float16 to=float16
/// rounding=rne overflow=ieee seed=0 level=1 style=mixed". Dots and units say k=, codes of sums
/// also requantize=, low= and high=.
std::string header_line(const Subject&);
inline constexpr std::string_view kHeaderBegin = "# numemu-vectors ";
/// Whether the line begins as such a line does.
inline bool is_header(std::string_view line) { return line.starts_with(kHeaderBegin); }
/// The inverse. `told` is used instead of the unit of that name, such as one described in a file.
/// Throws Error for unknown or missing keys, unknown names, and what contradicts the unit.
Subject parse_header(std::string_view line, const unit::Unit* told = nullptr);

}  // namespace numemu::oracle
