// Records against rules: how many results differ, and in what.
#pragma once
#include "tests/oracle/cuda/replay/record_file.hpp"

namespace numemu::oracle::recording::replay {

/// One rule on one file.
struct Verdict {
  Rule rule;
  std::size_t mismatches = 0;
  std::size_t zero_sign = 0;                 ///< of them, both are zeros
  std::size_t nan_bits = 0;                  ///< of them, both are NaN
  std::size_t first = 0;                     ///< the first record that differs
  std::uint64_t answered = 0, recorded = 0;  ///< there
};

struct Judgement {
  const RecordFile* file;
  std::string chip;
  std::size_t records = 0;
  std::vector<Verdict> verdicts;  ///< the specification's rule first; empty: nothing is known
};

struct Choice {
  std::string chip;       ///< instead of the file's unit; "": the unit's
  std::string rule_text;  ///< rivals whose name holds it; the specification's rule always runs
  std::size_t first = 0;  ///< records of each file; 0: all
};

/// Where no rule of the judgement gives the recorded results: from the closest, one answer is
/// changed at a time while that brings it closer. The name lists the changes; their question is
/// "amended". Without mismatches, or where nothing comes closer than one rival: none.
std::vector<Verdict> closest_rule(const Judgement&);

Judgement judge(const RecordFile&, const Choice&);

}  // namespace numemu::oracle::recording::replay
