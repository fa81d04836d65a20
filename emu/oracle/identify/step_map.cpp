#include "emu/oracle/identify/step_map.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "emu/oracle/probes/probes.hpp"

namespace numemu::oracle {
namespace {

// Not all of the namespace: its unnamed part has names that other sources of a batch use.
using probing::Code;
using probing::is_double;
using probing::is_half;
using probing::is_single;
using probing::power;
using probing::small_beside;
using probing::top_exponent;
using probing::zero;

/// What a variant puts at i, at j and into C, and the two results.
struct Plan {
  Value first, second, c;
  int neighbour;  ///< of i, that gets -first; 0: none
  Value yes, no;  ///< D where j is later (halves: apart), and where it is not
};

Plan pair_plan(const Value& large, const Value& small, StepVariant variant) {
  if (variant == StepVariant::c_first) return {large, small, -large, 0, small, zero()};
  return {large, small, zero(), variant == StepVariant::c_last ? 1 : 2, small, zero()};
}

std::optional<Plan> plan_of(const Ports& ports, StepVariant variant) {
  if (variant == StepVariant::in_saturation) {
    if (ports.d != nullptr) return {};
    const std::int64_t end = (std::int64_t{1} << (ports.bits - 1)) - 1;
    return Plan{number(1), number(-1), number(end), 0, number(end - 1), number(end)};
  }
  if (!floats(ports)) return {};
  if (variant == StepVariant::halves) {
    // Float32 cuts and float16 rounds to nearest: half an ulp down, three eighths up.
    if (is_single(ports.d))
      return Plan{-power(0),
                  -power(0),
                  number(3, 23),
                  0,
                  number((3 << 22) - 2, 1),
                  number((3 << 22) - 1, 1)};
    if (is_half(ports.d) && is_half(ports.c))
      return Plan{number(3, -1), number(3, -1), number(3, 11), 0, number(3, 11), number(1537, 2)};
    return {};
  }
  if (is_double(ports.a)) return pair_plan(power(60), power(0), variant);
  const std::optional<Value> small = small_beside(ports);
  if (!small || ports.scales() > 1) return {};
  return pair_plan(power(top_exponent(ports)), *small, variant);
}

/// Codes of a product, the same at every position.
struct Factors {
  std::uint64_t a, b;
};

std::optional<Factors> factors_of(const Draft& base, const Value& product) {
  const std::optional<Dot> dot = Draft(base).product(0, product).dot();
  if (!dot) return {};
  return Factors{dot->a[0], dot->b[dot->kept.empty() ? 0 : dot->kept[0]]};
}

/// Who shares a step with whom, as an order by first positions; '?' where sharing is not mutual and
/// transitive.
std::vector<std::string> ordered_by_first(const std::vector<std::string>& apart) {
  const std::size_t kept = apart.size();
  std::vector<std::size_t> first(kept);
  for (std::size_t i = 0; i < kept; ++i) first[i] = std::min(i, apart[i].find('0'));
  std::vector<std::string> map = apart;
  for (std::size_t i = 0; i < kept; ++i)
    for (std::size_t j = 0; j < kept; ++j) {
      const char expected = first[i] == first[j] ? '0' : '1';
      map[i][j] = i == j ? '0' : apart[i][j] != expected ? '?' : first[j] > first[i] ? '1' : '0';
    }
  return map;
}

}  // namespace

const char* name(StepVariant variant) {
  constexpr const char* kNames[] = {"c-first", "c-last", "c-last-by-two", "halves",
                                    "in-saturation"};
  return kNames[static_cast<int>(variant)];
}

std::vector<Dot> step_map_dots(const Ports& ports, StepVariant variant) {
  const std::optional<Plan> plan = plan_of(ports, variant);
  if (!plan) return {};
  Draft base(ports);
  if (ports.scales() == 1) base.common_scale(0);
  base.c(plan->c);
  const auto first = factors_of(base, plan->first), second = factors_of(base, plan->second),
             opposite = factors_of(base, -plan->first);
  if (!first || !second || (plan->neighbour != 0 && !opposite)) return {};
  const int kept = ports.kept();
  std::vector<Dot> dots;
  dots.reserve(static_cast<std::size_t>(kept) * static_cast<std::size_t>(kept));
  for (int i = 0; i < kept; ++i) {
    for (int j = 0; j < kept; ++j) {
      Draft draft = base;
      draft.factors(j, second->a, second->b);
      if (plan->neighbour != 0) draft.factors(i ^ plan->neighbour, opposite->a, opposite->b);
      const std::optional<Dot> dot = draft.factors(i, first->a, first->b).dot();
      if (!dot) return {};
      dots.push_back(*dot);
    }
  }
  return dots;
}

std::vector<std::string> read_step_map(const Ports& ports, StepVariant variant,
                                       std::span<const std::uint64_t> codes) {
  const auto kept = static_cast<std::size_t>(ports.kept());
  const std::optional<Plan> plan = plan_of(ports, variant);
  if (!plan || codes.size() != kept * kept) return {};
  const Code yes = exact_code(ports.d, ports.bits, plan->yes);
  const Code no = exact_code(ports.d, ports.bits, plan->no);
  std::vector<std::string> map(kept, std::string(kept, '0'));
  for (std::size_t i = 0; i < kept; ++i) {
    const std::size_t neighbour = i ^ static_cast<std::size_t>(plan->neighbour);
    for (std::size_t j = 0; j < kept; ++j) {
      if (j == i || j == neighbour) continue;  // one position cannot hold two products
      const std::uint64_t d = codes[i * kept + j];
      map[i][j] = d == yes ? '1' : d == no ? '0' : '?';
    }
  }
  return variant == StepVariant::halves ? ordered_by_first(map) : map;
}

// Earlier steps have more positions after them, so the counts of '1' number the steps.
std::vector<int> steps_of(const std::vector<std::string>& map) {
  const auto later = [](const std::string& row) { return std::count(row.begin(), row.end(), '1'); };
  std::vector<std::ptrdiff_t> counts;
  for (const std::string& row : map) counts.push_back(later(row));
  std::sort(counts.begin(), counts.end(), std::greater<>());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<int> steps;
  for (const std::string& row : map)
    steps.push_back(
        static_cast<int>(std::find(counts.begin(), counts.end(), later(row)) - counts.begin()));
  for (std::size_t i = 0; i < map.size(); ++i)
    for (std::size_t j = 0; j < map.size(); ++j)
      if (map[i].size() != map.size() || map[i][j] != (steps[j] > steps[i] ? '1' : '0')) return {};
  return steps;
}

std::string step_words(const std::vector<int>& steps) {
  const int count = steps.empty() ? 0 : *std::max_element(steps.begin(), steps.end()) + 1;
  std::string text;
  for (int step = 0; step < count; ++step) {
    const char* separator = step == 0 ? "" : ", ";
    for (std::size_t p = 0; p < steps.size(); ++p) {
      if (steps[p] != step) continue;
      const std::size_t first = p;
      while (p + 1 < steps.size() && steps[p + 1] == step) ++p;
      text += separator + std::to_string(first);
      if (p != first) text += "-" + std::to_string(p);
      separator = " ";
    }
  }
  return text;
}

}  // namespace numemu::oracle
