// numemu units: every matrix unit with its parameters, source and evidence.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

Json unit_json(const unit::UnitRow& row) {
  return {{"name", row.name},
          {"alias", row.alias},
          {"operand", row.operand},
          {"result", row.result},
          {"accumulation", row.accumulation},
          {"grade", unit::to_string(row.grade)},
          {"source", row.source}};
}

int print_units(const std::string& name, bool json) {
  std::vector<const unit::Unit*> units =
      name.empty() ? unit::all_units() : std::vector<const unit::Unit*>{&unit::find_unit(name)};
  if (json) {
    Json list = Json::array();
    for (const unit::Unit* one : units) list.push_back(unit_json(one->row()));
    fmt::print("{}\n", (name.empty() ? list : list[0]).dump(2));
  } else if (name.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const unit::Unit* one : units) {
      const unit::UnitRow& row = one->row();
      rows.push_back({row.name, row.alias, row.operand, row.result,
                      std::string(unit::to_string(row.grade)), row.accumulation});
    }
    fmt::print("{}", text_table({"unit", "alias", "operands", "result", "evidence", "accumulation"},
                                rows));
  } else {
    const Json one = unit_json(units[0]->row());
    for (const auto& item : one.items())
      fmt::print("{:<14}{}\n", item.key(), item.value().get<std::string>());
  }
  return kFine;
}

}  // namespace

void add_units(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("units", "List the matrix units, or one with all it is");
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("name", *name, "A unit's name or alias")->type_name("NAME");
  command->add_flag("--json", *json, "Print JSON");
  command->callback(
      [&action, name, json] { action = [name, json] { return print_units(*name, *json); }; });
}

}  // namespace numemu::cli
