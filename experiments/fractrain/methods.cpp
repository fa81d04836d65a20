#include "experiments/fractrain/methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"

namespace numemu::experiments::fractrain {
namespace {

constexpr int kFloat32 = 32;

std::vector<Precision> precisions(const Settings& settings, const std::string& key) {
  std::vector<Precision> all;
  for (const std::string& text : settings.list(key)) all.push_back(Precision::parse(text));
  return all;
}

/// The last epoch before stage i + 1 of `count`, plus one.
std::int64_t end_of(std::size_t i, std::size_t count, std::int64_t epochs) {
  return static_cast<std::int64_t>(i + 1) * epochs / static_cast<std::int64_t>(count);
}

}  // namespace

Json roles_of(const Precision& bits) {
  if (bits.weight == kFloat32) return Json::object();
  const auto role = [](int b) {
    return Json{{"format", fmt::format("group(uint{},tensor,float32,min)", b)}};
  };
  Json gradient = role(bits.gradient);
  gradient["rounding"] = "sr(16)";
  return {{"weight", role(bits.weight)},
          {"activation", role(bits.activation)},
          {"gradient", std::move(gradient)}};
}

Json recipe_of(const Method& method, const Indicator& indicator) {
  Json recipe = {{"roles", roles_of(method.precisions.front())}};
  double eps = indicator.eps;
  for (std::size_t i = 1; i < method.precisions.size(); ++i) {
    const std::int64_t epoch = method.kind == Method::Stages::tested
                                   ? method.epochs
                                   : end_of(i - 1, method.precisions.size(), method.epochs);
    const Json from = method.kind == Method::Stages::indicator ? Json{{"turning_point", eps}}
                                                               : Json{{"epoch", epoch}};
    recipe["stages"].push_back(
        {{"from", from}, {"patch", {{"roles", roles_of(method.precisions[i])}}}});
    if (i <= 2) eps *= indicator.alpha;
  }
  return recipe;
}

std::vector<Method> methods_of(const Settings& settings) {
  const std::vector<Precision> stages = precisions(settings, "stages");
  const std::int64_t epochs = settings.integer("epochs", 1, 10'000);
  if (static_cast<std::int64_t>(stages.size()) > epochs)
    throw Error(fmt::format("--set: epochs: expected at least one for each of {} stages, not {}",
                            stages.size(), epochs));
  const Precision whole = stages.back();
  using Stages = Method::Stages;
  std::vector<Method> methods = {
      {Stages::one, "static " + whole.text(), {whole}, epochs},
      {Stages::one, "float32", {{kFloat32, kFloat32, kFloat32}}, epochs}};
  for (const Precision& bits : precisions(settings, "static")) {
    if (bits != whole) methods.push_back({Stages::one, "static " + bits.text(), {bits}, epochs});
  }
  methods.push_back({Stages::tested,
                     fmt::format("static {}, tested at {}", stages.front().text(), whole.text()),
                     {stages.front(), whole},
                     epochs});
  methods.push_back({Stages::schedule, "progressive, schedule", stages, epochs});
  methods.push_back({Stages::indicator, "progressive, indicator", stages, epochs});
  const std::int64_t paid = std::max<std::int64_t>(
      1, std::llround(published_share(stages, whole) * static_cast<double>(epochs)));
  methods.push_back(
      {Stages::one, fmt::format("static {}, {} epochs", whole.text(), paid), {whole}, paid});
  return methods;
}

}  // namespace numemu::experiments::fractrain
