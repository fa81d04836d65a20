// The printed report of the check: one table per file, then one per question.
#pragma once
#include <cstdio>
#include <map>

#include "tests/oracle/cuda/replay/judge.hpp"

namespace numemu::oracle::recording::replay {

/// The operands of one record in hexadecimal, and both answers.
void print_record(std::FILE*, const RecordFile&, const Verdict&);
void print_file(std::FILE*, const Judgement&, bool records_of_rivals);

/// Where no rule gives the recorded result: the closest that several changes together give.
void print_closest(std::FILE*, const Judgement&);

/// The instructions whose rule of the specification is refuted, each with the rules that no record
/// of any of its files contradicts.
void print_refuted(std::FILE*, const std::vector<Judgement>&);

/// One rival of one chip over all files.
struct Standing {
  std::string chip, question, rival;
  std::size_t refuted_by = 0;  ///< records with another result under the rival
  std::size_t specified = 0;   ///< records of the same files that the specification's rule misses
  std::map<std::string, std::size_t> instructions;  ///< refuted_by of each

  /// Instructions that no record refutes the rival for.
  std::vector<std::string> stands_for() const;
};
std::vector<Standing> standings(const std::vector<Judgement>&);
void print_questions(std::FILE*, const std::vector<Standing>&);

}  // namespace numemu::oracle::recording::replay
