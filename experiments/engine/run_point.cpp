#include "experiments/engine/run_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/data/view.hpp"
#include "emu/net/math.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/profile.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/row_noise.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/predict/accuracy.hpp"
#include "experiments/predict/injected_network.hpp"
#include "experiments/predict/layer_powers.hpp"
#include "experiments/predict/left_out.hpp"
#include "formats/portable/math.hpp"
#include "formats/version.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/canonical_json.hpp"
#include "policies/notes/notes.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "policies/recipe/fixed_ranges.hpp"

namespace numemu::experiments {
namespace {

constexpr double kLn2 = 0.693147180559945309;

RowMetrics metrics_of(const net::Dataset& data, const net::Evaluation& evaluation,
                      const net::Evaluation& baseline, const std::vector<RowScore>& scores) {
  RowMetrics m;
  m.n = evaluation.n;
  if (data.target() != net::TargetKind::classes) return m;
  const double n = static_cast<double>(evaluation.n);
  const auto [top1, difference] = top1_intervals(data, evaluation, baseline, scores);
  m.top1 = row_number(evaluation.correct / n);
  m.ci95 = row_ends(top1.low, top1.high);
  m.loss = row_number(evaluation.loss);
  m.baseline_top1 = row_number(baseline.correct / n);
  m.difference = row_number((evaluation.correct - baseline.correct) / n);
  m.difference_ci95 = row_ends(difference.low, difference.high);
  m.changed = row_number(changed_answers(evaluation, baseline));
  if (data.targets_per_sample() == 1) {
    const stats::PairedAnswers answers = paired_answers(evaluation, baseline);
    m.gained = answers.only1;
    m.lost = answers.only2;
  }
  if (data.targets_per_sample() == 1 || data.kind() != net::DataKind::text) return m;
  const bool tokens = data.text_unit() == "token";
  m.perplexity = row_number(net::exp(static_cast<float>(evaluation.loss)));
  (tokens ? m.bits_per_token : m.bits_per_character) = row_number(evaluation.loss / kLn2);
  (tokens ? m.baseline_bits_per_token : m.baseline_bits_per_character) =
      row_number(baseline.loss / kLn2);
  return m;
}

/// Where every class is among the five largest logits.
bool gives_top5(const Workbench& bench) {
  constexpr std::int64_t kTop = 5;
  const net::Graph& graph = bench.trained.graph;
  if (std::ranges::find(bench.scores, net::OutputScore(&net::find_score("top5"))) ==
      bench.scores.end())
    return false;
  const std::vector<net::Shape> values = net::value_shapes(graph, net::batch_shapes(graph, 1));
  return !values.back().empty() && values.back().back() <= kTop;
}

/// Calibration samples that the reference read, with those it leaves out.
std::int64_t read_by_reference(const Workbench& bench) {
  std::int64_t read = bench.reference.samples();
  for (const std::int64_t sample : bench.odd_samples) read += sample < read;
  return read;
}

/// The calibration samples behind those of the reference, without those that hold NaN or infinite
/// numbers.
MoreSamples behind_reference(const Workbench& bench) {
  const std::int64_t read = read_by_reference(bench);
  const auto batch = [&bench, read](std::int64_t first, std::int64_t count) {
    net::Targets targets;
    net::Tensor all = bench.dataset.calibration_batch(read + first, count, targets);
    if (keep_finite(all) == 0) return std::vector<net::Tensor>();
    return bench.dataset.inputs_of(std::move(all));
  };
  return {bench.dataset.calibration_count() - read, batch};
}

/// `reads`: something read calibration samples, which scales may do without.
std::vector<policies::Note> notes_on_data(const Point& point, const Workbench& bench,
                                          const std::set<std::int64_t>& odd_samples,
                                          std::int64_t calibration, bool reads) {
  using policies::NoteKind;
  std::vector<policies::Note> notes;
  const std::string note = net::calibration_note(bench.dataset, calibration > 0 || reads);
  if (!note.empty()) notes.push_back({NoteKind::calibration_data, note});
  for (const std::string& baseline :
       policies::notes_on_baseline(bench.trained.path, bench.trained.before.has_value()))
    notes.push_back({NoteKind::baseline, baseline});
  if (const std::int64_t asked = point.recipe.calibration().samples;
      calibration > 0 && calibration < asked)
    notes.push_back(
        {NoteKind::few_samples,
         fmt::format("Calibrated on {} samples, as the data set has no more; the recipe asks for "
                     "{}.",
                     calibration, asked)});
  if (gives_top5(bench))
    notes.push_back(
        {NoteKind::top5, "top5 of a network with five outputs or fewer is 100 % of any answers."});
  const auto odd = std::distance(odd_samples.begin(), odd_samples.lower_bound(calibration));
  if (odd > 0)
    notes.push_back({NoteKind::odd_samples,
                     fmt::format("{} of the {} calibration samples hold NaN or infinite numbers, "
                                 "the first is sample {}.",
                                 odd, calibration, *odd_samples.begin())});
  const std::int64_t read = read_by_reference(bench);
  if (read > bench.reference.samples())
    notes.push_back(
        {NoteKind::left_out_samples,
         fmt::format("SQNR and predictions leave out {} of the first {} calibration samples, which "
                     "hold NaN or infinite numbers; the first is sample {}.",
                     read - bench.reference.samples(), read, *bench.odd_samples.begin())});
  return notes;
}

JudgedSums judged_sums(const Point& point, const Workbench& bench,
                       const net::Evaluation& evaluation) {
  const std::vector<std::string>& metrics = point.row.metrics;
  const std::string first = metrics.empty() ? "" : metrics.front();
  for (const net::OutputScore& score : judged_scores(bench.dataset, first)) {
    const auto found = std::ranges::find(bench.scores, score);
    if (found != bench.scores.end())
      return {score.score, evaluation.tables.at(found - bench.scores.begin())};
  }
  return {};
}

double cost_of(const Point& point, const policies::BoundRecipe& recipe, const Workbench& bench) {
  return point_cost(bench.eval_images, bench.reference.samples(),
                    calibration_samples(recipe, bench.dataset.calibration_count()),
                    makes_predictions(point));
}

/// Freezes the numerics. Returns whether calibration read samples: else an earlier point's
/// statistics serve, or nothing is calibrated.
bool calibrate_point(policies::RecipeNumerics& numerics, std::int64_t calibration,
                     const Workbench& bench, PointCache& cache, Work& work) {
  if (calibration > 0) work.begin("calibration", calibration_cost(calibration));
  const net::Section section(net::SectionKind::data, "", "calibration");
  bool reads = false;
  numerics.freeze(
      bench.trained.graph, bench.dataset.calibration_count(),
      [&](std::int64_t first, std::int64_t count) {
        reads = true;
        net::Targets targets;
        net::Tensor batch = bench.dataset.calibration_batch(first, count, targets);
        for (const std::int64_t i : odd_samples_of(batch)) cache.add_odd_sample(first + i);
        return bench.dataset.inputs_of(std::move(batch));
      },
      cache.calibrations());
  if (!reads && calibration > 0) work.skip();
  return reads;
}

/// Predicts the noise of tensors and layers, and from it the accuracy.
std::optional<AccuracyPrediction> predict_point(NoiseFigures& noise,
                                                const policies::RecipeNumerics& numerics,
                                                const Workbench& bench, PointCache& cache,
                                                Work& work) {
  const net::Section section(net::SectionKind::data, "", "predictions");
  const policies::BoundRecipe& recipe = numerics.bound();
  const std::int64_t samples = bench.reference.samples();
  work.begin("predictions", tensors_cost(samples));
  noise.tensors =
      predict_tensors(recipe, bench.reference, cache.fits(), numerics.roles().static_scales());
  work.begin("predictions", layers_cost(samples));
  InjectedNetwork injected(recipe, bench.reference, numerics.roles().static_scales());
  noise.predicted = predict_layers(injected, bench.reference, kProbes, behind_reference(bench));
  LayerPrediction known = noise.predicted;  // the run may show more that is left out
  leave_out(known, recipe, noise.tensors);
  work.begin("predicted accuracy", accuracy_cost(bench.eval_images));
  const AccuracyReference* const float32 =
      std::isfinite(known.output.db) ? cache.accuracy(bench) : nullptr;
  if (float32 == nullptr) {
    work.skip();
    return std::nullopt;
  }
  // What a gain common to all logits adds changes no answer.
  const net::Tensor& logits = bench.reference.logits;
  const double power = power_of(logits.size(), logits.data.data(), logits.data.data()).signal;
  return predict_accuracy(
      injected, *float32,
      std::sqrt(power * portable::pow(10, -0.1 * noise.predicted.output.gained_db)));
}

/// What the quantized network gave, and where its numbers were lost.
struct MeasuredPoint {
  net::Evaluation evaluation;
  std::optional<LostNumbers> lost_reference, lost_test;
};

/// Runs the quantized network on the samples of the reference, whose noise it measures, then on the
/// test images. What overflowed there changes the predictions.
MeasuredPoint measure_point(NoiseFigures& noise, policies::RecipeNumerics& numerics,
                            const Workbench& bench, Work& work) {
  const net::Graph& graph = bench.trained.graph;
  const policies::BoundRecipe& recipe = numerics.bound();
  MeasuredPoint measured;
  work.begin("noise on the reference", noise_cost(bench.reference.samples()));
  NotFinite lost(graph, numerics);
  numerics.roles().hear_units([&](const net::Product& p) { lost.add(p); });
  net::Observing observing(
      numerics, {.after = [&](const net::Step&, const net::Product& p) { lost.add_stored(p); },
                 .stepped = [&](std::int64_t n) { work.add(n, bench.eval_images); }});
  noise.measured = measure_layers(graph, observing, bench.reference, behind_reference(bench));
  withhold_fused(noise.measured, numerics);
  if (noise.predictions) lost.add_overflows(noise.predicted);
  measure_tensors(noise.tensors, recipe, bench.reference, &numerics);
  measured.lost_reference = lost.lost(noise.measured.samples, noise.measured.outputs);
  lost.reset();
  numerics.roles().reset_counts();
  work.begin("evaluation", evaluation_cost(bench.eval_images));
  measured.evaluation = net::evaluate(graph, bench.dataset, net::Split::test, bench.eval_images,
                                      observing, bench.scores);
  measured.lost_test = lost.lost(measured.evaluation.samples, measured.evaluation.outputs);
  if (noise.predictions) {
    lost.count_overflows(noise.predicted);
    leave_out(noise.predicted, recipe, noise.tensors);
  }
  numerics.roles().hear_units(nullptr);
  return measured;
}

/// On the recipe and the network.
std::vector<policies::Note> notes_on_point(const Point& point,
                                           const policies::RecipeNumerics& numerics,
                                           const Workbench& bench) {
  using policies::NoteKind, policies::notes_of;
  const net::Graph& graph = bench.trained.graph;
  const policies::BoundRecipe& recipe = numerics.bound();
  std::vector<policies::Note> all;
  for (const std::vector<policies::Note>& notes :
       {policies::notes_on_training(recipe.recipe(),
                                    static_cast<std::size_t>(point.row.stage.value_or(0))),
        policies::recipe_notes(recipe, bench.reference),
        notes_of(NoteKind::ranges, policies::notes_on_ranges(recipe)),
        notes_of(NoteKind::first_output,
                 policies::notes_on_outputs(graph, "the others have their metrics")),
        notes_of(NoteKind::quantizers, policies::notes_on_quantizers(graph, bench.trained.path)),
        policies::notes_on_calibration(recipe, point.sets_calibration),
        policies::notes_on_tables(recipe), policies::notes_on_counts(numerics),
        makes_predictions(point) ? model_notes(recipe) : std::vector<policies::Note>()})
    all.insert(all.end(), notes.begin(), notes.end());
  return all;
}

void add_notes(Row& row, const std::vector<policies::Note>& notes) {
  for (const policies::Note& note : notes) {
    row.notes.push_back(note.text);
    row.note_kinds.emplace_back(policies::to_string(note.kind));
  }
}

}  // namespace

void add_metrics(Row& row, const net::Dataset& data, const std::vector<net::OutputScore>& which,
                 const net::Evaluation& evaluation, const net::Evaluation& baseline) {
  row.scores = scores_of(data, which, evaluation, baseline);
  row.metrics = metrics_of(data, evaluation, baseline, row.scores);
}

RowPoint identify(const Point& point, const Workbench& bench) {
  return identify(point, bench.dataset, bench.trained, bench.eval_images);
}

RowPoint identify(const Point& point, const net::Dataset& dataset, const TrainedNet& trained,
                  std::int64_t images) {
  RowPoint row = point.row;
  row.eval_images = images;
  row.data = dataset.name();
  static_cast<NetworkIdentity&>(row) = identity_of(trained);
  row.images = dataset.digest();
  return row;
}

std::int64_t calibration_samples(const policies::BoundRecipe& recipe, std::int64_t available) {
  const policies::CalibrationPolicy& calibration = recipe->calibration();
  const bool none = policies::calibrated_operands(recipe, calibration).empty() &&
                    !policies::quantizes_edges(recipe);
  return none ? 0 : std::min(available, calibration.samples);
}

net::Dataset with_reference(net::Dataset dataset, const policies::BoundRecipe& recipe) {
  if (dataset.calibration_count() > 0) return dataset;
  if (calibration_samples(recipe, 1) > 0) throw_no_calibration(dataset);
  return net::with_test_reference(dataset);
}

net::Dataset with_reference(net::Dataset dataset, const TrainedNet& trained,
                            const std::vector<Point>& points) {
  if (dataset.calibration_count() > 0) return dataset;
  net::Dataset out = dataset;
  for (const Point& point : points)
    out = with_reference(dataset, bound_recipe(point.recipe, trained, point.where));
  return out;
}

double cost_of(const Point& point, const Workbench& bench) {
  return cost_of(point, bound_recipe(point.recipe, bench.trained, point.where), bench);
}

Row run_point(const Point& point, const Workbench& bench, const OnWork& on_work) {
  PointCache cache;
  return run_point(point, bench, cache, on_work);
}

Row run_point(const Point& point, const Workbench& bench, PointCache& cache, const OnWork& on_work,
              JudgedSums* judged) {
  const net::Graph& graph = bench.trained.graph;
  const policies::BoundRecipe recipe = bound_recipe(point.recipe, bench.trained, point.where);
  const std::int64_t calibration = calibration_samples(recipe, bench.dataset.calibration_count());
  Work work(on_work, cost_of(point, recipe, bench));
  policies::RecipeNumerics numerics(recipe);
  const bool reads = calibrate_point(numerics, calibration, bench, cache, work);
  NoiseFigures noise{makes_predictions(point), {}, {}, {}};
  std::optional<AccuracyPrediction> accuracy;
  if (noise.predictions) {
    accuracy = predict_point(noise, numerics, bench, cache, work);
  } else {
    noise.predicted.output_left_out = "predictions are turned off";
  }
  const MeasuredPoint measured = measure_point(noise, numerics, bench, work);

  Row row;
  row.point = identify(point, bench);
  row.key = row_key(row.point);
  row.recipe_name = point.recipe_name;
  const policies::EffectiveBits bits = policies::effective_bits(recipe, bench.reference);
  row.bits = {row_number(bits.weight), row_number(bits.activation),
              row_number(bits.product_weight)};
  row.baseline_has = policies::own_quantizers(graph, bench.trained.path);
  add_metrics(row, bench.dataset, bench.scores, measured.evaluation, bench.baseline);
  if (bench.dataset.target() == net::TargetKind::classes && bench.dataset.targets_per_sample() == 1)
    row.answers = row_answers(measured.evaluation.right);
  if (judged != nullptr) *judged = judged_sums(point, bench, measured.evaluation);
  add_noise(row, noise, graph, numerics);
  if (accuracy && noise.predicted.output_left_out.empty())
    add_expected(row, bench.dataset, *cache.accuracy(bench), *accuracy, bench.eval_images);
  std::set<std::int64_t> odd_samples = cache.odd_samples();
  odd_samples.insert(bench.odd_samples.begin(), bench.odd_samples.end());
  add_notes(row, notes_on_point(point, numerics, bench));
  add_notes(row, notes_on_data(point, bench, odd_samples, calibration, reads));
  if (const std::int64_t fixed = policies::fixed_activations(recipe); fixed > 0)
    row.fixed_activations = fixed;
  if (measured.lost_test || measured.lost_reference) {
    row.not_finite.emplace();
    if (measured.lost_test) row.not_finite->test = *measured.lost_test;
    if (measured.lost_reference) row.not_finite->reference = *measured.lost_reference;
  }
  row.version = kNumericsVersion;
  return row;
}

}  // namespace numemu::experiments
