#include "experiments/binarized/recipes.hpp"

#include <fmt/format.h>

namespace numemu::experiments::binarized {
namespace {

Json clipped_masters() { return {{"rule", "clip"}}; }

Json float32_input(const std::string& first) {
  return {{"match", first}, {"roles", {{"activation", nullptr}}}};
}

}  // namespace

Json signs(const std::string& first) {
  const Json sign = {{"format", "sign1"}, {"scale", "none"}, {"ste", "clipped"}};
  Json input = float32_input(first);
  input["gemms"] = {{"fprop", {{"unit", "f32.sequential"}}}};
  return {{"roles", {{"weight", sign}, {"activation", sign}}},
          {"gemms", {{"fprop", {{"unit", "neutral.xnor"}}}}},
          {"update", clipped_masters()},
          {"layers", Json::array({input})}};
}

Json with_shifts(Json recipe) {
  recipe["norm"] = {{"statistic", "shift"}};
  return recipe;
}

Json with_shift_adamax(Json recipe) {
  recipe["objectives"] = Json::array({{{"rule", "cross_entropy"}, {"optimizer", "shift-adamax"}}});
  return recipe;
}

Json few_bits(int bits, const std::string& first) {
  // One exponent bit: subnormals and the only binade of normals have the same step. Bias 2 puts
  // that step at 2^(1-bits). Masters never leave [-1, 1] and hard tanh holds activations there, so
  // that gradients need no clipping. Weights begin far below 1, where that grid has nothing but 0:
  // a power of two brings it to them, with its end at about twice their deviation.
  const Json grid = {{"format", fmt::format("e1m{}b2+finite", bits - 2)}, {"scale", "none"}};
  Json weight = grid;
  weight["scale"] = bits == 2 ? "pow2(detuned(absmax,0.375))" : "pow2(detuned(absmax,0.5))";
  return {{"roles",
           {{"weight", weight},
            {"activation", grid},
            {"gradient", {{"format", "e5m0+finite"}, {"scale", "pow2(absmax,up)"}}}}},
          {"update", clipped_masters()},
          {"layers", Json::array({float32_input(first)})}};
}

}  // namespace numemu::experiments::binarized
