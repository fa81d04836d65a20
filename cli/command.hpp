// What the commands share: how each is added to its program and run, exit codes, threads, folders
// and the clock.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/groups.hpp"
#include "cli/options.hpp"

namespace numemu::cli {

inline constexpr int kFine = 0, kMismatch = 1, kBadUsage = 2;

#define NUMEMU_COMMAND(group, name, help) void add_##name(Program&);
#include "cli/commands.def"
#undef NUMEMU_COMMAND

/// Runs the command of argv and returns the exit code. The process becomes another program if the
/// command is of another group.
int run_program(int argc, char** argv, Group own, void (*add_commands)(Program&));

/// Runs a command of the process itself, of its own group; the process stays as it was.
int run_commands(int argc, char** argv, void (*add_commands)(Program&));

/// Adds --threads, which sets the number of OpenMP threads (results do not depend on it).
/// Of more than the machine has processors at most 16 are started; the command throws Error where
/// the system refuses them, before OpenMP would end the program. Returns the number that was asked
/// for, if any.
std::shared_ptr<const std::optional<std::int64_t>> add_threads(Command&);
/// The shipped data folder ($NUMEMU_DATA, that of the installation, or where the program was built)
/// and the cache folder ($NUMEMU_CACHE, $XDG_CACHE_HOME/numemu or ~/.cache/numemu).
std::string data_folder();
std::string cache_folder();
/// Seconds of a steady clock.
double seconds();

}  // namespace numemu::cli
