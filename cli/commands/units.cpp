// numemu units: every matrix unit with its parameters, source and evidence.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/unit_list.hpp"
#include "emu/unit/catalogue/modifiers.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/words.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {
namespace {

struct Options {
  std::string name;
  bool json = false, markdown = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Json unit_json(const unit::Unit& one) {
  const unit::UnitRow& row = one.row();
  Json json = {{"name", row.name},
               {"alias", row.alias},
               {"operand", row.operand},
               {"result", row.result},
               {"accumulation", row.accumulation},
               {"grade", unit::to_string(row.grade)},
               {"letter", std::string(1, unit::letter_of(row.grade))},
               {"source", row.source},
               {"modifiers", row.modifiers}};
  if (const unit::UnitDescription* u = one.description()) {
    json["code"] = unit::description_code(*u);
    json["parameters"] = Json::parse(unit::description_json(*u));
  }
  return json;
}

void print_one(const unit::Unit& one) {
  const unit::UnitRow& row = one.row();
  fmt::print("{}\n\n", row.name);
  const auto line = [](const char* key, const std::string& text) {
    if (!text.empty()) fmt::print("{:<11}{}\n", key, text);
  };
  line("alias", row.alias);
  line("operands", row.operand == "any" ? one.operand_rule() : row.operand);
  line("result", row.result);
  line("evidence", fmt::format("{} ({}): {}", unit::to_string(row.grade),
                               unit::letter_of(row.grade), row.source));
  line("in short", row.accumulation);
  for (const std::string& name : row.modifiers)
    line("modifier", fmt::format(".{}: {}", name, unit::find_modifier(name)->what));
  if (one.description() == nullptr) return;
  fmt::print("\n");
  for (const std::string& sentence : unit::description_words(*one.description()))
    fmt::print("- {}\n", sentence);
}

/// The table of docs/units.md.
void print_markdown() {
  fmt::print(
      "| unit | operands | result | evidence | modifiers | one output |\n"
      "|---|---|---|---|---|---|\n");
  for (const unit::Unit* one : unit::all_units()) {
    const unit::UnitRow& row = one->row();
    fmt::print("| `{}`{} | {} | {} | {} | {} | {} |\n", row.name,
               row.alias.empty() ? "" : " `" + row.alias + "`", row.operand, row.result,
               unit::to_string(row.grade), joined(row.modifiers), row.accumulation);
  }
}

/// The unit of that name; where the name is short for several, or a pattern, all that it fits.
std::vector<const unit::Unit*> chosen(const std::string& name) {
  const std::vector<const unit::Unit*> units = unit::units_like(name);
  if (name.find_first_of("*?") == name.npos) {
    try {
      return {&unit::find_unit(name)};
    } catch (const Error&) {
      if (units.size() < 2) throw;
    }
  }
  if (units.empty()) throw Error("no unit fits '" + name + "'; the command units lists them");
  return units;
}

int run(const Options& options) {
  if (!options.name.empty() && options.markdown) throw Error("--markdown: expected no unit name");
  if (options.markdown) {
    print_markdown();
    return kFine;
  }
  const bool all = options.name.empty();
  const std::vector<const unit::Unit*> units = all ? unit::all_units() : chosen(options.name);
  if (options.json) {
    Json list = Json::array();
    for (const unit::Unit* one : units) list.push_back(unit_json(*one));
    fmt::print("{}\n", (units.size() == 1 ? list.at(0) : list).dump(2));
  } else if (units.size() == 1) {
    print_one(*units.front());
  } else {
    fmt::print("{}", all ? instruction_list() : unit_list(units));
  }
  return kFine;
}

}  // namespace

void add_units(Program& program) {
  auto options = std::make_shared<Options>();
  Command& command =
      program.command("units", "List the matrix units or those of a pattern, or describe one",
                      [options] { return run(*options); });
  command.option("name NAME|PATTERN", options->name,
                 "Name, alias or short form of a unit; parts of names (h100.wgmma) or * and ?");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--markdown", options->markdown, "Print the table of docs/units.md");
}

}  // namespace numemu::cli
