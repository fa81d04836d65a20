// The program numemu: becomes the program of the command. It links no library, so that this takes a
// millisecond.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/groups.hpp"

using namespace numemu::cli;

int main(int argc, char** argv) {
  if (const CommandRow* command = command_of(argc, argv)) {
    const int error = become(command->program, argv);
    if (error == ENOENT) {
      std::fprintf(stderr,
                   "numemu: command '%s' is not built yet; './numemu %s' builds and runs it\n",
                   command->name, command->name);
    } else {
      std::fprintf(stderr, "numemu: %s: %s\n", command->program, std::strerror(error));
    }
    return 2;
  }
  // Help and mistakes are the same in every program.
  for (const CommandRow& row : kCommands) become(row.program, argv);
  std::fputs("numemu: no command is built yet; './numemu COMMAND' builds and runs it\n", stderr);
  return 2;
}
