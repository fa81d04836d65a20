// --memory: the budget of the networks that a command runs.
#pragma once
#include <CLI/CLI.hpp>

namespace numemu::cli {

/// Adds --memory SIZE. Without it the budget is half of machine_memory().
void add_memory(CLI::App&);

}  // namespace numemu::cli
