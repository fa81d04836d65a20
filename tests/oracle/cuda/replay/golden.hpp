// Outputs of real GPUs that others published, in their own layout (golden/mma/README.md, hw_leeds).
#pragma once
#include "tests/oracle/cuda/replay/record_file.hpp"

namespace numemu::oracle::recording::replay {

/// `folder` holds index_hw_leeds.tsv. c is zero, or rounded to float16 first, where the README says
/// so; every row becomes records of the instruction that was run.
Records read_hardware_records(const std::string& folder);

}  // namespace numemu::oracle::recording::replay
