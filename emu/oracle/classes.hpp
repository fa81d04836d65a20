// Whether a record is what its class claims.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "emu/oracle/evaluate.hpp"

namespace numemu::oracle {

enum class Style : std::uint8_t {
  mixed,       ///< all classes that the subject has, in turns
  random,      ///< random codes, or random numbers of similar size
  edges,       ///< zeros, the ends of the normal and subnormal numbers, one, infinities, NaN
  exhaustive,  ///< every input there is, in ascending order
  cancel,      ///< the exact result is below half of the largest term
  subnormal,   ///< an input, or the exact result, is below the smallest normal number
  overflow,   ///< the exact result is at least one unit in the last place beyond the largest number
  ties,       ///< the exact result lies halfway between two neighbours of the result's format
  alignment,  ///< a fused unit with one bit fewer, or more, gives another result
  near_ties,  ///< no tie, but the exact result rounded to an intermediate format is one; of
              ///< quotients and roots also within 2^-20 units in the last place of a tie
  carry,  ///< rounding up carries to the next power of two, or the sum to log2(K) bits above its
          ///< products
};

std::string_view to_string(Style);
/// Throws Error with the nearest known name.
Style parse_style(std::string_view);

/// What users round to before the result's format: where double roundings come from.
std::span<const Format* const> intermediate_formats();
/// The real number lies exactly halfway between two neighbours of the format.
bool is_tie(const Format&, const Value&);
/// No tie, but rounded to nearest in an intermediate format with as many bits or more it is one.
bool is_near_tie(const Format&, const Value&);
/// Between the largest number below a power of two and that power: rounding up carries through
/// every bit.
bool is_carry(const Format&, const Value&);
/// At least one unit in the last place beyond the largest number of its sign.
bool is_beyond(const Format&, const Value&);
/// Not zero, and below the smallest normal number of a format that has subnormal codes.
bool is_subnormal(const Format&, const Value&);

/// Judges records of one subject.
class Classifier {
 public:
  Classifier(const Subject&, const Layout&);
  /// Whether the inputs of record i are of that class: any but alignment.
  bool is(Style, const Records&, std::int64_t i);
  /// The class of a record whose result depends on the last bit that a fused unit keeps
  /// ("alignment_F") or on the first that it cuts ("alignment_F+1"); empty where on neither.
  std::string_view alignment(const Records&, std::int64_t i);
  /// False where even the largest operands do not reach Style::overflow; true where some may.
  bool may_overflow() const;
  /// Whether the unit aligns addends.
  bool aligns() const { return own_ != nullptr; }
  ExactSum& exact() { return exact_; }

 private:
  bool beyond_register(const Value&) const;
  /// A quotient or root that is no tie, but within 2^-20 units in the last place of one, or as near
  /// as so short operands come.
  bool is_hard_case(const Value&) const;
  bool any_subnormal_input(const Records&, std::int64_t i) const;

  Subject subject_;
  Layout layout_;
  ExactSum exact_;
  /// The descriptions with one bit fewer and one more; not there where no unit can be so.
  std::optional<unit::UnitDescription> fewer_, more_;
  std::unique_ptr<UnitDot> own_, by_fewer_, by_more_;
};

}  // namespace numemu::oracle
