#include "emu/net/reuse_plan.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "emu/net/memory_plan.hpp"

namespace numemu::net {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, std::span<const Shape> shapes, const std::vector<int>& last)
      : graph_(graph), shapes_(shapes), last_(last), capacity_(shapes.size(), 0) {}

  ReusePlan plan() {
    ReusePlan plan;
    plan.places.resize(graph_.nodes.size());
    plan.drops.resize(graph_.nodes.size());
    for (std::size_t i = 0; i < plan.places.size(); ++i) plan.places[i].in_place = in_place(i);
    find_spare(plan);
    for (std::size_t i = 0; i < plan.places.size(); ++i) {
      place(i, plan.places[i]);
      while (!dead_.empty() && (kept_ > spare_[i] || too_large(largest_behind_[i])))
        drop(std::prev(dead_.end()), plan.drops[i]);
      bury(i);
    }
    return plan;
  }

 private:
  using Dead = std::multimap<std::int64_t, int>;  ///< by capacity in elements

  std::int64_t size_of(int value) const {
    return element_count(shapes_[static_cast<std::size_t>(value)]);
  }

  bool in_place(std::size_t node) const {
    const std::vector<int>& reads = graph_.nodes[node].inputs;
    return !reads.empty() &&
           works_in_place(graph_, node, last_, shapes_[static_cast<std::size_t>(reads[0])],
                          shapes_[static_cast<std::size_t>(graph_.value_of(node))]);
  }

  /// spare_[i]: elements that may lie dead at node i; until_[v]: the last node that needs the
  /// memory of v, which results may take over in place.
  void find_spare(const ReusePlan& plan) {
    const std::size_t nodes = graph_.nodes.size();
    until_.resize(shapes_.size());
    std::vector<std::int64_t> change(nodes + 1, 0);
    for (std::size_t i = nodes; i-- > 0;) {
      const auto own = static_cast<std::size_t>(graph_.value_of(i));
      const int reader = last_[own];
      until_[own] = reader < 0 ? static_cast<int>(i) : reader;
      if (reader < 0) continue;
      const auto next = static_cast<std::size_t>(reader);
      if (plan.places[next].in_place && graph_.nodes[next].inputs[0] == static_cast<int>(own))
        until_[own] = until_[static_cast<std::size_t>(graph_.value_of(next))];
    }
    for (std::size_t i = 0; i < nodes; ++i) {
      if (plan.places[i].in_place) continue;
      const int own = graph_.value_of(i);
      change[i] += size_of(own);
      change[static_cast<std::size_t>(until_[static_cast<std::size_t>(own)]) + 1] -= size_of(own);
    }
    spare_.resize(nodes);
    std::int64_t alive = 0, most = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      alive += change[i];
      spare_[i] = alive + operator_memory(graph_, i, shapes_).forward;
      most = std::max(most, spare_[i]);
    }
    for (std::int64_t& elements : spare_) elements = most - elements;
    largest_behind_.assign(nodes, 0);
    for (std::size_t i = nodes; i-- > 1;) {
      const std::int64_t own = plan.places[i].in_place ? 0 : size_of(graph_.value_of(i));
      largest_behind_[i - 1] = std::max(largest_behind_[i], own);
    }
  }

  /// Whether the largest dead memory would lie idle for the most part under a result of that size.
  bool too_large(std::int64_t size) const { return std::prev(dead_.end())->first - size > size; }

  void place(std::size_t node, ReusePlace& place) {
    const int own = graph_.value_of(node);
    std::int64_t& capacity = capacity_[static_cast<std::size_t>(own)];
    if (place.in_place) {
      place.from = graph_.nodes[node].inputs[0];
      capacity = capacity_[static_cast<std::size_t>(place.from)];
      return;
    }
    capacity = size_of(own);
    const auto fits = dead_.lower_bound(capacity);
    if (fits == dead_.end() || fits->first - capacity > capacity) return;
    const auto begin = spare_.begin() + static_cast<std::ptrdiff_t>(node),
               end = spare_.begin() + until_[static_cast<std::size_t>(own)] + 1;
    const std::int64_t waste = fits->first - capacity;
    if (waste > 0 && *std::min_element(begin, end) < waste) return;
    for (auto spare = begin; waste > 0 && spare != end; ++spare) *spare -= waste;
    capacity = fits->first;
    std::vector<int> taken;
    drop(fits, taken);
    place.from = taken[0];
  }

  void drop(Dead::iterator dead, std::vector<int>& values) {
    values.push_back(dead->second);
    kept_ -= dead->first;
    dead_.erase(dead);
  }

  /// What nobody reads after the node.
  void bury(std::size_t node) {
    const auto die = [&](int value) {
      std::int64_t& capacity = capacity_[static_cast<std::size_t>(value)];
      dead_.emplace(capacity, value);
      kept_ += std::exchange(capacity, 0);
    };
    const std::vector<int>& reads = graph_.nodes[node].inputs;
    for (std::size_t k = 0; k < reads.size(); ++k) {
      const auto v = static_cast<std::size_t>(reads[k]);
      const bool owned = v >= graph_.inputs.size() && capacity_[v] > 0;
      if (!owned || last_[v] != static_cast<int>(node)) continue;
      if (in_place(node) && reads[k] == reads[0]) continue;
      die(reads[k]);
    }
    const int own = graph_.value_of(node);
    if (last_[static_cast<std::size_t>(own)] < 0 && node + 1 < graph_.nodes.size()) die(own);
  }

  const Graph& graph_;
  std::span<const Shape> shapes_;
  const std::vector<int>& last_;
  std::vector<int> until_;
  std::vector<std::int64_t> spare_, capacity_;
  std::vector<std::int64_t> largest_behind_;  ///< node i: of the results behind it that take memory
  Dead dead_;
  std::int64_t kept_ = 0;  ///< elements in dead_
};

}  // namespace

ReusePlan plan_reuse(const Graph& graph, std::span<const Shape> shapes,
                     const std::vector<int>& last) {
  return Planner(graph, shapes, last).plan();
}

}  // namespace numemu::net
