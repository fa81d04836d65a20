// The table of objectives, made from the files of emu/net/train/objectives/.
#include "emu/net/train/objective.hpp"

#include <fmt/format.h>

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

#define NUMEMU_OBJECTIVE(stem) extern const Objective objective_##stem;
#include "emu/net/train/objectives/table.inc"
#undef NUMEMU_OBJECTIVE

namespace {

#define NUMEMU_OBJECTIVE(stem) &objective_##stem,
constexpr const Objective* kObjectives[] = {
#include "emu/net/train/objectives/table.inc"
};
#undef NUMEMU_OBJECTIVE

}  // namespace

namespace {

/// A row, and the options that a text gives it.
struct Chosen {
  const Objective& row;
  std::unique_ptr<OptionSet> given;
};

std::unique_ptr<OptionSet> options_of(const Objective& row) {
  return row.options == nullptr ? std::make_unique<OptionSet>() : row.options();
}

Chosen choose(std::string_view text) {
  const CallText call = parse_call(text);
  const Objective& row = *find_named("objective", call.name, kObjectives, &Objective::name);
  Chosen chosen{row, options_of(row)};
  read_arguments(call, chosen.given->list(), fmt::format("objective {}", call.name));
  return chosen;
}

}  // namespace

Objective find_objective(std::string_view text) {
  const Chosen chosen = choose(text);
  Objective objective = chosen.row;
  if (objective.with != nullptr) objective.evaluate = objective.with(*chosen.given);
  return objective;
}

std::string canonical_objective(std::string_view text) {
  const Chosen chosen = choose(text);
  return call_text(chosen.row.name, *chosen.given, *options_of(chosen.row));
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const Objective* objective : kObjectives) names.emplace_back(objective->name);
  return names;
}

}  // namespace numemu::net
