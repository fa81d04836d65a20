// Trained networks made fit for few bits after training: which chain of steps recovers how much of
// what rounding costs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "emu/net/data/view.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/canonical_json.hpp"
#include "policies/notes/notes.hpp"
#include "policies/tune/base/run_steps.hpp"

namespace numemu::experiments {
namespace {

const char* const kNaive = "naive";
const char* const kFloat32 = "float32";
const char* const kSame = "same";
const char* const kNone = "none";
/// Statistics alone, AdaRound, AdaQuant layer by layer on float32 inputs, and in sequence.
const char* const kChains =
    "light,calibrate(percentile(99.9))+adaround+batch_norm+bias,"
    "calibrate(percentile(99.9))+"
    "adaquant(iterations=100,mode=parallel,weight_rate=0.0003,activation_rate=0.02)+"
    "batch_norm+bias,advanced";
/// What the published advanced pipeline loses at most, 1 point of top-1, in losses called small.
constexpr double kClose = 2;
constexpr double kSmallest = 0.13;  // of float32's size, as published

/// Integers: a scale of least squared error per output channel of weights and a zero point per
/// tensor of activations, as CalibTIP has them.
Json integer_roles(const std::string& weight, const std::string& activation) {
  return {{"weight", {{"format", weight}, {"granularity", "channel"}, {"scale", "mse"}}},
          {"activation", {{"format", activation}, {"zero_point", "calibrated"}}}};
}

/// "w4a8": integers of so many bits; "x.json": a recipe file; else a block format for both.
policies::Recipe recipe_of(const std::string& bits) {
  if (bits.ends_with(".json")) return policies::Recipe::parse_text(read_text(bits), bits);
  int weight = 0, activation = 0;
  const char *const first = bits.data(), *const last = first + bits.size();
  const std::size_t a = bits.find('a');
  if (bits.starts_with('w') && a != bits.npos &&
      std::from_chars(first + 1, first + a, weight).ptr == first + a &&
      std::from_chars(first + a + 1, last, activation).ptr == last) {
    return policies::Recipe::make(
        {{"roles", integer_roles(fmt::format("int{}", weight), fmt::format("int{}", activation))}},
        bits);
  }
  return policies::Recipe::make(
      {{"roles", {{"weight", {{"format", bits}}}, {"activation", {{"format", bits}}}}}}, bits);
}

/// The recipe of a width for a network, whose first and last layer may have integers of their own.
policies::Recipe recipe_for(const std::string& bits, const std::string& ends,
                            const net::Graph& graph) {
  const policies::Recipe recipe = recipe_of(bits).last_stage();
  if (ends == kSame || bits == kFloat32) return recipe;
  std::vector<std::string> layers;
  for (const net::GemmLayer& layer : net::gemm_layers(graph))
    if (layer.weight != nullptr) layers.push_back(layer.name);
  // Behind the patches of stages, whose `layers` replace the recipe's.
  Json json = recipe.json();
  for (const std::string& name : {layers.front(), layers.back()})
    json["layers"].push_back({{"match", name}, {"roles", integer_roles(ends, ends)}});
  return policies::Recipe::parse(json, bits);
}

/// A setting's chain, whose steps are joined by "+", as the text of --steps.
std::string steps_of(const std::string& chain) {
  std::string steps = chain;
  std::replace(steps.begin(), steps.end(), '+', ',');
  return steps;
}

struct Cell {
  std::string bits, chain;
};

/// The network, its data and how much of them is used.
struct Subject {
  const ExperimentRun& run;
  const net::Dataset& data;
  std::int64_t samples, images;
  std::vector<net::OutputScore> scores;  ///< that judged_of() needs

  TrainedNet load() const {
    TrainedNet trained = load_trained_net(run.settings.text("net"), data, run.folders);
    fold_batch_norm(trained);
    return trained;
  }
};

/// The steps of a chain, without those that compare probabilities of classes where targets are
/// numbers; `left_out` gets their names. Throws Error where none is left.
std::vector<policies::TuneStepChoice> steps_for(const net::Dataset& data, const std::string& chain,
                                                std::set<std::string>* left_out = nullptr) {
  std::vector<policies::TuneStepChoice> steps =
      policies::parse_tune_steps(steps_of(chain), "--set: chains");
  if (data.target() == net::TargetKind::values) {
    // A chain is what steps belong to, by whatever name.
    for (const policies::TuneStepChoice& step : policies::take_class_steps(steps))
      if (left_out != nullptr) left_out->emplace(step.kind->name);
  }
  if (steps.empty())
    throw usage_error(fmt::format(
        "--set: chains: {}: expected a task of classes, whose probabilities its steps compare; the "
        "targets of {} are numbers",
        chain, data.name()));
  return steps;
}

/// What a trial remembers of an evaluation with scores: all that judged_of() reads. One without
/// scores has one class a sample. Tables are texts of numbers, so that infinities and NaN stay what
/// they are.
struct Measured {
  std::optional<std::string> right = {};  ///< one character a target, where a sample has one
  std::optional<std::int64_t> samples = {}, n = {}, correct = {};
  double loss = 0;
  std::optional<std::vector<std::string>> tables = {};

  static void fields(auto& self, const auto& visit) {
    visit("right", self.right);
    visit("samples", self.samples);
    if (self.samples) {  // with scores
      visit("n", self.n);
      visit("correct", self.correct);
    }
    visit("loss", self.loss);
    if (self.samples)
      visit("tables", self.tables);
    else
      visit("n", self.n);
  }
};

Measured measured_of(const net::Evaluation& evaluation) {
  constexpr int kDigits = 6;  // of a loss
  Measured measured;
  const std::int64_t targets = std::ssize(evaluation.right);
  if (targets == evaluation.samples) measured.right = answer_text(evaluation.right);
  if (evaluation.tables.empty()) {
    measured.loss = policies::significant(evaluation.loss, kDigits);
    if (evaluation.n != targets) measured.n = evaluation.n;
    return measured;
  }
  measured.samples = evaluation.samples;
  measured.n = evaluation.n;
  measured.correct = evaluation.correct;
  measured.loss = evaluation.loss;
  measured.tables.emplace();
  for (const net::ScoreTable& table : evaluation.tables)
    measured.tables->push_back(fmt::format("{}", fmt::join(table.sums, " ")));
  return measured;
}

net::ScoreTable table_of(const std::string& text, std::int64_t samples) {
  net::ScoreTable table;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc()) throw Error("trial: expected a table of numbers");
    table.sums.push_back(value);
    at = next == end ? end : next + 1;
  }
  const auto size = static_cast<std::int64_t>(table.sums.size());
  if (samples < 1 || size % samples != 0)
    throw Error("trial: expected a table of as many numbers for each sample");
  table.columns = size / samples;
  return table;
}

/// Throws Error for what measured_of() does not make.
net::Evaluation evaluation_of(const Measured& measured,
                              const std::vector<net::OutputScore>& scores) {
  net::Evaluation evaluation;
  for (const char c : measured.right.value_or("")) evaluation.right.push_back(c == '1');
  evaluation.samples = measured.samples.value_or(std::ssize(evaluation.right));
  evaluation.n = measured.n.value_or(std::ssize(evaluation.right));
  evaluation.correct =
      measured.correct.value_or(std::ranges::count(evaluation.right, std::uint8_t{1}));
  evaluation.loss = measured.loss;
  const std::vector<std::string> tables = measured.tables.value_or(std::vector<std::string>());
  if (tables.size() != scores.size()) throw Error("trial: expected a table of each score");
  for (const std::string& table : tables)
    evaluation.tables.push_back(table_of(table, evaluation.samples));
  return evaluation;
}

Measured tune(const Subject& subject, const Cell& cell) {
  net::Graph graph = subject.load().graph;
  const policies::Recipe recipe = recipe_for(cell.bits, subject.run.settings.text("ends"), graph);
  policies::Tuning tuning{std::move(graph),
                          subject.load().graph,
                          {},
                          recipe,
                          cell.bits,
                          {subject.samples, calibration_of(subject.data)},
                          subject.run.seed};
  policies::complete_ranges(tuning);
  if (cell.chain != kNaive) policies::run_tune_steps(tuning, steps_for(subject.data, cell.chain));
  return measured_of(net::evaluate_against(tuning.graph, subject.load().graph, subject.data,
                                           net::Split::test, subject.images,
                                           *policies::tuned_numerics(tuning), subject.scores));
}

/// Of all parameters, over float32's.
double share_of_size(const Subject& subject, const std::string& bits) {
  constexpr double kFloat32Bits = 32;
  net::Graph graph = subject.load().graph;
  const policies::Recipe recipe = recipe_for(bits, subject.run.settings.text("ends"), graph);
  return policies::effective_bits({recipe, graph}, policies::float_reference(
                                                       graph, reference_batch(graph, subject.data)))
             .weight /
         kFloat32Bits;
}

/// Trials are functions of this.
Json point_of(const Subject& subject, const Cell& cell, const TrainedNet& trained) {
  Json point = {
      {"experiment", "post-training"},
      {"data", subject.data.digest()},
      {"images", subject.images},
      {"samples", subject.samples},
      {"seed", subject.run.seed},
      {"recipe", recipe_for(cell.bits, subject.run.settings.text("ends"), trained.graph).json()},
      {"chain", cell.chain == kNaive
                    ? cell.chain
                    : policies::tune_steps_text(steps_for(subject.data, cell.chain))}};
  for (const net::OutputScore& score : subject.scores)
    point["scores"].push_back(std::string(score->name));
  identify(point, trained);
  return point;
}

/// The two-sided p-value of no difference: of answers by the test that gives their interval, of
/// other figures by Student's law of the interval over `samples`.
double p_of_gain(const JudgedFigure& of, const stats::Interval& interval,
                 const stats::PairedAnswers& answers, std::int64_t samples) {
  if (of.measure->is_top1() && answers.n > 0) return p_value(answers, 0);
  return p_value(stats::PairedInterval{(interval.low + interval.high) / 2, interval.low,
                                       interval.high, samples},
                 0);
}

std::string change_text(const JudgedFigure& of) {
  const std::string change = figure_text(*of.measure, of.difference, true),
                    ends = interval_text(*of.measure, of.difference_low, of.difference_high, true);
  return ends == "-" ? change : change + " " + ends;
}

/// The interval of a difference; not numbers where it has none.
stats::Interval interval_of(const JudgedFigure& of) {
  return {of.difference_low.value_or(NAN), of.difference_high.value_or(NAN)};
}

/// By which `of` is better than what it is compared with, above 0 whatever the measure: undecided
/// without an interval. `answers`: where a sample has one class.
void add_gain(const std::string& what, const JudgedFigure& of, const stats::PairedAnswers& answers,
              std::int64_t samples, const char* claim, std::vector<Finding>& gains,
              std::vector<double>& p_values) {
  if (!of.difference) return;
  stats::Interval gain = interval_of(of);
  const double sign = of.measure->falls ? -1 : 1;
  if (of.measure->falls) gain = {-gain.high, -gain.low};
  const double factor = of.measure->factor;
  gains.push_back({what + (of.measure->falls ? ", naive minus it" : ", minus naive") +
                       (factor == 100 ? ", points" : ""),
                   0, factor * sign * *of.difference, factor * gain.low, factor * gain.high});
  gains.back().claim = claim;
  p_values.push_back(p_of_gain(of, gain, answers, samples));
}

/// That a loss against float32 is at most kClose small ones, as a loss above 0 is worse: nothing of
/// measures of which no loss is called small.
void add_close(const std::string& what, const JudgedFigure& of, std::vector<Finding>& close) {
  const std::optional<double> loss = of.measure->small == 0 ? std::nullopt : of.loss();
  if (!loss) return;
  const auto ends = of.loss_interval().value_or(std::pair<double, double>(NAN, NAN));
  const char* const how = of.measure->relative        ? ", float32 minus it, over float32"
                          : of.measure->falls         ? ", float32 minus it"
                          : of.measure->factor == 100 ? ", minus float32, points"
                                                      : ", minus float32";
  const double factor = of.measure->relative ? 1 : of.measure->factor;
  close.push_back(interval_finding(what + how, 0, -factor * *loss,
                                   {-factor * ends.second, -factor * ends.first},
                                   at_least(-factor * kClose * of.measure->small)));
}

/// What the claims, worded for top-1, compare of this data.
std::string measure_sentence(const net::Dataset& data, const Measure& measure) {
  std::string text = fmt::format("The claims compare the {} of data set {}, not top-1",
                                 measure.words, data.name());
  if (measure.small == 0) return text + "; no loss of it is judged against float32.";
  if (measure.factor != 100)
    text += fmt::format("; a loss of {} takes the place of 1 point",
                        measure.loss_text(kClose * measure.small));
  return text + ".";
}

Conclusion run_post_training(const ExperimentRun& run) {
  net::Dataset data = load_data(run);
  if (const std::string other = run.settings.text("calibrate_on"); other != kNone)
    data = net::calibrated_on(data, net::load_dataset(other, run.folders.cache));
  load_with_data(run.settings.text("net"), data, run.folders);
  const Subject subject{run, data,
                        std::min(run.settings.integer("samples"), data.calibration_count()),
                        std::min(run.settings.integer("images"), data.test_count()),
                        judged_scores(data, run.settings.text("metric"))};
  const TrainedNet trained = subject.load();
  std::vector<std::string> chains = run.settings.list("chains");
  std::set<std::string> left_out;
  for (const std::string& chain : chains)  // every mistake before the work
    if (chain != kNaive) steps_for(data, chain, &left_out);
  std::erase(chains, kNaive);
  chains.insert(chains.begin(), kNaive);  // what the others are compared with
  std::vector<Cell> cells = {{kFloat32, kNaive}};
  for (const std::string& bits : run.settings.list("bits"))
    for (const std::string& chain : chains) cells.push_back({bits, chain});
  std::vector<TypedTrial<Measured>> trials;
  for (const Cell& cell : cells)
    trials.push_back({point_of(subject, cell, trained), cell.bits + " " + cell.chain,
                      [&subject, cell] { return tune(subject, cell); }});
  std::vector<net::Evaluation> evaluations;
  for (const Measured& measured : run_typed(run, trials))
    evaluations.push_back(evaluation_of(measured, subject.scores));

  Conclusion conclusion;
  conclusion.sentences = baseline_notes(trained);
  std::ranges::move(
      policies::notes_on_outputs(trained.graph, "chains are compared by its targets alone"),
      std::back_inserter(conclusion.sentences));
  if (!left_out.empty())
    conclusion.sentences.push_back(
        fmt::format("Note: Chains are done without {}, as the targets are numbers and not classes, "
                    "whose probabilities it compares.",
                    joined(left_out, " and ")));
  const net::Evaluation& float32 = evaluations[0];
  const JudgedFigure exact = judged_of(data, subject.scores, float32, float32);
  const Measure& measure = *exact.measure;
  if (!measure.is_top1()) conclusion.sentences.push_back(measure_sentence(data, measure));
  const std::string unit = measure.factor == 100  ? ", points"
                           : *measure.prefix == 0 ? std::string()
                                                  : fmt::format(", {}", measure.prefix);
  ResultTable table{
      fmt::format("{} on {}, float32 {}{}{}", measure.words,
                  samples_text(data, float32.samples, "test "), figure_text(measure, exact.value),
                  *measure.prefix == 0 ? "" : " ", measure.prefix),
      {"bits", "steps", value_title(measure), "minus float32" + unit, "minus naive" + unit, "loss"},
      {}};
  std::map<std::string, std::size_t> naive;
  std::set<std::string> unharmed;  // bits to which plain rounding loses nothing for certain
  std::vector<Finding> gains, close, sized;
  std::vector<double> p_values;
  const std::string ends = run.settings.text("ends");
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto& [bits, chain] = cells[i];
    const net::Evaluation& own = evaluations[i];
    if (chain == kNaive) naive[bits] = i;
    const JudgedFigure figure = judged_of(data, subject.scores, own, float32),
                       gain = judged_of(data, subject.scores, own, evaluations[naive[bits]]);
    const auto lost = figure.loss_interval();
    if (chain == kNaive && (!lost || lost->first <= 0)) unharmed.insert(bits);
    table.rows.push_back({bits, chain, figure_text(measure, figure.value), change_text(figure),
                          chain == kNaive ? "" : change_text(gain),
                          std::isfinite(own.loss) ? decimal_text(own.loss, 4) : "-"});
    if (chain == kNaive) continue;
    const std::string what =
        fmt::format("{} of {}{} after {}", measure.words, bits,
                    ends == kSame ? "" : fmt::format(", first and last layer {},", ends), chain);
    const bool counted =
        data.targets_per_sample() == 1 && data.target() == net::TargetKind::classes;
    add_gain(what, gain,
             counted ? paired_answers(own, evaluations[naive[bits]]) : stats::PairedAnswers{},
             own.samples, unharmed.contains(bits) ? "nothing lost" : "gain", gains, p_values);
    if (chain != chains.back()) continue;
    if (bits == "w4a4") add_close(what, figure, close);
    if (!bits.ends_with(".json")) continue;
    if (const double share = share_of_size(subject, bits); share <= kSmallest)
      add_close(fmt::format("{}, {:.1f} % of float32's size", what, 100 * share), figure, sized);
  }
  conclusion.tables.push_back(std::move(table));
  judge_sides(gains, p_values);
  conclusion.add(std::move(gains), "gain");
  conclusion.add(std::move(close), "close");
  conclusion.add(std::move(sized), "size");
  return conclusion;
}

}  // namespace

extern const Experiment experiment_post_training = {
    "post-training",
    "how much of what few bits cost do steps after training recover",
    "Hubara et al. (ICML 2021, arXiv 2006.10518) claim that weights tuned layer by layer, widths "
    "chosen by an integer program, re-estimated batch normalisation and tuned biases regain what "
    "few bits cost, from a small calibration set without labels: ResNet-50 loses less than 1 % at "
    "13 % of its size.",
    {{"gain",
      "Top-1 after the steps is above that of plain rounding, where this loses some (published).",
      "images"},
     {"nothing lost", "So it is where plain rounding loses nothing for certain (a contrast).",
      "images"},
     {"close",
      "With 4-bit weights and activations, the first and the last layer as ends says, the last "
      "chain loses at most 1 point of float32 (a contrast).",
      "images"},
     {"size",
      "A mixture of widths, a recipe file, of at most 13 % of float32's size loses at most 1 point "
      "after the last chain (published).",
      "images"}},
    {{"net", "lenet", "network or file", takes_network()},
     data_setting(),
     {"bits", "w4a4", "w8a8,w4a8,w4a4,w3a4,mxfp4", "w8a8,w4a8,w4a4,w3a4,mxfp4",
      "bits of weights and activations (w4a8), a block format, or a recipe file", list_of()},
     {"ends", kSame, kSame, kSame,
      "same, or the format of the first and the last layer, such as int8"},
     {"chains", "batch_norm", kChains, kChains,
      "chains of tuning steps, joined by +, or pipelines; the last one has to come close"},
     {"samples", "64", "256", "512", "calibration samples, without labels", whole(1, 1'000'000)},
     {"calibrate_on", kNone, kNone, kNone, "another data set whose samples steps read"},
     {"metric", "", "what is compared, as --metric of eval; the task's"},
     {"images", "200", "2000", "10000", "test samples", whole(1, 100'000'000)}},
    run_post_training};

}  // namespace numemu::experiments
