// numemu units: every matrix unit with its parameters, source and evidence.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/table.hpp"
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
  if (const unit::UnitDescription* u = one.description())
    json["parameters"] = Json::parse(unit::description_json(*u));
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

void print_table() {
  std::vector<std::vector<std::string>> rows;
  for (const unit::Unit* one : unit::all_units()) {
    const unit::UnitRow& row = one->row();
    rows.push_back({row.name, row.alias, row.operand, row.result,
                    std::string(unit::to_string(row.grade)), joined(row.modifiers),
                    row.accumulation});
  }
  fmt::print("{}", text_table({"unit", "alias", "operands", "result", "evidence", "modifiers",
                               "one output"},
                              rows));
  fmt::print(
      "\nAlso: neutral.mac.FORMAT[.ROUNDING], neutral.chunkN.FORMAT[.ROUNDING], "
      "neutral.kahan.FORMAT[.ROUNDING]\nwith FORMAT a floating format, intN[.wrap|.saturate] or "
      "fixedWqF; and your own: gemm --unit FILE.json.\n");
}

int run(const Options& options) {
  if (!options.name.empty() && options.markdown) throw Error("--markdown: expected no unit name");
  if (options.markdown) {
    print_markdown();
  } else if (!options.name.empty()) {
    const unit::Unit& one = unit::find_unit(options.name);
    if (options.json) {
      fmt::print("{}\n", unit_json(one).dump(2));
    } else {
      print_one(one);
    }
  } else if (options.json) {
    Json list = Json::array();
    for (const unit::Unit* one : unit::all_units()) list.push_back(unit_json(*one));
    fmt::print("{}\n", list.dump(2));
  } else {
    print_table();
  }
  return kFine;
}

}  // namespace

void add_units(Program& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.command("units", "List the matrix units, or describe one",
                                     [options] { return run(*options); });
  command.option("name NAME", options->name, "Name, alias or short form of a unit");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--markdown", options->markdown, "Print the table of docs/units.md");
}

}  // namespace numemu::cli
