// The table of rules in its parts: the specification's rule of an instruction, and its rivals.
#pragma once
#include "tests/oracle/cuda/replay/rule.hpp"

namespace numemu::oracle::recording::replay {

/// The marker of a rule that no document states for this instruction.
constexpr const char* kByExtension = " (by extension)";

/// The specification's rule; an empty name: nothing is known.
Rule specified_rule(const std::string& chip, const Instruction&);

/// Every rule that differs from `first` in one question.
std::vector<Rule> rivals_of(const std::string& chip, const Instruction&, const Rule& first);

/// Rivals of `first`, each with the question in which it differs.
void add_fused_rivals(const Instruction&, const Rule& first, std::vector<Rule>&);
void add_lowering_rivals(const std::string& chip, const Instruction&, const Rule& first,
                         std::vector<Rule>&);
void add_sparse_rivals(const Instruction&, const Rule& first, std::vector<Rule>&);
void add_integer_rivals(const Instruction&, const Rule& first, std::vector<Rule>&);
void add_tf32_rivals(const Rule& first, std::vector<Rule>&);
void add_double_rivals(const Rule& first, std::vector<Rule>&);
void add_scale_rivals(const Instruction&, const Rule& first, std::vector<Rule>&);
void add_nan_rivals(const Rule& first, std::vector<Rule>&);

/// `first` under another name, to be changed in one place.
Rule rival(const Rule& first, const char* question, const std::string& name);

}  // namespace numemu::oracle::recording::replay
