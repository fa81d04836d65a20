#include "emu/net/gradients.hpp"

#include <fmt/format.h>

#include <utility>

#include "emu/net/backward_plan.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

int find_value(const Graph& graph, std::string_view name) {
  std::vector<std::string> names;
  for (int v = 0; v < static_cast<int>(graph.value_count()); ++v) {
    if (graph.value_name(v) == name) return v;
    names.emplace_back(graph.value_name(v));
  }
  throw Error(fmt::format("network {}: {}", graph.name, unknown_name("value", name, names)));
}

Gradients gradients(const Graph& graph, std::span<const Tensor> inputs, Numerics& numerics,
                    const Step& step, std::span<const std::string> want,
                    std::span<const Injection> inject, std::uint64_t seed) {
  const FloatGuard guard;
  std::vector<int> wanted, ends;
  for (const std::string& name : want) wanted.push_back(find_value(graph, name));
  for (const Injection& injection : inject) ends.push_back(find_value(graph, injection.value));

  std::vector<std::vector<Tensor>> parts(graph.value_count());
  const auto enter = [&](int value, const Tensor& tensor) {
    for (std::size_t i = 0; i < inject.size(); ++i) {
      if (ends[i] != value) continue;
      Tensor gradient = inject[i].gradient(tensor);
      if (gradient.shape != tensor.shape) {
        throw Error(fmt::format("network {}: the gradient injected at {} has shape {}, expected {}",
                                graph.name, inject[i].value, to_string(gradient.shape),
                                to_string(tensor.shape)));
      }
      parts[static_cast<std::size_t>(value)].push_back(std::move(gradient));
    }
  };
  const BackwardPlan plan = plan_backward(graph, ends, wanted);
  Tape tape = forward_training(graph, inputs, numerics, step, seed, plan, enter);
  Gradients result;
  result.output = std::move(tape.output);
  const std::vector<Shape> shapes = tape.shapes;
  std::vector<Tensor> values(graph.value_count());
  result.parameters = backward(graph, std::move(tape), std::move(parts), numerics, plan, &values);
  for (const int v : wanted) {
    const Tensor& gradient = values[static_cast<std::size_t>(v)];
    result.values.push_back(gradient.empty() ? Tensor(shapes[static_cast<std::size_t>(v)])
                                             : gradient);
  }
  return result;
}

}  // namespace numemu::net
