// Which rule explains the mismatches: every rule is tried on the records that the verifier kept.
#pragma once
#include <cstdint>
#include <vector>

#include "emu/oracle/rule.hpp"
#include "emu/oracle/verify.hpp"

namespace numemu::oracle {

/// How a rule fares on the records kept.
struct Fit {
  Rule rule;
  std::int64_t explained = 0;           ///< mismatches whose given result is the rule's
  std::int64_t alone = 0;               ///< of those, what no rule before it in the list explains
  std::int64_t contradicted = 0;        ///< matches whose result is not the rule's
  std::vector<std::string> equal = {};  ///< rules that explain and contradict the same records
  std::vector<bool> explains = {};      ///< of each mismatch kept
};

struct Explanation {
  std::int64_t mismatches = 0, matches = 0;  ///< kept, on which rules were tried
  std::int64_t rules = 0;                    ///< tried
  /// The best first: without contradictions, the most explained; then what explains most of the
  /// rest. At most three, each for at least 8 and a 64th of those mismatches, or all. A rule with
  /// contradictions is named only where no other explains anything, and it explains more than it
  /// contradicts and half of the mismatches.
  std::vector<Fit> fits;
};

/// For each of some records whether the rule gives the result that was given.
std::vector<bool> agrees(const Verifier&, const Rule&, const Records& given);

/// Tries every rule of the subject, over threads.
Explanation explain(const Verifier&);

}  // namespace numemu::oracle
