// numemu completion: the script by which a shell completes command lines of numemu.
#include "cli/completion.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"

namespace numemu::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

int run_completion(const CompletionOptions& o) {
  fmt::print("{}", completion_script(o.shell));
  return kFine;
}

}  // namespace

void add_completion(Program& program) {
  auto [command, options] = program.command<CompletionOptions>("completion", run_completion);
  command.option("shell SHELL", options.shell, "bash or zsh").required().one_of({"bash", "zsh"});
}

}  // namespace numemu::cli
