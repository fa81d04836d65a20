#include "emu/net/tied.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

bool all_equal(const Tensor& x) {
  return std::ranges::all_of(x.data, [&](float v) { return v == x.data[0]; });
}

bool same_elements(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.data, b.data, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

/// Element of axes[i] of `from` along axis i.
Tensor with_axes(const Tensor& from, const std::vector<int>& axes) {
  const Shape steps = row_major(from.shape).steps;
  Shape shape;
  Strides turned = row_major(from.shape);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    shape.push_back(from.shape[static_cast<std::size_t>(axes[i])]);
    turned.steps[i] = steps[static_cast<std::size_t>(axes[i])];
  }
  Tensor out(shape);
  strided_copy(shape, from.data.data(), turned, out.data.data(), row_major(shape));
  return out;
}

bool is_order(const std::vector<int>& axes, std::size_t rank) {
  std::vector<int> sorted = axes;
  std::ranges::sort(sorted);
  std::vector<int> all(rank);
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

/// The axes that make `value` of `owner`; nothing where none do.
std::optional<std::vector<int>> axes_between(const Tensor& owner, const Tensor& value) {
  if (same_elements(owner, value)) return std::vector<int>();
  const std::size_t rank = owner.shape.size();
  if (rank != value.shape.size() || rank < 2 || rank > kMostTiedAxes) return std::nullopt;
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  while (std::next_permutation(axes.begin(), axes.end())) {
    bool fits = true;
    for (std::size_t i = 0; i < rank; ++i)
      fits = fits && owner.shape[static_cast<std::size_t>(axes[i])] == value.shape[i];
    if (fits && same_elements(with_axes(owner, axes), value)) return axes;
  }
  return std::nullopt;
}

void set_tied(Parameter& parameter, const Parameter& to, std::vector<int> axes) {
  parameter.tied_to = to.name;
  parameter.tied_axes = std::move(axes);
  parameter.trained = false;
}

std::map<std::string_view, std::size_t> places_of(const Graph& graph) {
  std::map<std::string_view, std::size_t> places;
  const std::vector<const Parameter*> parameters = graph.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) places[parameters[p]->name] = p;
  return places;
}

/// Calls use(p, owner) of each tied parameter and the one it is tied to, by their places; owner
/// is null where that is not in the network.
template <class Use>
void for_each_tied(const Graph& graph, const Use& use) {
  const std::vector<const Parameter*> parameters = graph.parameters();
  if (std::ranges::none_of(parameters, &Parameter::is_tied)) return;
  const std::map<std::string_view, std::size_t> places = places_of(graph);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p]->is_tied()) continue;
    const auto found = places.find(parameters[p]->tied_to);
    use(p, found == places.end() ? nullptr : &found->second);
  }
}

}  // namespace

TensorPrint print_of(const Tensor& x) {
  std::uint64_t sum = 0;
  for (const float v : x.data) {
    // The finalizer of SplitMix64 (Steele et al. 2014).
    std::uint64_t z = std::bit_cast<std::uint32_t>(v) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    sum += z ^ z >> 31;
  }
  return {x.size(), sum};
}

Tensor in_tied_order(const Parameter& tied, const Tensor& owner) {
  if (!tied.tied_axes.empty()) return with_axes(owner, tied.tied_axes);
  Tensor out = owner;
  out.shape = tied.value.shape;
  return out;
}

Tensor in_owner_order(const Parameter& tied, const Tensor& value, const Shape& owner) {
  std::vector<int> back(tied.tied_axes.size());
  for (std::size_t i = 0; i < back.size(); ++i)
    back[static_cast<std::size_t>(tied.tied_axes[i])] = static_cast<int>(i);
  Tensor out = back.empty() ? value : with_axes(value, back);
  out.shape = owner;
  return out;
}

void tie_parameters(Graph& graph, const TensorPrints& prints) {
  std::set<std::int64_t> sizes;
  for (const auto& [print, count] : prints) sizes.insert(print.first);
  std::map<TensorPrint, std::vector<Parameter*>> found;
  for (Parameter* const parameter : graph.parameters()) {
    const Tensor& value = parameter->value;
    if (!parameter->trained || !sizes.contains(value.size()) || all_equal(value)) continue;
    const TensorPrint print = print_of(value);
    if (const auto known = prints.find(print); known != prints.end() && known->second == 1)
      found[print].push_back(parameter);
  }
  for (const auto& [print, parameters] : found) {
    for (std::size_t i = 1; i < parameters.size(); ++i) {
      if (const auto axes = axes_between(parameters[0]->value, parameters[i]->value))
        set_tied(*parameters[i], *parameters[0], *axes);
    }
  }
}

void tie(Graph& graph, std::string_view parameter, std::string_view to, std::vector<int> axes) {
  std::vector<std::string> names;
  Parameter *own = nullptr, *owner = nullptr;
  for (Parameter* const each : graph.parameters()) {
    names.push_back(each->name);
    if (each->name == parameter) own = each;
    if (each->name == to) owner = each;
  }
  if (own == nullptr) throw Error(unknown_name("parameter", parameter, names));
  if (owner == nullptr) throw Error(unknown_name("parameter", to, names));
  const auto refuse = [&](const std::string& expected) {
    throw Error(fmt::format("parameters {} and {}: expected {}", parameter, to, expected));
  };
  if (own == owner || !own->trained || !owner->trained) refuse("two that are trained");
  const std::size_t rank = owner->value.shape.size();
  bool fits = own->value.size() == owner->value.size();
  if (!axes.empty()) {
    fits = fits && own->value.shape.size() == rank && is_order(axes, rank);
    for (std::size_t i = 0; fits && i < rank; ++i)
      fits = own->value.shape[i] == owner->value.shape[static_cast<std::size_t>(axes[i])];
  }
  if (!fits) refuse("shapes of one tensor");
  set_tied(*own, *owner, std::move(axes));
}

void follow_tied(Graph& graph, const std::function<bool(const Parameter&)>& chosen) {
  const std::vector<Parameter*> parameters = graph.parameters();
  for_each_tied(graph, [&](std::size_t p, const std::size_t* owner) {
    if (owner != nullptr && (!chosen || chosen(*parameters[p])))
      parameters[p]->value = in_tied_order(*parameters[p], parameters[*owner]->value);
  });
}

void untie_changed(Graph& graph) {
  const std::vector<Parameter*> parameters = graph.parameters();
  for_each_tied(graph, [&](std::size_t p, const std::size_t* owner) {
    Parameter& own = *parameters[p];
    if (owner != nullptr && own.value.size() == parameters[*owner]->value.size() &&
        same_elements(in_tied_order(own, parameters[*owner]->value), own.value))
      return;
    own.tied_to.clear();
    own.tied_axes.clear();
    own.trained = true;
  });
}

void join_tied(const Graph& graph, std::vector<Tensor>& gradients) {
  const std::vector<const Parameter*> parameters = graph.parameters();
  for_each_tied(graph, [&](std::size_t p, const std::size_t* owner) {
    Tensor own = std::exchange(gradients[p], Tensor());
    if (own.empty() || owner == nullptr || gradients[*owner].empty()) return;
    Tensor& sum = gradients[*owner];
    own = in_owner_order(*parameters[p], own, sum.shape);
    float* const total = sum.data.data();
    const float* const part = own.data.data();
    for_each_element(sum.size(), [=](std::int64_t i) { total[i] = neutral(total[i] + part[i]); });
  });
}

std::string sharing(const Graph& graph, const Node& node) {
  for (const Parameter& parameter : std::as_const(*node.op).parameters()) {
    const auto other = [&](const Parameter* each) {
      return each->name != parameter.name && trained_for(*each) == trained_for(parameter);
    };
    const std::vector<const Parameter*> parameters = graph.parameters();
    const auto found = std::ranges::find_if(parameters, other);
    if (found != parameters.end())
      return fmt::format("{} is also {}", parameter.name, (*found)->name);
  }
  return "";
}

std::string_view trained_for(const Parameter& parameter) {
  return parameter.is_tied() ? parameter.tied_to : parameter.name;
}

std::vector<std::vector<std::string>> tied_groups(const Graph& graph) {
  const std::vector<const Parameter*> parameters = graph.parameters();
  std::map<std::size_t, std::vector<std::string>> groups;
  for_each_tied(graph, [&](std::size_t p, const std::size_t* owner) {
    if (owner == nullptr) return;
    std::vector<std::string>& names = groups[*owner];
    if (names.empty()) names.push_back(parameters[*owner]->name);
    names.push_back(parameters[p]->name);
  });
  std::vector<std::vector<std::string>> out;
  for (auto& [owner, names] : groups) out.push_back(std::move(names));
  return out;
}

}  // namespace numemu::net
