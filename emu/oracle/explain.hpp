// Which rule explains the mismatches: every rule is tried on the records that the judge kept.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/judge.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::oracle {

/// Lines about the one record: of an operation, where its exact result lies between two codes; of a
/// unit, the first sum that the rule forms differently, and its first addend that differs. `rule`:
/// one that gives the record's result; nullptr where none is known.
std::vector<std::string> parting(const Subject&, const Records& one, const Rule* rule);

/// How a rule fares on the records kept.
struct Fit {
  Rule rule;
  std::int64_t explained = 0, of = 0;          ///< mismatches that the rule gives, of how many
  std::int64_t contradicted = 0, against = 0;  ///< matches that it does not give, of how many
  std::int64_t alone = 0;        ///< explained by no rule that is named before this one
  std::vector<Rule> equal = {};  ///< rules that explain and contradict the same records
  /// Records that the rule does not give.
  std::int64_t not_given() const { return of - explained + contradicted; }
};

/// Rules that explain a kind of mismatches.
struct Account {
  std::int64_t rules = 0;  ///< tried
  /// Together they explain all mismatches, and none contradicts a match. At most three, the one
  /// that explains most first; of several each explains at least 8 and a 64th that those before it
  /// do not.
  std::vector<Fit> fits;
  /// Where none fits: the rule that gives most records, if it gives more than the subject.
  std::optional<Fit> nearest;
};

/// Result bits are explained first, flags second.
struct Explanation {
  std::int64_t mismatches = 0, matches = 0;  ///< kept, on which rules were tried
  std::int64_t results = 0;                  ///< mismatches of results
  Account of_results;
  /// Records whose flags what explains the results does not give; where nothing explains those,
  /// of records with the right result.
  std::int64_t flags = 0;
  Account of_flags;
};

/// Whether the rule gives the result of the one record.
bool gives(const Judge&, const Rule&, const Sample& one);

/// Tries every rule of the subject, and `more`, over threads.
Explanation explain(const Judge&, std::vector<Rule> more = {});

}  // namespace numemu::oracle
