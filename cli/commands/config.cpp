// numemu config: the canonical form of a recipe or a sweep, every default written out.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/recipe_option.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::cli {
namespace {

int run_config(const std::string& given) {
  const std::string file = recipe_path(given);
  const std::string text = read_text(file);
  const Json json = parse_json(text, file);
  const bool sweep = json.is_object() && json.contains("numemu_sweep");
  fmt::print("{}\n", (sweep ? experiments::parse_sweep(text, file, data_folder()).json
                            : policies::Recipe::parse(json, file).json())
                         .dump(2));
  note_short_names_in(file);
  return kFine;
}

}  // namespace

void add_config(Program& program) {
  auto file = std::make_shared<std::string>();
  Command& command = program.command("config", [file] { return run_config(*file); });
  command
      .option("--print NAME|FILE", *file, "Recipe or sweep file, or the name of a shipped recipe")
      .required();
}

}  // namespace numemu::cli
