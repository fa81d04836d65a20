// A step by image size: its multiply-adds beside its area, and the weight of its copies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/data/view.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/net/train/size_smoothing.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/image_sizes/cost.hpp"
#include "experiments/image_sizes/questions.hpp"

namespace numemu::experiments::image_sizes {
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
