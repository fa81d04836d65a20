// numemu infer: a model on the user's own arrays, in float32 or under a recipe.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/infer_model.hpp"
#include "cli/infer_results.hpp"
#include "cli/infer_scores.hpp"
#include "cli/machine_memory.hpp"
#include "cli/memory_option.hpp"
#include "cli/noise_table.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/recipe_option.hpp"
#include "cli/score_table.hpp"
#include "cli/talk.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/profile.hpp"
#include "experiments/engine/noise_json.hpp"
#include "experiments/engine/not_finite.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/predict/left_out.hpp"
#include "experiments/predict/listening.hpp"
#include "experiments/predict/measure_once.hpp"
#include "experiments/predict/model_notes.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"
#include "policies/recipe/notes.hpp"
#include "policies/recipe/recipe_numerics.hpp"
#include "policies/recipe/silent_notes.hpp"
#include "policies/recipe/weight_release.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::cli {
namespace {

struct InferOptions {
  std::string model, recipe;
  std::string normalize, mean, deviation;
  std::vector<std::string> in, out, calibrate_on, metrics;
  std::int64_t batch = 16;
  bool fold = false, quiet = false, json = false, outputs_only = false, no_predictions = false,
       profile = false;
};

/// Of arrays of uint8.
PixelOptions pixels_of(const InferOptions& options) {
  std::vector<std::string> given;
  for (const auto& [key, value] : {std::pair("normalize", &options.normalize),
                                   {"mean", &options.mean},
                                   {"deviation", &options.deviation}}) {
    if (!value->empty()) given.push_back(fmt::format("{}={}", key, *value));
  }
  return joined(given, ",");
}

/// What a recipe does to the first samples, for the notes and the figures of noise; nothing in
/// float32.
class Noise {
 public:
  Noise(const InferOptions& options, const policies::Recipe& recipe, net::Graph& graph,
        const std::vector<net::Tensor>& inputs)
      : options_(options), recipe_(recipe), graph_(graph) {
    std::int64_t elements = 0;
    const std::int64_t samples = reference_samples(graph, inputs, &elements);
    if (samples == 0) return;
    const policies::CalibrationBatch batch = [&](std::int64_t from, std::int64_t count) {
      return samples_of(inputs, from, count);
    };
    const FiniteSamples finite = finite_samples(batch, samples);
    // Without any the figures say so.
    std::vector<net::Tensor> first =
        finite.kept.empty() ? batch(0, samples) : samples_of(batch, finite.kept);
    if (options.outputs_only) {
      notes_ = policies::texts_of(policies::recipe_notes(recipe, graph, first));
      return;
    }
    if (!finite.kept.empty() && !finite.left_out.empty())
      left_out_ = fmt::format(
          "SQNR and predictions leave out {} of the first {} samples, which hold NaN or infinite "
          "numbers; the first is sample {}.",
          finite.left_out.size(), samples, finite.left_out.front());
    claim_.emplace(2 * samples * elements, "the float32 values of the first samples");
    reference_ = policies::float_reference(graph, std::move(first));
    notes_ = policies::texts_of(policies::recipe_notes(recipe, graph, reference_));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = policies::texts_of(policies::notes_on_tables(recipe_, graph_));
    if (!options_.outputs_only && !options_.no_predictions)
      std::ranges::move(policies::texts_of(experiments::model_notes(recipe_, graph_)),
                        std::back_inserter(notes));
    std::ranges::copy(notes_, std::back_inserter(notes));
    if (!left_out_.empty()) notes.push_back(left_out_);
    return notes;
  }

  /// Predicts, then measures by a pass under `heard`, which tells `lost`, and lets the float32
  /// values go; `numerics` are frozen. Weights may be released in that pass.
  void measure(policies::RecipeNumerics& numerics, net::Numerics& heard,
               const experiments::NotFinite& lost, bool releases) {
    samples_ = reference_.samples();
    if (!options_.outputs_only && samples_ > 0) compare(numerics, heard, lost, releases);
    reference_ = {};
    claim_.reset();
  }

  /// The figures, with the counts of all samples.
  void add_to(Json& report, const policies::RecipeNumerics& numerics) const {
    if (!figures_) return;
    report["noise_samples"] = samples_;
    report["metrics"] = Json::object();
    experiments::add_noise(report, *figures_, graph_, numerics);
  }

 private:
  void compare(policies::RecipeNumerics& numerics, net::Numerics& heard,
               const experiments::NotFinite& lost, bool releases) {
    const net::Section section(net::SectionKind::data, "", "noise on the first samples");
    figures_.emplace();
    figures_->predictions = !options_.no_predictions;
    if (figures_->predictions) {
      const net::Section predicting(net::SectionKind::data, "", "predictions");
      experiments::FitCache fits;
      figures_->tensors =
          experiments::predict_tensors(recipe_, graph_, reference_, fits, numerics.static_scales());
      figures_->predicted =
          experiments::predict_layers(recipe_, graph_, reference_, numerics.static_scales());
    } else {
      figures_->predicted.output_left_out = "predictions are turned off";
    }
    const auto after = [&](const net::Node& node) {
      if (releases) policies::release_weights(graph_.nodes[&node - graph_.nodes.data()], numerics);
    };
    figures_->measured = experiments::measure_once(figures_->tensors, recipe_, graph_, numerics,
                                                   heard, reference_, after);
    if (figures_->predictions) {
      lost.add_overflows(figures_->predicted);
      experiments::leave_out(figures_->predicted, recipe_, graph_, figures_->tensors);
    }
    numerics.reset_counts();
  }

  const InferOptions& options_;
  const policies::Recipe& recipe_;
  net::Graph& graph_;
  std::optional<net::MemoryClaim> claim_;
  policies::FloatReference reference_;
  std::vector<std::string> notes_;
  std::string left_out_;
  std::int64_t samples_ = 0;
  std::optional<experiments::NoiseFigures> figures_;
};

/// Calibrates the static scales, and tells of what.
Json calibrate(const InferOptions& options, const policies::Recipe& recipe,
               const net::ImportedModel& model, const std::vector<net::Tensor>& inputs,
               policies::RecipeNumerics& numerics) {
  const net::Section section(net::SectionKind::data, "", "calibration");
  CalibrationSamples samples;
  if (options.calibrate_on.empty()) {
    samples = {
        joined(options.in, ", "), inputs[0].dim(0), "",
        [&](std::int64_t first, std::int64_t count) { return samples_of(inputs, first, count); }};
  } else {
    samples = calibration_samples(options.calibrate_on, model, options.quiet, pixels_of(options));
  }
  const std::int64_t wanted = std::min(samples.available, recipe.calibration().samples);
  if (experiments::calibration_samples(recipe, model.graph, wanted) == 0) {
    numerics.freeze(model.graph, wanted, samples.batch);
    const bool fixed = policies::has_fixed_activations(recipe),
               useless = !options.calibrate_on.empty();
    if (!options.quiet && (fixed || useless))
      say("{}nothing is calibrated{}",
          fixed ? "scales of activations are those of fixed ranges; " : "",
          useless ? ", --calibrate-on has no effect" : "");
    if (!fixed) return nullptr;
    return {{"samples", 0}, {"of", samples.available}, {"from", "fixed ranges"}};
  }
  const FiniteSamples finite = finite_samples(samples.batch, wanted);
  if (finite.kept.empty())
    throw Error(fmt::format(
        "{}: expected finite numbers in one of the first {} samples at least, which calibrate; all "
        "hold NaN or infinite numbers",
        samples.from, wanted));
  const auto used = static_cast<std::int64_t>(finite.kept.size());
  numerics.freeze(model.graph, used, [&](std::int64_t first, std::int64_t count) {
    return samples_of(samples.batch, std::span(finite.kept)
                                         .subspan(static_cast<std::size_t>(first),
                                                  static_cast<std::size_t>(count)));
  });
  const std::string of = options.calibrate_on.empty() ? "" : " of " + samples.from;
  if (!finite.left_out.empty()) {
    say("note: scales calibrated on {} of {} samples{}, {} with NaN or infinite numbers left out; "
        "the first is sample {}",
        used, samples.available, of, finite.left_out.size(), finite.left_out.front());
  } else if (!options.quiet) {
    say("scales calibrated on the first {} of {} samples{}", used, samples.available, of);
  }
  Json out = {{"samples", used}, {"of", samples.available}, {"from", utf8_text(samples.from)}};
  if (!samples.digest.empty()) out["digest"] = samples.digest;
  if (!finite.left_out.empty()) out["not_finite_samples"] = finite.left_out.size();
  return out;
}

/// Seconds between marks.
class Stopwatch {
 public:
  void mark(const char* name) {
    const double now = seconds();
    json_[name] = now - last_;
    last_ = now;
  }
  Json json() const {
    Json out = json_;
    out["total"] = last_ - first_;
    return out;
  }

 private:
  double first_ = seconds(), last_ = first_;
  Json json_ = Json::object();
};

/// Of a pass over `batch` samples: of the weights and of the largest value; and of this process so
/// far.
Json memory_json(const net::Graph& graph, const std::vector<net::Tensor>& batch) {
  std::int64_t weights = 0, largest = 0;
  for (const net::Parameter* parameter : graph.parameters()) weights += parameter->value.size();
  std::vector<net::Shape> shapes;
  for (const net::Tensor& x : batch) shapes.push_back(x.shape);
  for (const net::Shape& shape : net::value_shapes(graph, shapes))
    largest = std::max(largest, net::element_count(shape));
  constexpr std::int64_t kFloat = sizeof(float);
  return {{"weight_bytes", weights * kFloat},
          {"largest_activation_bytes", largest * kFloat},
          {"peak_bytes", peak_memory()}};
}

int run_infer(const InferOptions& options) {
  give_memory_back();
  require_paths(options.out, {options.in, options.calibrate_on, options.model, options.recipe});
  if (options.recipe.empty() && !options.calibrate_on.empty())
    throw Error("--calibrate-on: expected a --recipe, whose static scales are calibrated");
  const ProfiledRun profiled(options.profile);
  Stopwatch watch;
  std::vector<NamedArray> arrays =
      read_arrays(options.in, "--in", options.quiet, pixels_of(options));
  Json report = {{"model", {{"file", utf8_text(options.model)}}}};
  if (options.json) report["inputs"] = arrays_json(arrays);
  net::ImportedModel model = load_model(options.model, arrays);
  const std::vector<net::Tensor> inputs =
      arranged(model, std::move(arrays), "--in", pixels_of(options));
  watch.mark("load");
  const std::map<std::string, std::string> files = destinations(options.out, model);
  if (options.fold) {
    if (model.outputs.size() > 1) throw Error("--fold-batch-norm: expected a model of one output");
    net::fold_batch_norm(model.graph);
    model.outputs[0].value = static_cast<int>(model.graph.value_count()) - 1;
  }
  net::Numerics float32, exact;
  const bool recipe_given = !options.recipe.empty();
  const policies::Recipe given =
      recipe_given ? policies::Recipe::parse_text(read_text(options.recipe), options.recipe)
                   : policies::Recipe::parse_text(R"({"numemu_recipe": 1})", "recipe");
  const policies::Recipe recipe = policies::with_checkpoint_ranges(
      given.last_stage(), named(options.model).second, options.recipe);
  policies::RecipeNumerics quantized(recipe, model.graph, options.recipe);
  const std::int64_t samples = inputs[0].dim(0);
  experiments::NotFinite lost(model.graph, quantized);
  experiments::Listening numerics(recipe_given ? quantized : float32,
                                  [&](const net::Product& p) { lost.add(p); });
  if (options.json) report["model"]["weights"] = net::digest_of(model.graph);
  // The float32 passes that scores need read the weights themselves.
  const bool releases = recipe_given && options.metrics.empty();
  std::vector<std::string> notes;
  std::optional<Noise> noise;
  if (recipe_given) {
    if (!options.quiet) note_short_names_in(options.recipe);
    report["calibration"] = calibrate(options, recipe, model, inputs, quantized);
    watch.mark("calibrate");
    notes = policies::texts_of(policies::notes_on_training(recipe, given.stages().size()));
    for (std::string& note : policies::notes_on_baseline(named(options.model).second, false))
      notes.push_back(std::move(note));
    std::ranges::move(policies::notes_on_quantizers(model.graph, named(options.model).second),
                      std::back_inserter(notes));
    std::ranges::move(
        policies::texts_of(policies::notes_on_calibration(recipe, model.graph, false)),
        std::back_inserter(notes));
    noise.emplace(options, recipe, model.graph, inputs);
    std::ranges::move(noise->notes(), std::back_inserter(notes));
    std::ranges::move(policies::notes_on_ranges(recipe), std::back_inserter(notes));
    noise->measure(quantized, numerics, lost, releases);
    lost.reset();
    watch.mark("noise");
  }

  std::optional<InferScores> scores;
  if (!options.metrics.empty()) scores.emplace(options.metrics, samples);
  const std::deque<net::MemoryClaim> claims = claim_memory(model, inputs, options.batch, files);
  std::map<std::string, net::Tensor> results;
  Progress progress("infer", samples, "samples", options.quiet);
  for (std::int64_t first = 0; first < samples; first += options.batch) {
    const std::int64_t count = std::min(options.batch, samples - first);
    const bool all = count == samples;
    const auto keep = [&](const net::OnnxPort& port, const net::Tensor& value) {
      if (!files.contains(port.name)) return;
      net::Tensor& whole = results[port.name];
      if (whole.empty()) {
        net::Shape shape = in_onnx_order(port, value.shape);
        if (shape.empty() || shape[0] != count)
          throw Error(fmt::format("output {}: expected samples along its first axis, found {}",
                                  port.name, net::to_string(shape)));
        shape[0] = samples;
        whole = net::Tensor(shape);
      }
      const auto to = whole.data.begin() + first * (whole.size() / samples);
      if (port.image) {
        std::ranges::copy(with_axis_moved(value, 3, 1).data, to);
      } else {
        std::ranges::copy(value.data, to);
      }
    };
    const std::vector<net::Tensor> some =
        all ? std::vector<net::Tensor>() : samples_of(inputs, first, count);
    const std::vector<net::Tensor>& batch = all ? inputs : some;
    const auto graph_inputs = static_cast<int>(batch.size());
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& value) {
      if (releases)
        policies::release_weights(model.graph.nodes[&node - model.graph.nodes.data()], quantized);
      for (const net::OnnxPort& port : model.outputs) {
        if (port.value >= graph_inputs && port.value != model.outputs[0].value &&
            model.graph.value_name(port.value) == node.name)
          keep(port, value);
      }
    };
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) ids[i] = first + i;
    const net::Step step{net::Phase::inference, first / options.batch, &ids};
    numerics.begin_step(step);
    net::Tensor last = net::forward(model.graph, batch, numerics, step, &observe);
    if (scores) scores->add(last, net::forward(model.graph, batch, exact, step));
    for (std::size_t i = model.outputs.size(); i-- > 0;) {
      const net::OnnxPort& port = model.outputs[i];
      const bool is_last = port.value == model.outputs[0].value;
      if (i == 0 && is_last && all && !port.image && files.contains(port.name) &&
          last.dim(0) == samples) {
        results[port.name] = std::move(last);  // not twice in memory
      } else if (is_last) {
        keep(port, last);
      }
      if (port.value < graph_inputs) keep(port, batch[static_cast<std::size_t>(port.value)]);
    }
    numerics.end_step(step);
    progress.show(first + count);
  }
  watch.mark("run");
  const NanCount nan = count_nan(inputs, results);
  std::map<std::string, Json> not_finite;
  for (const auto& [name, y] : results) not_finite[name] = not_finite_json(lost, y);
  for (const net::OnnxPort& port : model.outputs) {
    const auto found = results.find(port.name);
    if (port.batch_axis > 0 && found != results.end())
      found->second = with_axis_moved(found->second, 0, port.batch_axis);
  }
  write_results(files, results);
  if (recipe_given)
    std::ranges::copy(policies::texts_of(policies::notes_on_counts(quantized, model.graph)),
                      std::back_inserter(notes));
  for (const std::string& note : notes) {
    if (!options.quiet) say("note: {}", note);
  }
  watch.mark("write");
  report["outputs"] = Json::array();
  for (const auto& [name, path] : files) {
    const net::Tensor& y = results.at(name);
    report["outputs"].push_back({{"output", name}, {"file", utf8_text(path)}, {"shape", y.shape}});
    Json& output = report["outputs"].back();
    if (options.json) output["digest"] = digest_of(y);
    if (nan.hidden > 0) output["nan_samples_without_nan_output"] = nan.hidden;
    if (const Json& counts = not_finite[name]; !counts.is_null()) {
      output["not_finite"] = counts;
      for (const std::string& sentence : not_finite_sentences(name, counts))
        say("note: {}", sentence);
    }
    if (!options.json)
      fmt::print("{}\n",
                 harmless(fmt::format("{} {} -> {}, {}", name, net::to_string(y.shape), path,
                                      options.recipe.empty() ? "float32 on neutral.f32.sequential"
                                                             : "numerics of " + options.recipe)));
  }
  if (noise) noise->add_to(report, quantized);
  if (scores) report["scores"] = scores->json();
  if (nan.hidden > 0) {
    say("note: the inputs hold {} NaN, and {} of the {} samples with NaN have outputs without: a "
        "format without NaN turns them into numbers",
        nan.elements, nan.hidden, nan.samples);
  }
  if (!options.json) {
    if (report.contains("layers")) {
      fmt::print("\n");
      print_noise(report,
                  fmt::format("the first {}",
                              counted(report["noise_samples"].get<std::int64_t>(), "sample")),
                  fmt::format("all {}", counted(samples, "sample")));
    }
    if (scores) {
      fmt::print("\n");
      print_scores(report["scores"], samples);
    }
    return kFine;
  }
  report["recipe"] = recipe_given ? recipe.json() : Json();
  report["notes"] = notes;
  report["memory"] =
      memory_json(model.graph, samples_of(inputs, 0, std::min(options.batch, samples)));
  report["seconds"] = watch.json();
  report["version"] = kNumericsVersion;
  fmt::print("{}\n", report.dump(2));
  return kFine;
}

}  // namespace

void add_infer(Program& program) {
  auto options = std::make_shared<InferOptions>();
  Command& command = program.command("infer", [options] { return run_infer(*options); });
  command
      .option("--model NAME|FILE", options->model,
              "An .onnx file, a checkpoint, NAME=FILE or a network's name")
      .required();
  command
      .option("--in [name=]x.npy", options->in,
              "Array of an input, samples first (or on the axis that the file calls batch); "
              "images [n, c, h, w] of an .onnx file, "
              "[n, h, w, c] of built-in networks (repeatable)")
      .required();
  command
      .option("--out [name=]y.npy|y.safetensors", options->out, "File for an output (repeatable)")
      .required();
  add_recipe(command, options->recipe, "Recipe");
  command.option("--calibrate-on [name=]x.npy|SET", options->calibrate_on,
                 "Arrays (repeatable) or a data set that calibrate static scales (default: --in)");
  command.option("--normalize PRESET", options->normalize,
                 "Of uint8: imagenet, cifar or none, (p / 255 - mean) / deviation");
  command.option("--mean X", options->mean, "Of uint8: mean, or one for each channel: 0.5/0.5/0.5");
  command.option("--deviation X", options->deviation, "Of uint8: deviation, as --mean");
  command.option("--metric NAME...", options->metrics,
                 "Of the first output against float32: cosine, sqnr; others need targets (eval)");
  command.flag("--outputs-only", options->outputs_only, "No noise of layers");
  command.flag("--no-predictions", options->no_predictions, "Measure the noise only");
  command.flag("--fold-batch-norm", options->fold,
               "Fold batch normalisation into the weights before it");
  command.option("--batch N", options->batch, "Samples per batch").show_default().whole(1, 65536);
  add_profile(command, options->profile);
  command.flag("--json", options->json, "Print JSON");
  command.flag("--quiet", options->quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
