#include "cli/unit_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "cli/table.hpp"
#include "emu/unit/description/words.hpp"
#include "formats/joined.hpp"

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
    std::string text = codes.front();
    for (std::size_t i = 1; i < shown; ++i) text += ", " + codes[i];
    return shown == codes.size() ? text : fmt::format("{}, {} more", text, codes.size() - shown);
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

}  // namespace

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
  return text_table({"unit", "units", "ev", "one step"}, rows) +
         "\nunits         of all formats: units h100.mma lists those of an instruction, and\n"
         "              units h100.mma.f16.f32 describes one\n" +
         letters_explained(all) + kCodes +
         "FORMAT        a floating format [.ROUNDING][.saturate], intN[.wrap] or fixedWqF;\n"
         "              for any other unit: --unit FILE.json (docs/describe-a-unit.md)\n";
}

std::string unit_list(const Units& units) {
  std::vector<std::string> modifiers;
  std::vector<std::vector<std::string>> rows;
  for (const Unit* one : units) {
    for (const std::string& modifier : one->row().modifiers) add_once(modifiers, modifier);
    rows.push_back({one->row().name, letters_of({one}), code_of(*one)});
  }
  std::string text = text_table({"unit", "ev", "one step"}, rows);
  if (!modifiers.empty())
    text += fmt::format("\nmodifiers: .{}; see units NAME\n", joined(modifiers, " ."));
  return text;
}

}  // namespace numemu::cli
