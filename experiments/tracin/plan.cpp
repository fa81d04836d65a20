// What all runs share.
#include <fmt/format.h>

#include "emu/net/data/view.hpp"
#include "experiments/tracin/questions.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::tracin {
namespace {

const Format& element_format(const std::string& name) {
  try {
    return find_format(name);
  } catch (const Error& error) {
    throw usage_error(fmt::format("--set: formats: expected element formats: {}", error.what()));
  }
}

}  // namespace

Rounding stochastic() { return {.mode = RoundingMode::sr, .random_bits = 16}; }

std::vector<std::string> Plan::methods() const {
  std::vector<std::string> names = {"float32"};
  for (const Format* format : formats) {
    for (const char* how : {"nearest", "one draw", "two draws"})
      names.push_back(format->name + ", " + how);
  }
  return names;
}

Json Plan::point() const {
  std::vector<std::string> names;
  for (const Format* format : formats) names.push_back(format->name);
  return {{"formats", names}, {"rounding", to_string(stochastic())}, {"flipped", flipped}};
}

Plan plan_of(const Settings& settings) {
  constexpr int kMostBits = 16;  // of formats whose outcomes are listed
  Plan plan;
  for (const std::string& name : settings.list("formats")) {
    const Format& format = element_format(name);
    if (format.bits > kMostBits || !format.is_signed || !format.has_zero())
      throw usage_error(
          fmt::format("--set: formats: expected signed formats of at most {} bits with "
                      "a zero, not {}",
                      kMostBits, name));
    plan.formats.push_back(&format);
  }
  plan.flipped = settings.number("flipped");
  plan.checkpoints = settings.integer("checkpoints");
  plan.ranked = settings.integer("ranked");
  plan.targets = settings.integer("targets");
  plan.probes = settings.integer("probes");
  plan.draws = settings.integer("draws");
  return plan;
}

net::Dataset with_flips(const net::Dataset& data, const Plan& plan, std::uint64_t seed) {
  return net::view_of(data, {.label_noise = plan.flipped, .seed = seed});
}

}  // namespace numemu::experiments::tracin
