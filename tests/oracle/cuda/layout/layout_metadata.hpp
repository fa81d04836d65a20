// The part of the layout check that is about sparse instructions.
#pragma once
#include <string>
#include <vector>

#include "tests/oracle/cuda/ask/machine.hpp"

namespace numemu::oracle::recording {

/// Adds errors in the content of words and in the assignment of words to the places of kept
/// values, each after the words `blamed`. Not for dense instructions.
void check_metadata(Machine&, const Instruction&, const std::string& blamed,
                    std::vector<std::string>& all);

/// For people, where that finds anything: the kept values of A that each word of the array chooses
/// the places of, one line a word. Dense instructions: "".
std::string metadata_map(Machine&, const Instruction&);

}  // namespace numemu::oracle::recording
