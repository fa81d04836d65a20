// The program numemu: becomes the program of the command. It links no library, so that this takes a
// millisecond.
#include <cstdio>

#include "cli/groups.hpp"

using namespace numemu::cli;

int main(int argc, char** argv) {
  if (const CommandRow* command = command_of(argc, argv)) {
    const char* const why = become(command->program, argv);
    if (why == nullptr) {
      std::fprintf(stderr,
                   "numemu: command '%s' is not built yet; './numemu %s' builds and runs it\n",
                   command->name, command->name);
    } else {
      std::fprintf(stderr, "numemu: %s: %s\n", command->program, why);
    }
    return 2;
  }
  // Help and mistakes are the same in every program.
  for (const CommandRow& row : kCommands) {
    const char* const why = become(row.program, argv);
    if (why == nullptr) continue;
    std::fprintf(stderr, "numemu: %s: %s\n", row.program, why);
    return 2;
  }
  std::fputs("numemu: no command is built yet; './numemu COMMAND' builds and runs it\n", stderr);
  return 2;
}
