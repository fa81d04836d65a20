// numemu units: every matrix unit with its parameters, source and evidence.
#include "api/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/completion.hpp"
#include "emu/unit/catalogue/modifiers.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/words.hpp"
#include "emu/unit/path_report.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {
namespace {

using unit::Unit;
using Units = std::vector<const Unit*>;

constexpr std::size_t kColumns = 80;

/// "nvidia.h100.mma" of "nvidia.h100.mma.k8.f16.f32"; the whole name of what is no instruction.
std::string instruction_of(const Unit& one) {
  const std::string& name = one.row().name;
  if (name.starts_with("neutral.") || name.starts_with("host.")) return name;
  return name.substr(0, name.find('.', name.find('.', name.find('.') + 1) + 1));
}

std::string code_of(const Unit& one) {
  return one.description() == nullptr ? "not defined" : unit::description_code(*one.description());
}

void add_once(std::vector<std::string>& all, const std::string& one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

/// Units of the same instruction, in the order of the first of them.
std::vector<Units> by_instruction(const Units& units) {
  std::vector<Units> groups;
  for (const Unit* one : units) {
    const auto same = std::ranges::find_if(groups, [&](const Units& group) {
      return instruction_of(*group.front()) == instruction_of(*one);
    });
    if (same == groups.end()) {
      groups.push_back({one});
    } else {
      same->push_back(one);
    }
  }
  return groups;
}

/// The letters of the evidence, the strongest first.
std::string letters_of(const Units& units) {
  std::vector<unit::Grade> grades;
  for (const Unit* one : units) grades.push_back(one->row().grade);
  std::ranges::sort(grades);
  std::string letters;
  for (const unit::Grade grade : grades) {
    if (const char c = unit::letter_of(grade); letters.find(c) == letters.npos) letters += c;
  }
  return letters;
}

/// As many of the codes as the width holds: "16+C F25 rtz->f32, 4 more".
std::string codes_of(const Units& units, std::size_t width) {
  std::vector<std::string> codes;
  for (const Unit* one : units) add_once(codes, code_of(*one));
  const auto first = [&](std::size_t shown) {
    return joined_first(codes, ", ", shown, ", {} more");
  };
  std::size_t shown = codes.size();
  while (shown > 1 && first(shown).size() > width) --shown;
  return first(shown);
}

/// "ev            D definition, S silicon, ...": the letters of the units listed.
std::string letters_explained(const Units& units) {
  std::vector<unit::Grade> grades;
  for (const Unit* one : units) grades.push_back(one->row().grade);
  std::ranges::sort(grades);
  grades.erase(std::unique(grades.begin(), grades.end()), grades.end());
  std::string text, line = "ev            ";
  for (std::size_t i = 0; i < grades.size(); ++i) {
    const std::string word =
        fmt::format("{} {}{}", unit::letter_of(grades[i]), unit::to_string(grades[i]),
                    i + 1 == grades.size() ? "" : ", ");
    if (line.size() + word.size() > kColumns) {
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(14, ' ');
    }
    line += word;
  }
  return text + line + "\n";
}

constexpr const char* kCodes =
    "one step      16+C F25 rtz->f32: 16 products and C aligned to the largest\n"
    "              exponent, 25 bits kept below it, their sum rounded toward zero to\n"
    "              float32, which is C of the next step; ,+C: C is added last;\n"
    "              K: all products; fma: one after another; docs/units.md\n";

/// One line per chip and instruction with the number of its units, letters of their evidence and
/// codes of their arithmetic; the neutral units first, a legend below.
std::string instruction_list() {
  const Units& all = unit::all_units();
  std::vector<std::vector<std::string>> rows;
  std::size_t longest = 0;
  for (const Units& group : by_instruction(all))
    longest = std::max(longest, instruction_of(*group.front()).size());
  const std::size_t left = kColumns - longest - std::string_view("  units  HMVY  ").size();
  const auto is_neutral = [](const Units& group) {
    return group.front()->row().grade == unit::Grade::definition;
  };
  std::vector<Units> groups = by_instruction(all);
  std::stable_partition(groups.begin(), groups.end(), is_neutral);
  bool described = false;
  for (const Units& group : groups) {
    if (!described && !is_neutral(group)) {
      rows.push_back({"neutral.mac.FORMAT", "", "D", "fma, each rounded to FORMAT"});
      rows.push_back({"neutral.chunkN.FORMAT", "", "D", "chunks of N products from 0"});
      rows.push_back({"neutral.kahan.FORMAT", "", "D", "Kahan's compensated sum"});
      described = true;
    }
    rows.push_back({instruction_of(*group.front()), std::to_string(group.size()), letters_of(group),
                    codes_of(group, left)});
  }
  return api::text_table({"unit", "units", "ev", "one step"}, rows) +
         "\nunits         of all formats: units h100.mma lists those of an instruction, and\n"
         "              units h100.mma.f16.f32 describes one\n" +
         letters_explained(all) + kCodes +
         "FORMAT        a floating format [.ROUNDING][.saturate], intN[.wrap] or fixedWqF;\n"
         "              for any other unit: --unit FILE.json (docs/describe-a-unit.md)\n";
}

/// One line per unit with the letter of its evidence and the code of its arithmetic, and the
/// modifiers that the names may take.
std::string unit_list(const Units& units) {
  std::vector<std::string> modifiers;
  std::vector<std::vector<std::string>> rows;
  for (const Unit* one : units) {
    for (const std::string& modifier : one->row().modifiers) add_once(modifiers, modifier);
    rows.push_back({one->row().name, letters_of({one}), code_of(*one)});
  }
  std::string text = api::text_table({"unit", "ev", "one step"}, rows);
  if (!modifiers.empty())
    text += fmt::format("\nmodifiers: .{}; see units NAME\n", joined(modifiers, " ."));
  return text;
}

struct UnitsOptions {
  std::string name, kind;
  bool json = false, markdown = false, schema = false;
};

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

/// A description of the user's: what it says, its canonical form.
void print_file(const std::string& path, bool json) {
  const api::UnitPtr own = api::open_unit(path);
  if (json) {
    Json one = api::unit_json(*own);
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
  if (!options.name.empty() && options.markdown)
    throw usage_error("--markdown: expected no unit name");
  if (options.schema || !options.kind.empty()) {
    fmt::print("{}", options.schema ? unit::description_schema()
                                    : unit::description_template(core_of(options.kind)));
    return kFine;
  }
  if (api::is_unit_file(options.name)) {
    print_file(options.name, options.json);
    return kFine;
  }
  if (options.markdown) {
    print_markdown();
    return kFine;
  }
  const bool all = options.name.empty();
  const std::vector<const unit::Unit*> units = api::find_units(options.name);
  if (options.json) {
    Json list = Json::array();
    for (const unit::Unit* one : units) list.push_back(api::unit_json(*one));
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
  auto [command, options] = program.command<UnitsOptions>("units", run_units);
  command
      .option("name NAME|PATTERN|FILE.json", options.name,
              "Name, alias or short form of a unit; parts of names (h100.wgmma) or * and ?; a "
              "description of yours")
      .suggest(unit_words);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--markdown", options.markdown, "Print the table of docs/units.md");
  command
      .option("--template KIND", options.kind,
              "Print a description to start from, with every key that its core has")
      .one_of(core_names());
  command.flag("--schema", options.schema, "Print the JSON Schema of a description");
}

}  // namespace numemu::cli
