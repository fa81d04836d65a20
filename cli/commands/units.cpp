// numemu units: every matrix unit with its parameters, source and evidence.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/unit_list.hpp"
#include "emu/unit/catalogue/modifiers.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/words.hpp"
#include "emu/unit/path_report.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {
namespace {

struct UnitsOptions {
  std::string name, kind;
  bool json = false, markdown = false, schema = false;
};

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

/// What computes the products of a unit, in words.
std::string path_words(const unit::UnitDescription& u) {
  const unit::PathReport report = unit::path_report(u);
  if (!report.path.empty()) return report.path;
  std::string text = "none: the reference computes every product, some hundred times slower";
  if (report.changes.empty()) return text;
  std::vector<std::string> changes;
  for (const auto& change : report.changes)
    changes.push_back(fmt::format("{} {} in place of {}", change.key, change.other, change.own));
  return text + fmt::format("; with {}, as {} has, the path would be {}", joined(changes, " and "),
                            report.like, report.other_path);
}

/// In lines of at most 80 columns; all but the first begin with `indent` blanks.
std::string wrapped(std::string text, std::size_t indent) {
  constexpr std::size_t kColumns = 80;
  for (std::size_t begin = 0; text.size() - begin > kColumns;) {
    const std::size_t blank = text.rfind(' ', begin + kColumns);
    if (blank <= begin + indent) break;  // a word longer than a line
    text.replace(blank, 1, "\n" + std::string(indent, ' '));
    begin = blank + 1;
  }
  return text;
}

void print_one(const unit::Unit& one) {
  const unit::UnitRow& row = one.row();
  fmt::print("{}\n\n", row.name.empty() ? "unnamed" : row.name);
  const auto line = [](const char* key, const std::string& text) {
    if (!text.empty()) fmt::print("{}\n", wrapped(fmt::format("{:<11}{}", key, text), 11));
  };
  line("alias", row.alias);
  line("operands", row.operand == "any" ? one.operand_rule() : row.operand);
  line("result", row.result);
  line("evidence", fmt::format("{} ({}): {}", unit::to_string(row.grade),
                               unit::letter_of(row.grade), row.source));
  line("in short", row.accumulation);
  for (const std::string& name : row.modifiers)
    line("modifier", fmt::format(".{}: {}", name, unit::find_modifier(name)->what));
  const unit::UnitDescription* u = one.description();
  if (u == nullptr) return;
  line("code", unit::description_code(*u));
  line("fast path", path_words(*u));
  fmt::print("\n");
  for (const std::string& sentence : unit::description_words(*u))
    fmt::print("{}\n", wrapped("- " + sentence, 2));
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
               unit::to_string(row.grade), joined(row.modifiers, ", "), row.accumulation);
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

/// A description of the user's: what it says, its canonical form.
void print_file(const std::string& path, bool json) {
  const std::unique_ptr<unit::Unit> own = unit::make_unit(unit::read_description(path));
  if (json) {
    Json one = unit_json(*own);
    const unit::PathReport report = unit::path_report(*own->description());
    one["fast_path"] = report.path.empty() ? Json() : Json(report.path);
    fmt::print("{}\n", one.dump(2));
    return;
  }
  print_one(*own);
  fmt::print("\n{}", unit::description_json(*own->description()));
}

std::vector<std::string> core_names() {
  const auto names = unit::names_of(unit::CoreKind{});
  return {names.begin(), names.end()};
}

unit::CoreKind core_of(const std::string& name) {
  const std::vector<std::string> names = core_names();
  return static_cast<unit::CoreKind>(std::ranges::find(names, name) - names.begin());
}

int run_units(const UnitsOptions& options) {
  if (!options.name.empty() && options.markdown) throw Error("--markdown: expected no unit name");
  if (options.schema || !options.kind.empty()) {
    fmt::print("{}", options.schema ? unit::description_schema()
                                    : unit::description_template(core_of(options.kind)));
    return kFine;
  }
  if (options.name.ends_with(".json")) {
    print_file(options.name, options.json);
    return kFine;
  }
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
  auto options = std::make_shared<UnitsOptions>();
  Command& command = program.command("units", [options] { return run_units(*options); });
  command.option("name NAME|PATTERN|FILE.json", options->name,
                 "Name, alias or short form of a unit; parts of names (h100.wgmma) or * and ?; a "
                 "description of yours");
  command.flag("--json", options->json, "Print JSON");
  command.flag("--markdown", options->markdown, "Print the table of docs/units.md");
  command
      .option("--template KIND", options->kind,
              "Print a description to start from, with every key that its core has")
      .one_of(core_names());
  command.flag("--schema", options->schema, "Print the JSON Schema of a description");
}

}  // namespace numemu::cli
