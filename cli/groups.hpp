// Commands by group: each group is a program of its own, numemu-GROUP, and all are in one folder.
#pragma once

namespace numemu::cli {

enum class Group { numbers, vectors, networks, tuning, experiments };

struct CommandRow {
  Group group;
  const char *program, *name, *help;
};

inline constexpr CommandRow kCommands[] = {
#define NUMEMU_COMMAND(group, name, help) {Group::group, "numemu-" #group, #name, help},
#include "cli/commands.def"
#undef NUMEMU_COMMAND
};

/// The command of a command line, which is its first word without a dash; nullptr if that is none.
const CommandRow* command_of(int argc, char** argv);

/// This process becomes `program`, of the folder of the present one, with the same arguments,
/// streams and signals. Returns why that fails; nullptr where the folder has no such program.
const char* become(const char* program, char** argv);

}  // namespace numemu::cli
