// What the programs of all groups do around their commands.
#pragma once
#include "cli/groups.hpp"
#include "cli/options.hpp"

namespace numemu::cli {

/// Runs the command of argv and returns the exit code. The process becomes another program if the
/// command is of another group.
int run_program(int argc, char** argv, Group own, void (*add_commands)(Program&));

/// The same within the process, of its own commands alone; it stays as it was.
int run_commands(int argc, char** argv, void (*add_commands)(Program&));

}  // namespace numemu::cli
