// Where a result parts from the one it must have, in words.
#pragma once
#include <string>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::oracle {

/// Lines about the one record: of an operation, where its exact result lies between two codes; of a
/// unit, the first sum that the rule forms differently, and its first addend that differs. `rule`:
/// one that gives the record's result; nullptr where none is known.
std::vector<std::string> parting(const Subject&, const Records& one, const Rule* rule);

}  // namespace numemu::oracle
