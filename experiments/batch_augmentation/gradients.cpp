// The variance of mean gradients by the number of copies, predicted from gradients of single
// samples and measured over batches.
#include "experiments/batch_augmentation/gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/laws.hpp"
#include "emu/stats/resampling.hpp"
#include "emu/stats/squares.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/array.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::batch_augmentation {

double mean_variance(double sigma2, double rho, double samples, double copies) {
  return sigma2 / samples * (rho + (1 - rho) / copies);
}

Moments moments(const MomentGroups& groups, std::int64_t copies, std::int64_t left_out) {
  double n = 0, squares = 0, means = 0, along = 0;
  for (const MomentGroup& group : groups) along += group.along;
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const MomentGroup& group = groups[static_cast<std::size_t>(g)];
    if (g == left_out) {
      along += group.own - 2 * group.along;  // |T - S|^2
      continue;
    }
    n += static_cast<double>(group.samples);
    squares += group.squares;
    means += group.means;
  }
  const auto of = static_cast<double>(copies);
  return {.one = squares / n,
          .same = copies > 1 ? (of * means - squares) / n / (of - 1) : NAN,
          .other = (along - means) / (n * (n - 1))};
}

Estimate estimate(std::int64_t groups,
                  const std::function<double(std::int64_t left_out)>& statistic) {
  return {statistic(kNone), stats::jackknife_error(groups, statistic)};
}

void GradientSums::add(std::size_t group, std::span<const std::vector<float>> copies) {
  const std::size_t size = copies.front().size();
  const auto of = static_cast<double>(copies.size());
  std::vector<double>& sum = sums_[group];
  sum.resize(size);
  std::vector<double> mean(size);
  MomentGroup& to = groups_[group];
  ++to.samples;
  for (const std::vector<float>& g : copies) {
    to.squares += stats::sum_of_squares(std::ssize(g), g.data()) / of;
    for (std::size_t i = 0; i < size; ++i) mean[i] += double{g[i]};
  }
  for (std::size_t i = 0; i < size; ++i) {
    mean[i] /= of;
    sum[i] += mean[i];
  }
  to.means += pairwise_sum(std::ssize(mean), [&](std::int64_t i) {
    const double m = mean[static_cast<std::size_t>(i)];
    return m * m;
  });
}

MomentGroups GradientSums::groups() const {
  MomentGroups all = groups_;
  std::vector<double> total;
  for (const std::vector<double>& sum : sums_) {
    total.resize(std::max(total.size(), sum.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) total[i] += sum[i];
  }
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return pairwise_sum(std::ssize(a), [&](std::int64_t i) {
      return a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(i)];
    });
  };
  for (std::size_t g = 0; g < all.size(); ++g) {
    all[g].along = product(sums_[g], total);
    all[g].own = product(sums_[g], sums_[g]);
  }
  return all;
}

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

namespace {

constexpr double kFormatTolerance = 0.1;  // relative, of a variance under few bits

double joint_error(const Estimate& a, const Estimate& b) {
  return std::sqrt(a.error * a.error + b.error * b.error);
}

/// From the middle to either end of the 95 % interval of a jackknife.
double half(const Estimate& estimate) {
  return stats::student_quantile(kGroups - 1, 0.025) * estimate.error;
}

}  // namespace

std::vector<double> add_gradients(const ExperimentRun& run, const Group& group,
                                  const std::string& net, const net::Dataset& data,
                                  Conclusion& conclusion) {
  const ReadGradients found = read_gradients(run, group, net, data);
  const GradientPlan plan = gradient_plan(run.settings);
  const std::int64_t drawn = group.copies.back();
  const auto batch = static_cast<double>(plan.batch);
  const auto from_single = [&](const auto& statistic) {
    return estimate(kGroups, [&](std::int64_t out) {
      return statistic(moments(found.single.groups, drawn, out));
    });
  };
  const auto variance = [&](const Moments& m, std::int64_t copies) {
    return mean_variance(m.sigma2(), m.rho(), batch, static_cast<double>(copies));
  };
  const std::string name = short_name(net);
  const Estimate rho = from_single([](const Moments& m) { return m.rho(); });
  ResultTable table{
      fmt::format("{}: mean gradients of {}, {} batches, {}", name, counted(plan.batch, "sample"),
                  plan.batches, counted(plan.single, "single sample")),
      {"format", "copies", "variance, predicted in float32", "measured", "measured / predicted",
       "|mu|^2", "rho"},
      {}};
  Chart chart{.title = fmt::format("Variance of the mean gradient, {}", name),
              .caption = fmt::format("{} samples; predictions from float32 gradients of single "
                                     "samples, rho = {:.3f}. 95 % intervals.",
                                     plan.batch, rho.value),
              .x = "copies of a sample",
              .y = "E|g - mu|^2",
              .log_x = true,
              .log_y = true};
  std::vector<double> ratios;
  const Measured& float32 = found.in_formats.front();
  for (std::size_t f = 0; f < group.formats.size(); ++f) {
    const std::string& format = group.formats[f];
    const Measured& measured = found.in_formats[f];
    const bool exact = f == 0;
    const Estimate own = estimate(kGroups, [&](std::int64_t out) { return measured.rho(out); });
    for (const OfCopies& of : measured.by_copies) {
      const Estimate predicted =
          from_single([&](const Moments& m) { return variance(m, of.copies); });
      const Estimate seen = estimate(kGroups, [&](std::int64_t o) { return of.variance(o); });
      const std::string what =
          fmt::format("{} in {}: variance of the mean gradient, M = {}", name, format, of.copies);
      const double error = joint_error(predicted, seen);
      if (exact) {
        conclusion.add(closed_form(what, predicted.value, seen.value, error), "variance");
        const Estimate square = from_single(
                           [&](const Moments&m) { return m.other + variance(m, of.copies); }),
                       length = estimate(kGroups, [&](std::int64_t o) { return of.square(o); });
        conclusion.add(closed_form(fmt::format("{}: mean square of the mean gradient, M = {}", name,
                                               of.copies),
                                   square.value, length.value, joint_error(square, length)),
                       "square");
      } else {
        conclusion.add(model_finding(what, predicted.value, seen.value, error,
                                     kFormatTolerance * predicted.value),
                       "formats");
      }
      const auto x = static_cast<double>(of.copies);
      chart.of(format + " measured")
          .points.push_back(with_error({.x = x, .y = seen.value}, seen.error));
      if (exact) {
        chart.of(format + " predicted", true)
            .points.push_back(with_error({.x = x, .y = predicted.value}, predicted.error));
        ratios.push_back(from_single([&](const Moments& m) {
                           return variance(m, of.copies) / variance(m, 1);
                         }).value);
      }
      table.rows.push_back({format, fmt::format("{}", of.copies),
                            fmt::format("{:.4g} +- {:.2g}", predicted.value, half(predicted)),
                            fmt::format("{:.4g} +- {:.2g}", seen.value, half(seen)),
                            fmt::format("{:.3f}", seen.value / predicted.value),
                            fmt::format("{:.4g}", moments(of.groups, 1).other),
                            half_text(own.value, half(own), 3)});
    }
    if (!exact) {
      const Estimate lower =
          estimate(kGroups, [&](std::int64_t o) { return measured.rho(o) - float32.rho(o); });
      conclusion.add(
          interval_finding(fmt::format("{}: rho in {} minus that in float32", name, format), 0,
                           lower.value, {lower.value - half(lower), lower.value + half(lower)},
                           at_most(0)),
          "rho");
    }
  }
  conclusion.sentences.push_back(fmt::format(
      "{}: two copies of a sample have gradients of correlation {} in float32; {} copies take the "
      "variance of the mean gradient to {:.3f} of that of one, never below rho.",
      name, half_text(rho.value, half(rho), 3), drawn, ratios.back()));
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
  return ratios;
}

}  // namespace numemu::experiments::batch_augmentation
