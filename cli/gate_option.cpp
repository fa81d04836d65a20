#include "cli/gate_option.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {

std::optional<experiments::Gate> GateOption::gate() const {
  if (!target.empty()) return experiments::parse_gate(target);
  if (strict) throw Error("--strict: expected --gate beside it");
  return std::nullopt;
}

void add_gate(Command& command, GateOption& option) {
  std::vector<std::string> names;
  for (const experiments::GatePreset& preset : experiments::gate_presets())
    names.emplace_back(preset.name);
  // An empty target, of a script whose variable is not set, must not count as no gate.
  command
      .option("--gate TARGET", option.target,
              fmt::format("Exit with 1 if the accuracy misses a target at 99 %: 0.99 (of "
                          "float32's top-1), METRIC>=NUMBER, METRIC>=SHARE*float32 or {}",
                          joined(names, ", ")))
      .check([](const std::string& text) {
        return text.empty() ? std::string("expected a target, found an empty text") : "";
      });
  command.flag("--strict", option.strict,
               "Exit with 1 also if the gate is undecided, or points are missing");
}

int gate_code(const std::vector<Json>& rows, bool strict, bool unfinished) {
  for (const Json& row : rows) {
    if (!row.contains("gate")) continue;
    const std::string verdict = row["gate"]["verdict"].get<std::string>();
    if (verdict == "fail" || (strict && verdict == "undecided")) return kMismatch;
  }
  return strict && unfinished ? kMismatch : kFine;
}

}  // namespace numemu::cli
