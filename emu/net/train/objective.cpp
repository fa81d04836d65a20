// The table of objectives, made from the files of emu/net/train/objectives/.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/train/objective.hpp"

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

const Objective& find_objective(std::string_view name) {
  return *find_named("objective", name, kObjectives, &Objective::name);
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const Objective* objective : kObjectives) names.emplace_back(objective->name);
  return names;
}

}  // namespace numemu::net
