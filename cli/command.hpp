// What the commands share: how each is added to its program, exit codes, threads, folders and the
// clock.
#pragma once
#include <string>

#include "cli/options.hpp"

namespace numemu::cli {

inline constexpr int kFine = 0, kMismatch = 1, kBadUsage = 2;

#define NUMEMU_COMMAND(group, name, help) void add_##name(Program&);
#include "cli/commands.def"
#undef NUMEMU_COMMAND

/// Adds --threads, which sets the number of OpenMP threads (results do not depend on it).
/// Of more than the machine has processors at most 16 are started; the command throws Error where
/// the system refuses them, before OpenMP would end the program.
void add_threads(Command&);
/// The shipped data folder ($NUMEMU_DATA or where the program was built) and the cache folder
/// ($NUMEMU_CACHE, $XDG_CACHE_HOME/numemu or ~/.cache/numemu).
std::string data_folder();
std::string cache_folder();
/// Seconds of a steady clock.
double seconds();

}  // namespace numemu::cli
