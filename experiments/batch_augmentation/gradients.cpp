// The variance of mean gradients by the number of copies, predicted from gradients of single
// samples and measured over batches.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/stats/laws.hpp"
#include "experiments/batch_augmentation/read_gradients.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::batch_augmentation {
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
