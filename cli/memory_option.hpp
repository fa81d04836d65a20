// --memory: the memory budget of the networks that a command runs.
#pragma once
#include "cli/options.hpp"

namespace numemu::cli {

/// Adds --memory SIZE. Without it the budget is half of machine_memory().
void add_memory(Command&);

}  // namespace numemu::cli
