#include "policies/recipe/objectives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::policies {

std::vector<ObjectiveChoice> read_objectives(const JsonReader& list, const std::string& optimizer) {
  if (list.is_null()) return {};
  if (!list.value().is_array() || list.value().empty())
    list.fail("a list of at least one objective, or null");
  std::vector<ObjectiveChoice> objectives;
  for (std::size_t i = 0; i < list.value().size(); ++i) {
    const JsonReader entry = list.element(i);
    const bool object = entry.value().is_object();
    if (!object && !entry.value().is_string())
      entry.fail("an objective's name, or an object with the keys rule and optimizer");
    if (object) entry.require_keys({"rule", "optimizer"});
    const JsonReader rule = object ? entry.member("rule") : entry;
    if (rule.is_null()) entry.fail("a key 'rule'");
    ObjectiveChoice choice{rule.one_of("", net::objective_names(), "objective"), optimizer};
    if (object)
      choice.optimizer =
          entry.member("optimizer").one_of(optimizer, net::optimizer_names(), "optimizer");
    const bool repeated = std::any_of(objectives.begin(), objectives.end(),
                                      [&](const auto& other) { return other.rule == choice.rule; });
    if (repeated) rule.fail("each objective once, not " + choice.rule + " again");
    objectives.push_back(std::move(choice));
  }
  const bool usual = objectives.size() == 1 && objectives[0].optimizer == optimizer &&
                     objectives[0].rule == net::TrainOptions().objectives[0];
  return usual ? std::vector<ObjectiveChoice>() : objectives;
}

Json objectives_json(const std::vector<ObjectiveChoice>& objectives, const std::string& optimizer) {
  Json out = Json::array();
  for (const ObjectiveChoice& choice : objectives) {
    out.push_back(choice.optimizer == optimizer
                      ? Json(choice.rule)
                      : Json{{"rule", choice.rule}, {"optimizer", choice.optimizer}});
  }
  return out;
}

void use_objectives(const Recipe& recipe, const std::string& where, net::TrainOptions& options) {
  if (recipe.objectives().empty()) return;
  net::TrainOptions named;
  named.objectives.clear();
  for (const ObjectiveChoice& choice : recipe.objectives()) {
    named.objectives.push_back(choice.rule);
    if (choice.optimizer != recipe.update().optimizer)
      named.objective_optimizers[choice.rule] = choice.optimizer;
  }
  const bool same = options.objectives == named.objectives &&
                    options.objective_optimizers == named.objective_optimizers;
  if (!same && (options.objectives != net::TrainOptions().objectives ||
                !options.objective_optimizers.empty())) {
    throw Error(fmt::format("{}: objectives: {} contradict those of the training options, {}",
                            where, joined(named.objectives, " "), joined(options.objectives, " ")));
  }
  options.objectives = named.objectives;
  options.objective_optimizers = named.objective_optimizers;
}

}  // namespace numemu::policies
