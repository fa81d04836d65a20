// One command line, answered by several programs: numemu, which only knows their names, and one for
// each group of commands.
#pragma once
#include "cli/options.hpp"

namespace numemu::cli {

/// The groups of commands.def. The program numemu has no command of its own.
enum class Group { numemu, numbers, vectors, networks, tuning, experiments };

/// Runs the command of argv and returns the exit code, from 2 on for what numemu refuses. The
/// process becomes the program of its group, from the folder of this one, where that is not `own`.
int run_program(int argc, char** argv, Group own, void (*add_commands)(Program&));

}  // namespace numemu::cli
