#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <span>

#include "api/infer_files.hpp"
#include "api/machine_memory.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/model/load_network.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/profile.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/row_noise.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/predict/left_out.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/utf8.hpp"
#include "formats/version.hpp"
#include "policies/notes/notes.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::api {
namespace {

constexpr std::int64_t kReferenceElements = std::int64_t{1} << 24;

/// Which samples hold a number that is `bad`.
template <class Bad>
std::vector<bool> samples_with(const net::Tensor& x, const Bad& bad) {
  std::vector<bool> found(static_cast<std::size_t>(x.dim(0)), false);
  const std::size_t each = x.data.size() / found.size();
  for (std::size_t i = 0; i < x.data.size(); ++i)
    if (bad(x.data[i])) found[i / each] = true;
  return found;
}

std::vector<bool> samples_with_nan(const net::Tensor& x) {
  return samples_with(x, [](float v) { return std::isnan(v); });
}

/// Counts NaN of the inputs, and what the outputs show of them.
Inferred::NanCount count_nan(const std::vector<net::Tensor>& inputs,
                             const std::map<std::string, net::Tensor>& results) {
  Inferred::NanCount count;
  std::vector<bool> in(static_cast<std::size_t>(inputs.at(0).dim(0)), false), out = in;
  const auto merge = [](std::vector<bool>& into, const std::vector<bool>& more) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = into[i] || more[i];
  };
  for (const net::Tensor& x : inputs) {
    count.elements += std::ranges::count_if(x.data, [](float v) { return std::isnan(v); });
    merge(in, samples_with_nan(x));
  }
  if (count.elements == 0) return count;
  for (const auto& [name, y] : results) merge(out, samples_with_nan(y));
  for (std::size_t i = 0; i < in.size(); ++i) {
    count.samples += in[i];
    count.hidden += in[i] && !out[i];
  }
  return count;
}

/// How many of the first samples notes and noise are about: as many as 2^24 elements hold, and half
/// of the memory left; `elements` gets those of one sample.
std::int64_t reference_samples(const net::Graph& graph, const std::vector<net::Tensor>& inputs,
                               std::int64_t* elements) {
  std::vector<net::Shape> one;
  for (const net::Tensor& x : inputs) {
    one.push_back(x.shape);
    one.back()[0] = 1;
  }
  *elements = 1;
  for (const net::Shape& shape : net::value_shapes(graph, one))
    *elements += net::element_count(shape);
  // What layers read and what they give, in half of what is left at most: no figure is worth a
  // refusal.
  const std::int64_t most = net::memory_left() / (4 * static_cast<std::int64_t>(sizeof(float)));
  return std::min({std::max<std::int64_t>(1, kReferenceElements / *elements), most / *elements,
                   inputs[0].dim(0)});
}

/// What is not finite of an output of all samples.
void count_lost(const experiments::NotFinite& lost, const Tensor& output, Inferred::Output& out) {
  out.not_finite = lost.lost(output.dim(0), stats::count_finite(output.data.data(), output.size()));
  if (!out.not_finite) return;
  const std::vector<bool> samples = samples_with(output, [](float v) { return !std::isfinite(v); });
  out.samples_not_finite = std::ranges::count(samples, true);
}

/// Scores of outputs under a recipe against those in float32.
class Scores {
 public:
  /// Throws Error for a metric that needs targets.
  Scores(const std::vector<std::string>& names, std::int64_t samples);
  /// Outputs of the next samples, [samples, ...].
  void add(const Tensor& output, const Tensor& float32);
  std::vector<experiments::RowScore> rows() const {
    return experiments::scores_of(false, scores_, own_, float32_);
  }

 private:
  std::vector<net::OutputScore> scores_;
  Evaluation own_, float32_;
};

Scores::Scores(const std::vector<std::string>& names, std::int64_t samples) {
  for (const std::string& name : names) {
    const net::Score& score = net::find_score(name);
    if (!score.reference)
      throw usage_error(
          fmt::format("--metric: {} compares with targets, which infer has not; eval has: "
                      "--data npy:x=x.npy,y=y.npy",
                      name));
    scores_.push_back(&score);
  }
  constexpr std::int64_t kColumns = 2;  // of scores that compare with float32
  for (Evaluation* evaluation : {&own_, &float32_}) {
    evaluation->samples = samples;
    evaluation->tables.assign(scores_.size(), {.columns = kColumns, .sums = {}});
  }
}

void Scores::add(const Tensor& output, const Tensor& float32) {
  const std::int64_t count = output.dim(0), each = output.size() / count;
  const auto sums = [&](const Tensor& of, Evaluation& evaluation) {
    for (std::size_t s = 0; s < scores_.size(); ++s) {
      net::ScoreTable& table = evaluation.tables[s];
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t at = table.sums.size();
        table.sums.resize(at + static_cast<std::size_t>(table.columns));
        net::Outcome outcome;
        outcome.output = {of.data.data() + i * each, static_cast<std::size_t>(each)};
        outcome.reference = {float32.data.data() + i * each, static_cast<std::size_t>(each)};
        outcome.width = of.shape.back();
        scores_[s]->add(outcome, table.sums.data() + at);
      }
    }
  };
  sums(output, own_);
  sums(float32, float32_);
}

/// What a recipe does to the first samples, for the notes and the figures of noise; nothing in
/// float32.
class Noise {
 public:
  Noise(const InferRequest& asked, const policies::BoundRecipe& recipe, Graph& graph,
        const std::vector<Tensor>& inputs)
      : asked_(asked), recipe_(recipe), graph_(graph) {
    std::int64_t elements = 0;
    const std::int64_t samples = reference_samples(graph, inputs, &elements);
    if (samples == 0) return;
    const policies::CalibrationBatch batch = [&](std::int64_t from, std::int64_t count) {
      return samples_of(inputs, from, count);
    };
    const FiniteSamples finite = finite_samples(batch, samples);
    // Without any the figures say so.
    std::vector<Tensor> first =
        finite.kept.empty() ? batch(0, samples) : samples_of(batch, finite.kept);
    if (!asked.noise) {
      notes_ = policies::texts_of(policies::recipe_notes(recipe, first));
      return;
    }
    if (!finite.kept.empty() && !finite.left_out.empty())
      left_out_ = fmt::format(
          "SQNR and predictions leave out {} of the first {} samples, which hold NaN or infinite "
          "numbers; the first is sample {}.",
          finite.left_out.size(), samples, finite.left_out.front());
    claim_.emplace(2 * samples * elements, "the float32 values of the first samples");
    reference_ = policies::float_reference(graph, std::move(first));
    notes_ = policies::texts_of(policies::recipe_notes(recipe, reference_));
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = policies::texts_of(policies::notes_on_tables(recipe_));
    if (asked_.noise && asked_.predictions)
      std::ranges::move(policies::texts_of(experiments::model_notes(recipe_)),
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
    if (asked_.noise && samples_ > 0) compare(numerics, heard, lost, releases);
    reference_ = {};
    claim_.reset();
  }

  /// The figures with the counts of all samples, which `lost` was told; nothing without.
  std::optional<Inferred::Noise> row(const policies::RecipeNumerics& numerics,
                                     const experiments::NotFinite& lost) {
    if (!figures_) return std::nullopt;
    if (figures_->predictions) {
      lost.count_overflows(figures_->predicted);
      experiments::leave_out(figures_->predicted, recipe_, figures_->tensors);
    }
    Inferred::Noise out{samples_, {}};
    experiments::add_noise(out.row, *figures_, graph_, numerics);
    return out;
  }

 private:
  void compare(policies::RecipeNumerics& numerics, net::Numerics& heard,
               const experiments::NotFinite& lost, bool releases) {
    const net::Section section(net::SectionKind::data, "", "noise on the first samples");
    figures_.emplace();
    figures_->predictions = asked_.predictions;
    if (figures_->predictions) {
      const net::Section predicting(net::SectionKind::data, "", "predictions");
      experiments::FitCache fits;
      figures_->tensors =
          experiments::predict_tensors(recipe_, reference_, fits, numerics.roles().static_scales());
      figures_->predicted =
          experiments::predict_layers(recipe_, reference_, numerics.roles().static_scales());
    } else {
      figures_->predicted.output_left_out = "predictions are turned off";
    }
    const auto after = [&](const net::Node& node) {
      if (releases) policies::release_weights(graph_.nodes[&node - graph_.nodes.data()], numerics);
    };
    figures_->measured =
        experiments::measure_once(figures_->tensors, numerics, heard, reference_, after);
    if (figures_->predictions) lost.add_overflows(figures_->predicted);
    numerics.roles().reset_counts();
  }

  const InferRequest& asked_;
  const policies::BoundRecipe recipe_;
  Graph& graph_;
  std::optional<net::MemoryClaim> claim_;
  policies::FloatReference reference_;
  std::vector<std::string> notes_;
  std::string left_out_;
  std::int64_t samples_ = 0;
  std::optional<experiments::NoiseFigures> figures_;
};

bool calibrates_on_others(const InferRequest& asked) {
  return !asked.calibrate_on.empty() || !asked.calibration.empty();
}

/// Calibrates the static scales, and tells of what. Nothing where there is none and no range fixes
/// one.
std::optional<Inferred::Calibration> calibrate(const InferRequest& asked,
                                               const net::ImportedModel& model,
                                               const std::vector<Tensor>& inputs,
                                               policies::RecipeNumerics& numerics,
                                               const Context& context) {
  const net::Section section(net::SectionKind::data, "", "calibration");
  CalibrationSamples samples;
  const bool own = !calibrates_on_others(asked);
  if (own) {
    samples = {
        asked.in.empty() ? "arrays of the caller" : joined(asked.in, ", "), inputs[0].dim(0), "",
        [&](std::int64_t first, std::int64_t count) { return samples_of(inputs, first, count); }};
  } else {
    samples = calibration_samples(asked, model, context);
  }
  Inferred::Calibration out{0, samples.available, samples.from, samples.digest};
  const policies::BoundRecipe& recipe = numerics.bound();
  const std::int64_t wanted = std::min(samples.available, recipe->calibration().samples);
  if (experiments::calibration_samples(recipe, wanted) == 0) {
    numerics.freeze(model.graph, wanted, samples.batch);
    const bool fixed = policies::fixed_activations(recipe) > 0, useless = !own;
    if (fixed || useless)
      context.say(fmt::format("{}nothing is calibrated{}",
                              fixed ? "scales of activations are those of fixed ranges; " : "",
                              useless ? ", --calibrate-on has no effect" : ""));
    if (!fixed) return std::nullopt;
    out.from = "fixed ranges";
    out.digest.clear();
    return out;
  }
  const FiniteSamples finite = finite_samples(samples.batch, wanted);
  if (finite.kept.empty())
    throw Error(fmt::format(
        "{}: expected finite numbers in one of the first {} samples at least, which calibrate; all "
        "hold NaN or infinite numbers",
        samples.from, wanted));
  out.samples = static_cast<std::int64_t>(finite.kept.size());
  out.not_finite = static_cast<std::int64_t>(finite.left_out.size());
  numerics.freeze(model.graph, out.samples, [&](std::int64_t first, std::int64_t count) {
    return samples_of(samples.batch, std::span(finite.kept)
                                         .subspan(static_cast<std::size_t>(first),
                                                  static_cast<std::size_t>(count)));
  });
  const std::string of = own ? "" : " of " + samples.from;
  if (out.not_finite > 0) {
    context.warn(
        fmt::format("note: scales calibrated on {} of {} samples{}, {} with NaN or infinite "
                    "numbers left out; the first is sample {}",
                    out.samples, samples.available, of, out.not_finite, finite.left_out.front()));
  } else {
    context.say(fmt::format("scales calibrated on the first {} of {} samples{}", out.samples,
                            samples.available, of));
  }
  return out;
}

/// Of a pass over `batch` samples, and of this process so far.
Inferred::Memory memory_of(const Graph& graph, const std::vector<Tensor>& batch) {
  Inferred::Memory memory;
  constexpr std::int64_t kFloat = sizeof(float);
  for (const net::Parameter* parameter : graph.parameters())
    memory.weights += parameter->value.size() * kFloat;
  std::vector<net::Shape> shapes;
  for (const Tensor& x : batch) shapes.push_back(x.shape);
  for (const net::Shape& shape : net::value_shapes(graph, shapes))
    memory.largest_activation =
        std::max(memory.largest_activation, net::element_count(shape) * kFloat);
  memory.peak = peak_memory();
  return memory;
}

/// The outputs of all samples that have a place in `files`, batch by batch.
class Outputs {
 public:
  Outputs(const net::ImportedModel& model, const std::vector<Tensor>& inputs,
          const std::map<std::string, std::string>& files)
      : model_(model), inputs_(inputs), files_(files), samples_(inputs[0].dim(0)) {}

  /// Runs samples [first, first + count) under the numerics, tells `after` of each node, and gives
  /// the first output to `see`.
  void run(std::int64_t first, std::int64_t count, const net::Step& step, net::Numerics& numerics,
           const std::function<void(const net::Node&)>& after,
           const std::function<void(const std::vector<Tensor>&, const Tensor&)>& see) {
    const bool all = count == samples_;
    std::vector<Tensor> some;
    for (const Tensor& x : inputs_)
      if (!all) some.push_back(net::borrowed_samples(x, first, count));
    const std::vector<Tensor>& batch = all ? inputs_ : some;
    const auto graph_inputs = static_cast<int>(batch.size());
    const int last_value = model_.outputs[0].value;
    const auto made = [&](int value, const Tensor& tensor) {
      if (value >= graph_inputs)
        after(model_.graph.nodes[static_cast<std::size_t>(value - graph_inputs)]);
      for (const net::OnnxPort& port : model_.outputs)
        if (port.value == value && value != last_value) keep(port, tensor, first, count);
    };
    Tensor last = net::forward_values(model_.graph, batch, numerics, step, made);
    see(batch, last);
    for (std::size_t i = model_.outputs.size(); i-- > 0;) {
      const net::OnnxPort& port = model_.outputs[i];
      const bool is_last = port.value == last_value;
      if (i == 0 && is_last && all && !port.image && files_.contains(port.name) &&
          last.dim(0) == samples_) {
        results[port.name] = std::move(last);  // not twice in memory
      } else if (is_last) {
        keep(port, last, first, count);
      }
    }
  }

  std::map<std::string, Tensor> results;

 private:
  void keep(const net::OnnxPort& port, const Tensor& value, std::int64_t first,
            std::int64_t count) {
    if (!files_.contains(port.name)) return;
    Tensor& whole = results[port.name];
    if (whole.empty()) {
      net::Shape shape = in_onnx_order(port, value.shape);
      if (shape.empty() || shape[0] != count)
        throw Error(fmt::format("output {}: expected samples along its first axis, found {}",
                                port.name, net::to_string(shape)));
      shape[0] = samples_;
      whole = Tensor(shape);
    }
    const auto to = whole.data.begin() + first * (whole.size() / samples_);
    if (port.image) {
      std::ranges::copy(with_axis_moved(value, 3, 1).data, to);
    } else {
      std::ranges::copy(value.data, to);
    }
  }

  const net::ImportedModel& model_;
  const std::vector<Tensor>& inputs_;
  const std::map<std::string, std::string>& files_;
  const std::int64_t samples_;
};

/// With the file of its recipe; what contradicts itself is refused.
InferRequest resolved(InferRequest asked, const Context& context) {
  asked.recipe = recipe_path(asked.recipe, context.folders);
  require_paths(asked);
  if (asked.recipe.empty() && calibrates_on_others(asked))
    throw usage_error("--calibrate-on: expected a --recipe, whose static scales are calibrated");
  return asked;
}

std::vector<NamedArray> arrays_of(const InferRequest& asked, const Context& context) {
  return asked.arrays.empty() ? read_arrays(asked.in, "--in", context) : named_arrays(asked.arrays);
}

}  // namespace

/// What runs: the model under its recipe, or in float32.
struct Inference::Parts {
  Parts(const InferRequest&, const std::vector<NamedArray>&, const Context&);
  /// Calibrates on the inputs, or what else the request says.
  void freeze(const std::vector<Tensor>& inputs);
  /// Runs the samples batch by batch; `see` gets inputs, first output and step of each.
  void run(
      Outputs& outputs, std::int64_t count,
      const std::function<void(const std::vector<Tensor>&, const Tensor&, const net::Step&)>& see);
  /// Samples stand where ONNX has them.
  void arrange(std::map<std::string, Tensor>& results) const;

  const InferRequest asked;
  const Context context;
  net::ImportedModel model;
  const std::map<std::string, std::string> files;
  const std::string path, where;
  const bool under_recipe;
  const Recipe given;
  const policies::BoundRecipe recipe;
  net::Numerics float32;
  policies::RecipeNumerics quantized;
  experiments::NotFinite lost;
  net::Observing numerics;
  /// The float32 passes that scores need read the weights themselves.
  const bool releases;
  std::optional<Inferred::Calibration> calibration = {};
  std::int64_t samples = 0, batches = 0;  ///< that ran
};

Inference::Parts::Parts(const InferRequest& request, const std::vector<NamedArray>& arrays,
                        const Context& of)
    : asked(request),
      context(of),
      model(opened_model(asked, arrays, context.folders)),
      files(destinations(asked, model)),
      path(net::name_and_file(asked.model).second),
      where(recipe_where(asked.recipe)),
      under_recipe(!asked.recipe.empty()),
      given(open_recipe(asked.recipe, context.folders)),
      recipe(policies::with_checkpoint_ranges(given.last_stage(), path, where), model.graph, where),
      quantized(recipe),
      lost(model.graph, quantized),
      numerics(under_recipe ? quantized : float32,
               {.after = [this](const net::Step&, const net::Product& p) { lost.add(p); }}),
      releases(under_recipe && asked.metrics.empty()) {}

void Inference::Parts::freeze(const std::vector<Tensor>& inputs) {
  if (under_recipe) calibration = calibrate(asked, model, inputs, quantized, context);
}

void Inference::Parts::run(
    Outputs& outputs, std::int64_t total,
    const std::function<void(const std::vector<Tensor>&, const Tensor&, const net::Step&)>& see) {
  const auto done = [&](std::int64_t n) {
    if (context.on_work)
      context.on_work({"samples", static_cast<double>(n), static_cast<double>(total)});
  };
  done(0);
  const auto after = [&](const net::Node& node) {
    if (releases)
      policies::release_weights(model.graph.nodes[&node - model.graph.nodes.data()], quantized);
  };
  for (std::int64_t first = 0; first < total; first += asked.batch) {
    const std::int64_t count = std::min(asked.batch, total - first);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) ids[i] = samples + first + i;
    const net::Step step{net::Phase::inference, batches++, &ids};
    numerics.begin_step(step);
    outputs.run(first, count, step, numerics, after,
                [&](const std::vector<Tensor>& batch, const Tensor& last) {
                  if (see) see(batch, last, step);
                });
    numerics.end_step(step);
    done(first + count);
  }
  samples += total;
}

void Inference::Parts::arrange(std::map<std::string, Tensor>& results) const {
  for (const net::OnnxPort& port : model.outputs) {
    const auto found = results.find(port.name);
    if (found == results.end()) continue;
    net::Shape& shape = found->second.shape;
    if (port.batch_axis == net::kNoBatch) {
      shape.erase(shape.begin());
    } else if (port.batch_axis > 0) {
      found->second = with_axis_moved(found->second, 0, port.batch_axis);
    }
  }
}

Inference::Inference(const InferRequest& request, const Context& context) {
  const net::RunScope scope(context.run);
  const InferRequest asked = resolved(request, context);
  std::vector<NamedArray> arrays = arrays_of(asked, context);
  parts_ = std::make_unique<Parts>(asked, arrays, context);
  parts_->freeze(arranged(parts_->model, std::move(arrays), "--in", asked));
}

Inference::~Inference() = default;

std::map<std::string, Tensor> Inference::run(const std::vector<net::NamedTensor>& given) {
  const net::RunScope scope(parts_->context.run);
  const std::vector<Tensor> inputs =
      arranged(parts_->model, named_arrays(given), "--in", parts_->asked);
  const std::deque<net::MemoryClaim> claims =
      claim_memory(parts_->model, inputs, parts_->asked.batch, parts_->files);
  Outputs outputs(parts_->model, inputs, parts_->files);
  parts_->run(outputs, inputs[0].dim(0), {});
  parts_->arrange(outputs.results);
  return std::move(outputs.results);
}

const std::optional<Inferred::Calibration>& Inference::calibration() const {
  return parts_->calibration;
}

Inferred infer(const InferRequest& request, const Context& context) {
  const net::RunScope scope(context.run);
  const InferRequest asked = resolved(request, context);
  Inferred out;
  out.model = asked.model;
  double mark = context.clock();
  const auto ended = [&](const char* part) {
    const double now = context.clock();
    out.seconds.emplace_back(part, now - mark);
    mark = now;
  };
  std::vector<NamedArray> arrays = arrays_of(asked, context);
  if (asked.digests) {
    for (const NamedArray& array : arrays)
      out.inputs.push_back({array.name, array.path, array.tensor.shape, digest_of(array.tensor)});
  }
  Inference::Parts parts(asked, arrays, context);
  net::ImportedModel& model = parts.model;
  const policies::BoundRecipe& recipe = parts.recipe;
  const std::vector<Tensor> inputs = arranged(model, std::move(arrays), "--in", asked);
  ended("load");
  if (asked.digests) out.weights = net::digest_of(model.graph);
  const auto note = [&](std::vector<std::string> notes) {
    std::ranges::move(notes, std::back_inserter(out.notes));
  };
  note(model.notes);
  using policies::texts_of;
  std::optional<Noise> noise;
  if (parts.under_recipe) {
    out.recipe = recipe.recipe();
    context.on_checked();
    parts.freeze(inputs);
    out.calibration = parts.calibration;
    ended("calibrate");
    note(texts_of(policies::notes_on_training(recipe.recipe(), parts.given.stages().size())));
    note(policies::notes_on_baseline(parts.path, false));
    note(policies::notes_on_quantizers(model.graph, parts.path));
    note(texts_of(policies::notes_on_calibration(recipe, false)));
    noise.emplace(asked, recipe, model.graph, inputs);
    note(noise->notes());
    note(policies::notes_on_ranges(recipe));
    noise->measure(parts.quantized, parts.numerics, parts.lost, parts.releases);
    parts.lost.reset();
    ended("noise");
  }

  out.samples = inputs[0].dim(0);
  std::optional<Scores> scores;
  if (!asked.metrics.empty()) scores.emplace(asked.metrics, out.samples);
  const std::deque<net::MemoryClaim> claims = claim_memory(model, inputs, asked.batch, parts.files);
  Outputs outputs(model, inputs, parts.files);
  net::Numerics exact;
  parts.run(outputs, out.samples,
            [&](const std::vector<Tensor>& batch, const Tensor& last, const net::Step& step) {
              if (scores) scores->add(last, net::forward(model.graph, batch, exact, step));
            });
  ended("run");
  std::map<std::string, Tensor>& results = outputs.results;
  out.nan = count_nan(inputs, results);
  std::map<std::string, Inferred::Output> outputs_by_name;
  for (const auto& [name, y] : results) count_lost(parts.lost, y, outputs_by_name[name]);
  parts.arrange(results);
  write_results(parts.files, results);
  if (parts.under_recipe) note(texts_of(policies::notes_on_counts(parts.quantized)));
  for (const std::string& text : out.notes) context.say("note: " + text);
  ended("write");
  for (const auto& [name, file] : parts.files) {
    Tensor& y = results.at(name);
    Inferred::Output& output = out.outputs.emplace_back(std::move(outputs_by_name[name]));
    static_cast<Inferred::Array&>(output) = {name, file, y.shape,
                                             asked.digests ? digest_of(y) : ""};
    output.values = std::move(y);
  }
  if (noise) out.noise = noise->row(parts.quantized, parts.lost);
  if (scores) out.scores = scores->rows();
  if (asked.digests)
    out.memory = memory_of(model.graph, samples_of(inputs, 0, std::min(asked.batch, out.samples)));
  return out;
}

Json json_of(const Inferred& inferred) {
  Json report = {{"model", {{"file", utf8_text(inferred.model)}, {"weights", inferred.weights}}}};
  report["inputs"] = Json::array();
  for (const Inferred::Array& input : inferred.inputs) {
    report["inputs"].push_back({{"name", input.name},
                                {"file", utf8_text(input.file)},
                                {"shape", input.shape},
                                {"digest", input.digest}});
  }
  if (inferred.recipe) report["calibration"] = nullptr;
  if (inferred.calibration) {
    const Inferred::Calibration& on = *inferred.calibration;
    Json& json = report["calibration"];
    json = {{"samples", on.samples}, {"of", on.available}, {"from", utf8_text(on.from)}};
    if (!on.digest.empty()) json["digest"] = on.digest;
    if (on.not_finite > 0) json["not_finite_samples"] = on.not_finite;
  }
  report["outputs"] = Json::array();
  for (const Inferred::Output& of : inferred.outputs) {
    Json output = {{"output", of.name},
                   {"file", utf8_text(of.file)},
                   {"shape", of.shape},
                   {"digest", of.digest}};
    if (inferred.nan.hidden > 0) output["nan_samples_without_nan_output"] = inferred.nan.hidden;
    if (of.not_finite) {
      Json& lost = output["not_finite"] = numemu::json_of(*of.not_finite);
      lost["samples_not_finite"] = of.samples_not_finite;
    }
    report["outputs"].push_back(std::move(output));
  }
  if (inferred.noise) {
    const experiments::Row& row = inferred.noise->row;
    report["noise_samples"] = inferred.noise->samples;
    report["metrics"] = numemu::json_of(row.metrics);
    report["predicted"] = numemu::json_of(row.predicted);
    report["layers"] = numemu::json_of(row.layers);
  }
  if (!inferred.scores.empty()) report["scores"] = numemu::json_of(inferred.scores);
  report["recipe"] = inferred.recipe ? inferred.recipe->json() : Json();
  report["notes"] = inferred.notes;
  report["memory"] = {{"weight_bytes", inferred.memory.weights},
                      {"largest_activation_bytes", inferred.memory.largest_activation},
                      {"peak_bytes", inferred.memory.peak}};
  double total = 0;
  report["seconds"] = Json::object();
  for (const auto& [part, seconds] : inferred.seconds) {
    report["seconds"][part] = seconds;
    total += seconds;
  }
  report["seconds"]["total"] = total;
  report["version"] = kNumericsVersion;
  return report;
}

}  // namespace numemu::api
