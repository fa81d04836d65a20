// Masks as the roles of a recipe, and their absence as an entry of its layers.
#include "experiments/mvue/recipes.hpp"

#include <string_view>

namespace numemu::experiments::mvue {
namespace {

/// The mask with options added inside its parentheses.
Json mask(const std::string& text, std::string_view options) {
  if (text.empty()) return nullptr;
  std::string out = text;
  out.insert(out.rfind(')'), options);
  return out;
}

Json role(const Json& mask_text) { return {{"format", nullptr}, {"mask", mask_text}}; }

}  // namespace

Json recipe_of(const Pruning& pruning, const std::string& output) {
  const std::string_view along_batch = ",axis=batch,remainder=pad";
  const Json dense = role(nullptr);
  return {
      {"roles",
       {{"weight", role(mask(pruning.weight, ",remainder=pad"))},
        {"gradient",
         {{"dgrad", role(mask(pruning.dgrad, along_batch))},
          {"wgrad", role(mask(pruning.wgrad, along_batch))}}}}},
      {"layers",
       Json::array({{{"match", output},
                     {"roles",
                      {{"weight", dense}, {"gradient", {{"dgrad", dense}, {"wgrad", dense}}}}}}})}};
}

}  // namespace numemu::experiments::mvue
