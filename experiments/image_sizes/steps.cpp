// A step by image size: its multiply-adds beside its area, and the weight of its copies.
#include "experiments/image_sizes/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/size_smoothing.hpp"
#include "experiments/engine/trials.hpp"

namespace numemu::experiments::image_sizes {
namespace {

/// Places of a feature map, [1, height, width, channels], or 1 of a row.
double places(const net::Shape& shape) {
  return static_cast<double>(net::element_count(shape)) / static_cast<double>(shape.back());
}

double rows(const net::PlannedStep& step) {
  return static_cast<double>(step.samples * step.copies);
}

/// Samples and copies at `size` over those at the size of the data set.
double more_rows(const net::TrainOptions& options, std::int64_t own, std::int64_t size) {
  return rows(net::sized_step(options, own, size)) / rows(net::sized_step(options, own, own));
}

}  // namespace

net::Graph& at_size(net::Graph& graph, std::int64_t size) {
  net::Shape& shape = graph.inputs.at(0).shape;
  shape.at(0) = shape.at(1) = size;
  return graph;
}

double sample_cost(const net::Graph& graph, std::int64_t size) {
  const net::Shape input{1, size, size, graph.inputs.at(0).shape.back()};
  const std::vector<net::Shape> shapes = net::value_shapes(graph, std::span(&input, 1));
  double cost = 0;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const auto node = static_cast<std::size_t>(
        std::ranges::find(graph.nodes, layer.node->name, &net::Node::name) - graph.nodes.begin());
    const int read = layer.node->inputs.front();
    const bool first = read < std::ssize(graph.inputs);
    cost += (2 * places(shapes[graph.value_of(node)]) + (first ? 0 : places(shapes[read]))) *
            static_cast<double>(layer.weight->size());
  }
  return cost;
}

double training_cost(const net::Graph& graph, const net::Dataset& data,
                     const net::TrainOptions& options) {
  std::map<std::int64_t, double> of_sample;
  double cost = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    for (const net::PlannedStep& step : net::epoch_steps(options, data, epoch)) {
      const std::int64_t size = step.image == 0 ? data.input_shape()[0] : step.image;
      if (!of_sample.contains(size)) of_sample[size] = sample_cost(graph, size);
      cost += rows(step) * of_sample[size];
    }
  }
  return cost;
}

double area_cost(const net::TrainOptions& options, std::int64_t own, std::int64_t size) {
  return more_rows(options, own, size) * static_cast<double>(size * size) /
         static_cast<double>(own * own);
}

double step_cost(const net::Graph& graph, const net::TrainOptions& options, std::int64_t own,
                 std::int64_t size) {
  return more_rows(options, own, size) * sample_cost(graph, size) / sample_cost(graph, own);
}

namespace {

constexpr double kCostHolds = 0.1;  // of a step's multiply-adds, relative

/// The weight that smoothing gives a step with copies.
struct Smoothed {
  double weight = 0;
  static void fields(auto& self, const auto& visit) { visit("weight", self.weight); }
};

}  // namespace

void add_steps(const ExperimentRun& run, const net::Dataset& data, const Question& asked,
               Conclusion& conclusion) {
  net::TrainOptions options = asked.trial.options;
  const net::Graph graph = initial_network(asked.trial, data);
  ResultTable table{
      fmt::format("Steps of {} by image size, over one of {} pixels with a batch of {}",
                  asked.trial.net, asked.own, options.batch),
      {"pixels", "batch", "by area", "by the shapes of layers"},
      {}};
  for (const net::ImageSizes::Share& share : asked.methods[kBatch].sizes.shares) {
    options.sizes = asked.methods[kBatch].sizes;
    const double area = area_cost(options, asked.own, share.size),
                 shapes = step_cost(graph, options, asked.own, share.size);
    if (share.size != asked.own)
      conclusion.add(
          exact_finding(fmt::format("multiply-adds of a step at {} pixels over those at {}",
                                    share.size, asked.own),
                        area, shapes, std::abs(shapes - 1) <= kCostHolds, near(1, kCostHolds)),
          "area");
    const net::PlannedStep step = net::sized_step(options, asked.own, share.size);
    table.rows.push_back({std::to_string(share.size), std::to_string(step.samples),
                          fmt::format("{:.3f}", area), fmt::format("{:.3f}", shapes)});
    options.sizes = asked.methods[kSmoothed].sizes;
    const net::PlannedStep copied = net::sized_step(options, asked.own, share.size);
    if (copied.copies == 1) continue;
    const auto found = run_cases<Smoothed>(run, std::vector{copied}, [&](const auto& planned) {
      TrainTrial trial = asked.trial;
      trial.options = options;
      Json point = point_of(trial, data);
      point["smoothing at"] = planned.image;
      return TypedTrial<Smoothed>{
          point, fmt::format("smoothing at {} pixels", planned.image), [=, &data] {
            const net::Dataset seen = net::view_of(data, {.image_size = planned.image});
            net::Graph network = initial_network(trial, data);
            net::StepInput input;
            input.samples = net::shuffled(data.train_count(), trial.seed, 0);
            input.samples.resize(static_cast<std::size_t>(
                std::min<std::int64_t>(planned.samples, data.train_count())));
            input.x = seen.train_batch(input.samples, input.targets, &options.augment, trial.seed,
                                       0, planned.copies);
            const net::CopyNorms norms =
                net::copy_norms(at_size(network, planned.image), input, planned.copies, options);
            return Smoothed{norms.one / norms.all};
          }};
    });
    const double most = std::sqrt(static_cast<double>(copied.copies)), weight = found[0].weight;
    conclusion.add(
        exact_finding(fmt::format("weight of {} copies at {} pixels in the first step, from 1 to",
                                  copied.copies, share.size),
                      most, weight, weight >= 1 && weight <= most, {1, most}),
        "weights");
  }
  conclusion.tables.push_back(std::move(table));
}

}  // namespace numemu::experiments::image_sizes
