// The program of a group of commands, NUMEMU_GROUP, which is chosen when it is compiled.
#include "cli/command.hpp"

namespace {

using namespace numemu::cli;

/// A command of another group is named in a statement that is discarded: the linker does not look
/// for it.
void add_commands(Program& program) {
#define NUMEMU_COMMAND(group, name, help) \
  if constexpr (Group::group == Group::NUMEMU_GROUP) add_##name(program);
#include "cli/commands.def"
#undef NUMEMU_COMMAND
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(argc, argv, Group::NUMEMU_GROUP, add_commands);
}
