// numemu config: the canonical form of a recipe or a sweep, every default written out.
#include <fmt/format.h>

#include "api/recipes.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/network_options.hpp"

namespace numemu::cli {
namespace {

int run_config(const std::string& given) {
  const std::string file = recipe_path(given);
  fmt::print("{}\n", api::canonical(file, program_context(false).folders).dump(2));
  note_short_names_in(file);
  return kFine;
}

}  // namespace

void add_config(Program& program) {
  auto [command, file] = program.command<std::string>("config", run_config);
  command.option("--print NAME|FILE", file, "Recipe or sweep file, or the name of a shipped recipe")
      .required();
}

}  // namespace numemu::cli
