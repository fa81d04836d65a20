// Records of an integer unit and the epilogue behind it: codes of few bits from int32 sums
// (emu/unit/integer/requantize.hpp).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/reference/dot.hpp"

namespace numemu::oracle {

/// The subject of the unit's sums alone.
Subject sums_of(const Subject&);
/// A unit's subject with results as those of `own`: codes of its sums, or itself. Throws Error as
/// codes_subject().
Subject with_results_of(const Subject& own, Subject theirs);

/// What the epilogue reads of a record.
struct SumRecord {
  std::int32_t sum = 0;   ///< with the bias
  std::int32_t bare = 0;  ///< without
  float factor = 0;       ///< of Requantization::real
  unit::FixedFactor fixed = {};
  std::int32_t zero_point = 0;
};
/// The code, of which the lowest bits of the format count.
using CodeOfSum = std::function<std::int64_t(const Subject&, const SumRecord&)>;
std::int64_t code_of_sum(const Subject&, const SumRecord&);

/// evaluate() of such a subject, with another code of a sum than code_of_sum() where that is given.
void evaluate_codes(const Subject&, Records&, const unit::ShortEnds* ends = nullptr,
                    const CodeOfSum& = code_of_sum);
/// The numbers of record i, its sum among them.
SumRecord sum_record(const Subject&, const Records&, std::int64_t i);
/// "sum 12, with the bias 17; multiplier 1073741824, shift 0 gives 9; with zero point -2 the code
/// 7"
std::string epilogue_text(const Subject&, const SumRecord&);

/// Numbers that all records have; the others are drawn.
struct EpilogueConstants {
  std::optional<float> factor = {};
  std::optional<unit::FixedFactor> fixed = {};
  std::optional<std::int32_t> zero_point = {};
};
/// Completes records of the sums, from number `first` on, to those of the subject: draws what the
/// epilogue reads, so that codes spread over their range, and many lie where roundings differ.
/// Record n is a function of the subject and n.
void draw_epilogues(const Subject&, const EpilogueConstants&, std::int64_t first,
                    const Records& sums, Records&);

/// Rules of the epilogue: another number of roundings, bits cut, the zero point lost, and others.
std::vector<Rule> epilogue_rules(const Subject&);

}  // namespace numemu::oracle
