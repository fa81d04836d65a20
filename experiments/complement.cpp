// Training that alternates between cross-entropy and the entropy of the wrong classes: its
// gradient, its numbers in few bits, accuracy, and robustness to one step along the gradient (Chen
// et al., Complement Objective Training, ICLR 2019, arXiv 1903.01182).
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "emu/net/train/optimizer.hpp"
#include "experiments/complement/entropy.hpp"
#include "experiments/engine/study.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments {
namespace complement {
namespace {

constexpr double kRiseTolerance = 0.05;  // relative
constexpr const char* kNoText = "-";
enum : std::size_t { kPlain, kTwice, kComplement, kOwn };

std::vector<TrainingMethod> methods(const std::string& own) {
  const auto with = [](std::vector<std::string> objectives) {
    return [objectives](TrainTrial& trial) { trial.options.objectives = objectives; };
  };
  return {{.name = "cross-entropy", .change = with({"cross_entropy"})},
          // The same loss by another name, as objectives of a step differ in their names.
          {.name = "cross-entropy twice", .change = with({"cross_entropy", "label_smoothing(0)"})},
          {.name = "complement", .change = with({"cross_entropy", "complement"})},
          {.name = "complement by " + own, .change = [own](TrainTrial& trial) {
             trial.options.objectives = {"cross_entropy", "complement"};
             trial.options.objective_optimizers = {{"complement", own}};
           }}};
}

/// Robust as Comparison::after has it.
struct Figures {
  std::size_t epsilons;

  std::vector<double> of(const Robust& robust) const {
    std::vector<double> all = robust.top1;
    all.insert(all.end(), {robust.rise / robust.predicted_rise, robust.lost});
    return all;
  }
  static double at(const ComparedRun& run, std::size_t place) {
    return run.outcome.diverged || place >= run.after.size() ? NAN : run.after[place];
  }
  double ratio(const ComparedRun& run) const { return at(run, epsilons); }
  double lost(const ComparedRun& run) const { return at(run, epsilons + 1); }
};

void judge(const std::string& net, const ComparedUnder& under, std::vector<PairedGain>& gains) {
  const auto add = [&](std::size_t method, std::size_t on, const std::string& claim) {
    gains.push_back(
        {fmt::format("{}, {}: {} gained on '{}' by '{}'", net, under.recipe, under.unit(),
                     under.study.methods[on], under.study.methods[method]),
         gain(under.better, method, on), claim});
  };
  add(kComplement, kPlain, published_in(under.recipe, "accuracy"));
  add(kComplement, kTwice, "steps");
}

/// Accuracy by epsilon, and what the sums of absolute gradients say of the first.
void add_robustness(const ComparedUnder& under, const std::string& net, const Figures& figures,
                    const std::vector<double>& epsilons, std::vector<PairedGain>& gains,
                    Conclusion& conclusion) {
  const Study<ComparedRun>& study = under.study;
  const std::string title =
      fmt::format("{}, {}, {}", net, under.recipe, counted(study.seeds(), "seed"));
  std::vector<StudyColumn> columns{name_column("method", study.methods)};
  Chart chart{.title = "Accuracy under FGSM: " + title,
              .caption =
                  "Test images moved by epsilon along the sign of their gradient, in the "
                  "units of the network's input; float32.",
              .x = "epsilon",
              .y = "top-1, %"};
  for (std::size_t e = 0; e < epsilons.size(); ++e) {
    const SeedFigures top1 =
        study.figures([e](const ComparedRun& run) { return Figures::at(run, e); });
    columns.push_back(mean_column(fmt::format("top-1 at {}, %", epsilons[e]), top1));
    gains.push_back(
        {fmt::format("{}, {}: points of top-1 at epsilon {} gained on '{}' by '{}'", net,
                     under.recipe, epsilons[e], study.methods[kPlain], study.methods[kComplement]),
         gain(top1, kComplement, kPlain), published_in(under.recipe, "robust")});
    for (std::size_t m = 0; m < study.size(); ++m)
      chart.of(study.methods[m])
          .points.push_back({.x = epsilons[e], .y = stats::paired_interval(top1[m]).mean});
  }
  const auto ratio = [&](const ComparedRun& run) { return figures.ratio(run); };
  const auto lost = [&](const ComparedRun& run) { return 100 * figures.lost(run); };
  columns.push_back(mean_column("rise of the loss / predicted", study.figures(ratio), 3));
  columns.push_back(mean_column("1 - p is 0 in 1-6-9, % of images", study.figures(lost)));
  for (const std::size_t m : {kPlain, kComplement}) {
    conclusion.add(interval_finding(fmt::format("{}, {}, {}: rise of the loss at epsilon {} over "
                                                "what the gradients predict",
                                                net, under.recipe, study.methods[m], epsilons[0]),
                                    1, stats::paired_interval(study.figures(m, ratio)),
                                    near(1, kRiseTolerance)),
                   "rise");
  }
  conclusion.tables.push_back(study_table("FGSM: " + title, study.size(), columns));
  conclusion.charts.push_back(std::move(chart));
}

Comparison images_of(const Settings& settings) {
  return {.trial = training_of(settings, settings.text("net")),
          .methods = methods(settings.text("own")),
          .recipes = settings.list("recipes")};
}

Comparison words_of(const Settings& settings) {
  const std::string net = settings.text("text_net"), optimizer = net::recommended_optimizer(net);
  Comparison text{.trial = training_of(settings, net, {.optimizer = optimizer, .prefix = "text_"}),
                  .methods = methods(optimizer),
                  .recipes = settings.list("recipes"),
                  .at_once = false};
  text.methods.resize(kOwn);  // the last has another optimizer
  return text;
}

void add_images(const ExperimentRun& run, const net::Dataset& data, std::vector<PairedGain>& gains,
                Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::string net = settings.text("net");
  const std::vector<double> epsilons = settings.numbers("epsilons");
  const std::int64_t images = settings.integer("attacked");
  const Figures figures{epsilons.size()};
  std::string figured = fmt::format("FGSM on {} images at", images);
  for (const double epsilon : epsilons) figured += fmt::format(" {}", epsilon);
  Comparison comparison = images_of(settings);
  comparison.after = [&](const TrainTrial&, const net::Graph& graph) {
    return figures.of(robustness(graph, data, images, epsilons));
  };
  comparison.figured = figured;
  for (const ComparedUnder& under : compare_methods(run, data, comparison, conclusion)) {
    judge(net, under, gains);
    add_robustness(under, net, figures, epsilons, gains, conclusion);
  }
}

void add_text(const ExperimentRun& run, const net::Dataset& data, std::vector<PairedGain>& gains,
              Conclusion& conclusion) {
  const Comparison comparison = words_of(run.settings);
  for (const ComparedUnder& under : compare_methods(run, data, comparison, conclusion))
    judge(comparison.trial.net, under, gains);
}

Conclusion run_complement(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  Conclusion conclusion;
  check_guard(settings);
  const net::Dataset data = load_data(run);
  require_trainable(run, data, images_of(settings));
  std::optional<net::Dataset> text;
  if (settings.text("text_net") != kNoText) {
    text = load_data(run, "text_data");
    require_trainable(run, *text, words_of(settings));
  }
  add_closed_forms(run, conclusion);
  std::vector<PairedGain> gains;
  add_images(run, data, gains, conclusion);
  if (text) add_text(run, *text, gains, conclusion);
  conclusion.add(judge_gains(gains));
  return conclusion;
}

}  // namespace
}  // namespace complement

extern const Experiment experiment_complement;
const Experiment experiment_complement = {
    "complement",
    "what do steps that even out the wrong classes gain in accuracy and robustness, and what do "
    "few bits make of their gradient",
    "Chen et al. (ICLR 2019, arXiv 1903.01182) claim that a step that maximises the entropy of the "
    "wrong classes after each step of cross-entropy makes networks more accurate, and more robust "
    "to single-step attacks.",
    {{"gradient",
      "The gradient is q (ln q + H) / K, as central differences say, up to the rounding of float32 "
      "exponentials and logarithms (derived here)."},
     {"division",
      "In a format the entropy by division is S (H - ln S), S the remainder 1 - p over its "
      "rounding, up to the roundings of its terms (derived here)."},
     {"logits",
      "By logits its error stays below that of the roundings at any margin (derived here)."},
     {"rise",
      "The smallest step of FGSM raises the loss by epsilon times the sum of absolute gradients, "
      "within 5 % (derived here)."},
     {"accuracy", "Alternating steps gain accuracy on cross-entropy alone (published).", "seeds"},
     {"steps", "They gain on as many steps of cross-entropy (a contrast).", "seeds"},
     {"robust", "Alternating steps gain accuracy under FGSM on cross-entropy alone (published).",
      "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"classes", "10", "10,100", "10,100", "classes of random logits; the first for formats",
      wholes(3, 1000)},
     {"rows", "200", "10000", "100000", "rows of them", whole(2, 10'000'000)},
     {"margins", "0,4,8", "-4,0,2,4,6,8,10,12", "-4,0,2,4,6,8,10,12",
      "of the label's logit over the largest other", reals(-50, 80)},
     {"format", "hfp16_e6m9", "hfp16_e6m9", "hfp16_e6m9",
      "of the entropy by division and by logits", text_of(complement::check_format)},
     {"guard", "1e-7", "1e-7", "1e-7", "that division adds to 1 - p", real(0, 1)},
     {"net", "mlp", "mlp", "mlp", "network to train on images", takes_network()},
     data_setting("of images"),
     {"optimizer", "sgd", "sgd", "sgd", "optimizer of every objective", takes_optimizer()},
     {"own", "novograd", "novograd", "novograd", "of the complement in the last method",
      takes_optimizer()},
     {"recipes", "float32", "float32,mxfp8-train,mxfp4-train", "float32,mxfp8-train,mxfp4-train",
      "recipes", list_of()},
     {"epsilons", "0.001,0.05,0.1", "0.001,0.01,0.02,0.05,0.1,0.2,0.4",
      "0.001,0.01,0.02,0.05,0.1,0.2,0.4", "steps of FGSM, in units of the network's input",
      reals(1e-6, 100)},
     {"attacked", "200", "1000", "1000", "test images under FGSM", whole(1, 1'000'000'000)},
     training_settings({"1", "4", "4"}, "64", {"1024", "4096", "4096"}, {"500", "4000", "4000"}),
     {"text_net", "char-transformer", "char-transformer", "char-transformer",
      "network to train on text; -: none", takes_network_or_none()},
     {"text_data", "chain", "chain", "chain", "text", takes_data_set()},
     {"text_lr", "0.004", "0.004", "0.004", "its learning rate", real(1e-9, 1e3)},
     {"text_warmup", "0", "8", "8", "steps over which that rises", whole(0, 1'000'000'000)},
     training_settings("1", {"2", "4", "4"}, {"4", "200", "200"}, {"4", "80", "80"},
                       {.of = "window", .prefix = "text_"}),
     seeds_setting({"1", "3", "8"})},
    complement::run_complement};

}  // namespace numemu::experiments
