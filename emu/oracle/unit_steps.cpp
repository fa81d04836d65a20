#include "emu/oracle/unit_steps.hpp"

#include <algorithm>
#include <utility>

#include "emu/oracle/step_map.hpp"

namespace numemu::oracle {
namespace {

using unit::UnitDescription;

/// Of sums of outer.every products each: C and opposite products meet in the outer register, which
/// hides the steps inside. Each sum has those of the unit without the outer register.
std::vector<int> steps_of_sums(const UnitDescription& u, const Ports& ports) {
  UnitDescription inner = u;
  inner.outer = {};
  inner.c = inner.d = nullptr;
  Ports of_sum = ports;
  of_sum.k = u.outer.every * (ports.k / ports.kept());
  of_sum.c = of_sum.d = inner.accumulator.format;
  of_sum.bits = inner.accumulator.bits;
  const std::vector<int> one = steps_of_unit(inner, of_sum);
  if (one.empty()) return {};
  const int count = *std::max_element(one.begin(), one.end()) + 1;
  std::vector<int> steps;
  for (int p = 0; p < ports.kept(); ++p)
    steps.push_back(one[static_cast<std::size_t>(p % u.outer.every)] + p / u.outer.every * count);
  return steps;
}

}  // namespace

std::vector<int> steps_of_unit(const UnitDescription& u, const Ports& ports) {
  if (u.outer.every != 0 && u.outer.every < ports.kept()) return steps_of_sums(u, ports);
  constexpr int kMostPositions = 64;  // as many dots as pairs of them
  std::vector<int> best;
  if (ports.kept() > kMostPositions) return best;
  const auto count = [](const std::vector<int>& steps) {
    return steps.empty() ? -1 : *std::max_element(steps.begin(), steps.end());
  };
  for (const StepVariant variant : kStepVariants) {
    const std::vector<Dot> dots = step_map_dots(ports, variant);
    if (dots.empty()) continue;
    std::vector<int> steps = steps_of(read_step_map(ports, variant, evaluate(u, ports, dots)));
    if (count(steps) > count(best)) best = std::move(steps);
  }
  return best;
}

}  // namespace numemu::oracle
