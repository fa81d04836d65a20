#include "experiments/batch_augmentation/read_gradients.hpp"

#include <fmt/format.h>

#include <utility>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/train/shuffle.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::batch_augmentation {
namespace {

constexpr std::int64_t kGradientEpoch = 0;  // of augmentation's draws

/// The network whose gradients are read: after its training in float32, without batch
/// normalisation.
net::Graph subject(const TrainTrial& warm, const net::Dataset& data) {
  net::Graph graph = trained_in_float32(warm, data);
  net::fold_batch_norm(graph);
  return graph;
}

/// Gradients at one network of training samples in a drawn order behind the first ones.
class Reader {
 public:
  Reader(const Group& group, const TrainTrial& warm, const net::Dataset& data)
      : augment_(group.augment),
        seed_(warm.seed),
        data_(data),
        graph_(subject(warm, data)),
        first_(first_sample(group, warm, data)),
        order_(net::shuffled(data.train_count() - first_, seed_, 0)) {}

  const net::Graph& graph() const { return graph_; }

  std::vector<std::int64_t> samples(std::int64_t place, std::int64_t count) const {
    std::vector<std::int64_t> ids(order_.begin() + place, order_.begin() + place + count);
    for (std::int64_t& id : ids) id += first_;
    return ids;
  }

  /// The gradient of the mean loss, all parameters in a row; with `copy` that of one copy alone.
  std::vector<float> gradient(const std::vector<std::int64_t>& ids, std::int64_t copies,
                              net::Numerics& numerics, std::int64_t copy = kNone) {
    net::Targets targets;
    net::Tensor x = data_.train_batch(ids, targets, &augment_, seed_, kGradientEpoch, copies);
    if (copy != kNone) {
      const std::int64_t size = x.size() / copies;
      x.data = {x.data.begin() + copy * size, x.data.begin() + (copy + 1) * size};
      x.shape[0] = 1;
      targets.classes.resize(1);
    }
    const TrainingPass pass = training_pass(graph_, x, targets.classes, numerics, step_++, seed_);
    std::vector<float> all;
    for (const net::Tensor& g : pass.gradients)
      for (const float value : g.data) all.push_back(value / pass.scale);
    return all;
  }

 private:
  net::Augmentation augment_;
  std::uint64_t seed_;
  net::Dataset data_;  // counts its own test reads
  net::Graph graph_;
  std::int64_t first_;
  std::vector<std::int64_t> order_;
  std::int64_t step_ = 0;
};

MomentGroups read_single(Reader reader, const GradientPlan& plan, std::int64_t copies) {
  net::Numerics float32;
  GradientSums sums(kGroups);
  for (std::int64_t n = 0; n < plan.single; ++n) {
    std::vector<std::vector<float>> of_sample;
    for (std::int64_t copy = 0; copy < copies; ++copy)
      of_sample.push_back(reader.gradient(reader.samples(n, 1), copies, float32, copy));
    sums.add(static_cast<std::size_t>(n * kGroups / plan.single), of_sample);
  }
  return sums.groups();
}

Measured read_batches(Reader reader, const TrainTrial& trial, const GradientPlan& plan,
                      const std::vector<std::int64_t>& copies) {
  policies::RecipeNumerics numerics(parsed_recipe(trial), reader.graph());
  Measured measured;
  for (const std::int64_t m : copies) {
    GradientSums sums(kGroups);
    for (std::int64_t b = 0; b < plan.batches; ++b) {
      const std::vector<float> mean[] = {
          reader.gradient(reader.samples(plan.single + b * plan.batch, plan.batch), m, numerics)};
      sums.add(static_cast<std::size_t>(b * kGroups / plan.batches), mean);
    }
    measured.by_copies.push_back({m, sums.groups()});
  }
  return measured;
}

}  // namespace

GradientPlan gradient_plan(const Settings& settings) {
  return {settings.integer("gradient_samples"), settings.integer("gradient_batch"),
          settings.integer("gradient_batches")};
}

std::int64_t first_sample(const Group& group, const TrainTrial& trial, const net::Dataset& data) {
  if (group.trained_before()) return 0;
  return trial.train_samples == 0 ? data.train_count() : trial.train_samples;
}

void require_single_gradients(const TrainTrial& trial, const net::Dataset& data) {
  net::Graph graph = initial_network(trial, data);
  net::fold_batch_norm(graph);
  for (const net::Node& node : graph.nodes) {
    if (node.op->kind() == "batch_norm")
      throw usage_error(
          fmt::format("--set: nets: {} of {} ties the samples of a batch and cannot be folded",
                      node.name, trial.net));
  }
}

ReadGradients read_gradients(const ExperimentRun& run, const Group& group, const std::string& net,
                             const net::Dataset& data) {
  const GradientPlan plan = gradient_plan(run.settings);
  TrainTrial warm = group.trial(run.settings, net, "float32");
  warm.options.epochs = group.trained_before() ? 0 : 1;
  const std::int64_t most = group.copies.back();
  const Json network = point_of(warm, data);
  std::vector<Trial> trials = {untyped(TypedTrial<OfCopies>{
      {{"single gradients", network}, {"samples", plan.single}, {"copies", most}},
      short_name(net) + ": single gradients",
      [=, &data] {
        return OfCopies{most, read_single(Reader(group, warm, data), plan, most)};
      }})};
  for (const std::string& format : group.formats) {
    const TrainTrial trial = group.trial(run.settings, net, format);
    trials.push_back(untyped(TypedTrial<Measured>{
        {{"gradients of batches", network},
         {"recipe", parsed_recipe(trial).json()},
         {"behind", plan.single},
         {"batch", plan.batch},
         {"batches", plan.batches},
         {"copies", group.copies}},
        fmt::format("{} in {}: gradients of batches", short_name(net), format),
        [=, &data] {
          return read_batches(Reader(group, warm, data), trial, plan, group.copies);
        }}));
  }
  const std::vector<Json> results = run_trials_at_once(run, trials);
  ReadGradients all{measured<OfCopies>(results.front()), {}};
  for (std::size_t f = 1; f < results.size(); ++f)
    all.in_formats.push_back(measured<Measured>(results[f]));
  return all;
}

}  // namespace numemu::experiments::batch_augmentation
