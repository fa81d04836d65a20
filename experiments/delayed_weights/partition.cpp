#include "experiments/delayed_weights/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/numerics.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::delayed_weights {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

/// Counts the multiply-adds of every layer, and computes zeros.
class Counts final : public net::Numerics {
 public:
  struct Layer {
    std::int64_t forward = 0;
    bool inputs = false, weights = false;  ///< backward computes gradients of them
  };
  void product(const net::Step&, const net::Product& p) override {
    Layer& layer = of[std::string(p.layer)];
    layer.inputs |= p.kind == net::GemmKind::dgrad;
    layer.weights |= p.kind == net::GemmKind::wgrad;
    if (p.kind != net::GemmKind::dgrad && p.kind != net::GemmKind::wgrad)
      layer.forward += static_cast<std::int64_t>(net::multiply_adds(p));
    std::fill_n(p.d, p.d_stack.count() * p.m * p.n, 0.0f);
  }
  std::map<std::string, Layer> of;
};

}  // namespace

std::vector<LayerCost> layer_costs(const net::Graph& graph, std::int64_t samples) {
  std::vector<net::Tensor> one;
  for (const net::Shape& shape : net::batch_shapes(graph, 1)) one.emplace_back(shape);
  Counts counts;
  net::Tape tape = net::forward_training(graph, one, counts);
  net::Tensor gradient(tape.output.shape);
  net::backward(graph, std::move(tape), std::move(gradient), counts);

  const std::vector<net::Shape> shapes =
      net::value_shapes(graph, net::batch_shapes(graph, samples));
  const std::vector<net::Uses> kept = net::plan_backward(graph).kept;
  const std::vector<int> last = net::last_readers(graph);
  const auto bytes = [&](std::size_t value) {
    return kFloatBytes * net::element_count(shapes[value]);
  };
  std::vector<LayerCost> layers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const net::Node& node = graph.nodes[i];
    const bool multiplies = !node.op->products().empty();
    if (layers.empty() || (multiplies && layers.back().forward > 0)) {
      layers.emplace_back();
      for (std::size_t v = 0; v < graph.inputs.size() + i; ++v) {
        if (last[v] >= static_cast<int>(i)) layers.back().inputs += bytes(v);
      }
    }
    LayerCost& layer = layers.back();
    if (layer.name.empty() || (multiplies && layer.forward == 0)) layer.name = node.name;
    for (const net::OpProduct& product : node.op->products()) {
      const Counts::Layer& count = counts.of[node.name + std::string(product.suffix)];
      layer.forward += samples * count.forward;
      layer.backward += samples * count.forward * (int{count.inputs} + int{count.weights});
    }
    for (const net::Parameter& parameter : std::as_const(*node.op).parameters())
      layer.parameters += kFloatBytes * parameter.value.size();
    const auto value = static_cast<std::size_t>(graph.value_of(i));
    if (kept[value].any()) layer.kept += bytes(value);
    layer.kept += kFloatBytes * net::operator_memory(graph, i, shapes).context;
  }
  return layers;
}

std::int64_t Plan::devices() const {
  std::int64_t sum = 0;
  for (const PlannedStage& stage : stages) sum += stage.replicas;
  return sum;
}

std::int64_t Plan::in_flight() const { return stages.front().in_flight * stages.front().replicas; }

Pipeline Plan::pipeline(std::int64_t micro_batches, std::int64_t batches) const {
  Pipeline pipeline{Schedule::two_bw, {}, micro_batches, batches};
  for (const PlannedStage& stage : stages) pipeline.stages.push_back(stage.times);
  return pipeline;
}

std::int64_t stage_bytes(const std::vector<LayerCost>& layers, const PlannedStage& stage,
                         std::int64_t copies) {
  std::int64_t parameters = 0, kept = 0;
  for (std::size_t i = stage.first; i < stage.end; ++i) {
    parameters += layers[i].parameters;
    kept += layers[i].kept;
  }
  return copies * parameters + stage.in_flight * layers[stage.first].inputs +
         (stage.recomputes ? 1 : stage.in_flight) * kept;
}

std::optional<PlannedStage> stage_at(const std::vector<LayerCost>& layers, const Machine& machine,
                                     std::size_t first, std::size_t end, std::int64_t replicas,
                                     bool recomputes, std::int64_t next, Ticks period) {
  if (replicas > std::min(machine.micro_batches, machine.replicas)) return std::nullopt;
  std::int64_t forward = 0, backward = 0, parameters = 0;
  for (std::size_t i = first; i < end; ++i) {
    forward += layers[i].forward;
    backward += layers[i].backward;
    parameters += layers[i].parameters;
  }
  if (recomputes) backward += forward;
  const auto link = [&](std::size_t layer) {  // none before the first and behind the last
    return layer == 0 || layer == layers.size() ? 0 : machine.link_byte * layers[layer].inputs;
  };
  PlannedStage stage{first, end, replicas, recomputes};
  stage.times = {
      .forward = machine.multiply_add * forward,
      .backward = machine.multiply_add * backward,
      .link = link(end),
      .reduce = (2 * (replicas - 1) * machine.reduce_byte * parameters + replicas - 1) / replicas,
      .replicas = replicas};
  const Ticks longest =
      std::max({stage.times.forward + stage.times.backward, stage.times.link, link(first)});
  if (longest > replicas * period) return std::nullopt;
  const std::int64_t in_flight = in_flight_after(stage.times, next, period);
  stage.in_flight = stage.times.in_flight = in_flight / replicas;
  stage.bytes = stage_bytes(layers, stage, machine.copies);
  if (stage.bytes > machine.memory ||
      (machine.micro_batches + 1 - in_flight) * period < stage.times.reduce)
    return std::nullopt;
  return stage;
}

namespace {

/// Stages from a layer on, over exactly so many devices.
struct Rest {
  std::optional<PlannedStage> stage;  ///< the first of them
  std::int64_t in_flight = 0;
};

class Programme {
 public:
  Programme(const std::vector<LayerCost>& layers, const Machine& machine, Ticks period)
      : layers_(layers), machine_(machine), period_(period), rests_(layers.size() + 1) {
    for (std::vector<Rest>& rest : rests_)
      rest.resize(static_cast<std::size_t>(machine.devices) + 1);
    for (std::size_t first = layers.size(); first-- > 0;) {
      for (std::int64_t devices = 1; devices <= machine.devices; ++devices) find(first, devices);
    }
  }

  /// With the fewest devices; nothing where no stages fit.
  std::optional<Plan> plan() const {
    for (std::int64_t devices = 1; devices <= machine_.devices; ++devices) {
      if (!rest(0, devices).stage) continue;
      Plan plan{period_, {}};
      std::int64_t left = devices;
      for (std::size_t first = 0; first < layers_.size(); first = plan.stages.back().end) {
        plan.stages.push_back(*rest(first, left).stage);
        left -= plan.stages.back().replicas;
      }
      return plan;
    }
    return std::nullopt;
  }

 private:
  const Rest& rest(std::size_t first, std::int64_t devices) const {
    return rests_[first][static_cast<std::size_t>(devices)];
  }

  void find(std::size_t first, std::int64_t devices) {
    Rest& best = rests_[first][static_cast<std::size_t>(devices)];
    for (std::size_t end = first + 1; end <= layers_.size(); ++end) {
      for (std::int64_t replicas = 1; replicas <= devices; ++replicas) {
        const Rest& behind = rest(end, devices - replicas);
        const bool last = end == layers_.size();
        if (last ? replicas != devices : !behind.stage) continue;
        for (const bool recomputes : {false, true}) {
          const auto stage = stage_at(layers_, machine_, first, end, replicas, recomputes,
                                      behind.in_flight, period_);
          if (!stage) continue;
          const std::int64_t in_flight = stage->in_flight * replicas;
          if (!best.stage || in_flight < best.in_flight) best = {stage, in_flight};
        }
      }
    }
  }

  const std::vector<LayerCost>& layers_;
  const Machine& machine_;
  Ticks period_;
  std::vector<std::vector<Rest>> rests_;  ///< [first layer][devices]
};

}  // namespace

std::optional<Plan> plan_stages(const std::vector<LayerCost>& layers, const Machine& machine) {
  if (layers.empty() || machine.devices < 1)
    throw Error("partition: expected layers and at least one device");
  // Longer than any pass, transfer and sum: nothing changes from here on.
  double most = 1;
  for (const LayerCost& layer : layers) {
    const auto of = [](Ticks each, std::int64_t count) {
      return static_cast<double>(each) * static_cast<double>(count);
    };
    most += of(machine.multiply_add, 2 * layer.forward + layer.backward) +
            of(machine.link_byte, 2 * layer.inputs) + of(machine.reduce_byte, 2 * layer.parameters);
  }
  const auto factor = static_cast<double>(std::max(machine.devices, machine.micro_batches) + 1);
  if (!(4 * factor * most < 0x1p62))
    throw Error(
        fmt::format("partition: passes, transfers and sums of {:.2g} ticks: expected less "
                    "than 2^60 over the devices and over the micro-batches",
                    most));
  auto longest = static_cast<Ticks>(most);
  std::optional<Plan> best = Programme(layers, machine, longest).plan();
  if (!best) return best;
  Ticks shortest = 1;
  while (shortest < longest) {
    const Ticks middle = shortest + (longest - shortest) / 2;
    if (std::optional<Plan> plan = Programme(layers, machine, middle).plan()) {
      longest = middle;
      best = std::move(plan);
    } else {
      shortest = middle + 1;
    }
  }
  return best;
}

}  // namespace numemu::experiments::delayed_weights
