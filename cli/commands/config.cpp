// numemu config: the canonical form of a recipe or a sweep, every default written out.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "experiments/engine/sweep_config.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::cli {

void add_config(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("config", "Print the canonical form of a recipe or a sweep");
  auto file = std::make_shared<std::string>();
  command->add_option("--print", *file, "Recipe or sweep file")->required()->type_name("FILE");
  command->callback([&action, file] {
    action = [file] {
      const std::string text = read_text(*file);
      const Json json = parse_json(text, *file);
      const bool sweep = json.is_object() && json.contains("numemu_sweep");
      fmt::print("{}\n", (sweep ? experiments::parse_sweep(text, *file).json
                                : policies::Recipe::parse(json, *file).json())
                             .dump(2));
      note_short_names_in(*file);
      return kFine;
    };
  });
}

}  // namespace numemu::cli
