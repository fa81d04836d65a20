// The first question to a machine: does every element of a tile arrive where it belongs?
#pragma once
#include <string>
#include <vector>

#include "tests/oracle/cuda/ask/machine.hpp"
#include "tests/oracle/cuda/layout/layout_metadata.hpp"

namespace numemu::oracle::recording {

/// Empty: every element of A, B, C, the metadata and the scales reaches the dots it belongs to, and
/// D comes back in its place. Else sentences that name the operand and the first elements that went
/// astray (of metadata, metadata_map tells all). Only the numbers 0 and 1 (and 2 as a scale) are
/// used, which no rounding touches in any type. What sums cannot show: an order of k that A and B
/// have in common; fragment_test.cpp holds that against the tables of CuTe and PTX.
std::vector<std::string> check_layout(Machine&, const Instruction&);

}  // namespace numemu::oracle::recording
