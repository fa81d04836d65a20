#include "experiments/workers/training_with_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu::experiments::workers {
namespace {

constexpr double kFloat32Bits = 32;

double sum_of(const std::vector<SentParameter>& parameters, double SentParameter::*bits) {
  double sum = 0;
  for (const SentParameter& parameter : parameters) sum += parameter.*bits;
  return sum;
}

Trained train(TrainTrial trial, const net::Dataset& data) {
  Trained trained;
  std::int64_t epochs = 0;
  std::vector<net::WireBits> wire;  // of all epochs, which have equally many steps
  trial.on_step = [&](const net::Graph& graph, std::int64_t) {
    if (!trained.parameters.empty()) return;
    for (const net::Parameter* parameter : graph.parameters()) {
      const net::Tensor& value = parameter->value;
      trained.parameters.push_back(
          {parameter->name, static_cast<std::int64_t>(value.shape.size()), value.size()});
    }
  };
  trial.on_epoch = [&](const net::EpochMetrics& epoch, std::size_t) {
    // Empty where nobody exchanges and where no step was taken.
    wire.resize(std::max(wire.size(), epoch.wire.size()));
    for (std::size_t p = 0; p < epoch.wire.size(); ++p) {
      wire[p].sent += epoch.wire[p].sent;
      wire[p].returned += epoch.wire[p].returned;
    }
    trained.dropped += epoch.dropped.value_or(0);
    trained.steps = epoch.step;
    ++epochs;
  };
  trained.outcome = run_train_trial(trial, data);
  const auto count = static_cast<double>(std::max<std::int64_t>(epochs, 1));
  trained.dropped /= count;
  wire.resize(std::max(wire.size(), trained.parameters.size()));
  for (std::size_t p = 0; p < trained.parameters.size(); ++p) {
    trained.parameters[p].sent = wire[p].sent / count;
    trained.parameters[p].returned = wire[p].returned / count;
  }
  std::erase_if(trained.parameters, [](const SentParameter& p) { return p.sent == 0; });
  return trained;
}

/// What is measured of a network's trainings is shown and judged in one unit.
struct Unit {
  const char *metric, *difference, *gained;
  double most_lost;
};
Unit unit_of(bool accuracy) {
  if (accuracy) return {"top-1, %", "difference, points", "points", kMostLost};
  return {"bits per character", "difference, % of the bits", "% of the bits per character",
          kMostBitsLost};
}

SeedFigures scores_of(const Study<Trained>& study, bool accuracy) {
  SeedFigures scores = study.figures([&](const Trained& t) { return 100 * t.outcome.metric; });
  if (accuracy) return scores;
  const std::vector<double> first = scores.front();
  for (std::vector<double>& of_method : scores) {
    for (std::size_t s = 0; s < of_method.size(); ++s) of_method[s] *= -100 / first[s];
  }
  return scores;
}

void judge(const TrainedNetwork& trained, Conclusion& conclusion) {
  const Unit unit = unit_of(trained.accuracy);
  PairedClaims claims;
  for (std::size_t m = 1; m < trained.methods.size(); ++m) {
    const Method& method = trained.methods[m];
    const std::string& claim = method.claim_under(trained.optimizer);
    if (claim.empty()) continue;
    claims.add(fmt::format("{}: {} gained by {} on {}, at least -{}", trained.name, unit.gained,
                           method.name, trained.methods[0].name, unit.most_lost),
               trained.gained(m), -unit.most_lost, claim);
  }
  conclusion.add(claims.judged());
}

void show(const TrainedNetwork& trained, const std::string& title, Conclusion& conclusion) {
  const Unit unit = unit_of(trained.accuracy);
  const auto bytes = [&](double (Trained::*count)() const) {
    return [&trained, count](std::size_t m) {
      return fmt::format("{:.0f}", trained.study.mean(m, count));
    };
  };
  const auto rate = [&](std::int64_t least, std::int64_t most) {
    return [&trained, least, most](std::size_t m) {
      const double mean = trained.rates(m, least, most).mean;
      return std::isfinite(mean) ? fmt::format("{:.1f}", mean) : std::string("-");
    };
  };
  const SeedFigures metrics = trained.study.figures(
      [&](const Trained& t) { return (trained.accuracy ? 100 : 1) * t.outcome.metric; });
  conclusion.tables.push_back(
      study_table(title, trained.methods.size(),
                  {name_column("exchange", trained.study.methods),
                   {"bytes sent per step and worker", bytes(&Trained::sent_bytes)},
                   {"bytes returned", bytes(&Trained::returned_bytes)},
                   {"compression", rate(1, 8)},
                   {"of convolutions", rate(3, 8)},
                   {"of matrices", rate(2, 2)},
                   mean_column(unit.metric, metrics, trained.accuracy ? 2 : 4),
                   difference_column(unit.difference, trained.scores),
                   interval_column(trained.scores)}));
  conclusion.charts.push_back(gain_chart(
      "What the exchange costs: " + title,
      fmt::format("Difference to {}, in {}, with its 95 % interval by Student's t law paired by "
                  "seed; below 0 is worse. Products are float32.",
                  trained.methods[0].name, unit.gained),
      unit.difference, trained.study.methods, trained.scores));
  for (std::size_t m = 1; m < trained.methods.size(); ++m) {
    const double sent = trained.study.mean(m, &Trained::sent_bytes),
                 whole = trained.study.mean(0, &Trained::sent_bytes);
    const std::string sends =
        sent == whole ? ""
                      : fmt::format(" sends {:.0f} bytes per step and worker in place of {:.0f}",
                                    sent, whole);
    conclusion.sentences.push_back(
        fmt::format("{}: {}{}: {} {}{}.", trained.name, trained.methods[m].name, sends,
                    mean_text(trained.gained(m)), unit.gained,
                    trained.study.seeds() > 1 ? "" : " (one seed: no interval, so no verdict)"));
  }
}

}  // namespace

std::string key(Group group, const std::string& setting) {
  constexpr const char* kPrefixes[] = {"", "tuned_", "text_"};
  return kPrefixes[static_cast<std::size_t>(group)] + setting;
}

Method dense() { return {"dense"}; }

Method exchanged(const Json& rule, std::string claim) {
  const std::string name = rule.is_string() ? rule.get<std::string>() : rule.dump();
  return {name, {{"exchange", rule}}, std::move(claim)};
}

double Trained::sent_bytes() const { return sum_of(parameters, &SentParameter::sent) / 8; }
double Trained::returned_bytes() const { return sum_of(parameters, &SentParameter::returned) / 8; }

double Trained::rate(std::int64_t least, std::int64_t most) const {
  double whole = 0, bits = 0;
  for (const SentParameter& parameter : parameters) {
    if (parameter.axes < least || parameter.axes > most) continue;
    whole += kFloat32Bits * static_cast<double>(parameter.elements);
    bits += parameter.sent;
  }
  return whole / bits;
}

stats::PairedInterval TrainedNetwork::rates(std::size_t method, std::int64_t least,
                                            std::int64_t most) const {
  return stats::paired_interval(
      study.figures(method, [=](const Trained& t) { return t.rate(least, most); }));
}

SettingList with_training(SettingList settings, const std::vector<Group>& groups,
                          const BySize& optimizers) {
  const auto add = [&settings](const SettingList& more) {
    for (const Setting& setting : more) {
      if (std::ranges::find(settings, setting.key, &Setting::key) == settings.end())
        settings.push_back(setting);
    }
  };
  add({{"workers", "4", "4", "4", "workers that share each batch", whole(2, 1024)},
       seeds_setting({"1", "3", "5"})});
  const SettingList of_groups[] = {
      {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks to train; -: none",
        takes_networks_or_none()},
       data_setting("of images"),
       {"optimizers", optimizers.smoke, optimizers.standard, optimizers.full, "of the training",
        takes_optimizers()},
       training_settings({"1", "4", "8"}, "128", {"1024", "8192", "16384"}, {"500", "4000", "0"})},
      {{"tuned_nets", "-", "-", "-", "trained networks to train on, .onnx files; -: none",
        takes_networks_or_none()},
       {"tuned_data", "glyphs", "glyphs", "glyphs", "data set of images", takes_data_set()},
       {"tuned_optimizers", "sgd", "sgd", "sgd", "of the training", takes_optimizers()},
       {"tuned_lr", "0.01", "0.01", "0.01", "learning rate", real(1e-9, 1e3)},
       {"tuned_warmup", "0", "0", "0", "steps of the rising learning rate",
        whole(0, 1'000'000'000)},
       training_settings("1", "128", "0", "0", {.prefix = "tuned_"})},
      {{"text_nets", "-", "lstm-char", "lstm-char", "networks to train on a text; -: none",
        takes_networks_or_none()},
       {"text_data", "chain", "chain", "chain", "text", takes_data_set()},
       {"text_optimizers", "adam", "adam", "adam", "of the training", takes_optimizers()},
       training_settings("1", "8", {"16", "1920", "3840"}, {"8", "160", "160"},
                         {.of = "window", .prefix = "text_"})}};
  for (const Group group : groups) add(of_groups[static_cast<std::size_t>(group)]);
  return settings;
}

void check_training(const Settings& settings) {
  for (const Group group : {Group::images, Group::fine_tuning, Group::text}) {
    const std::string prefix = key(group, ""), nets = prefix + "nets";
    if (!settings.values().contains(nets) || settings.text(nets) == "-") continue;
    net::TrainOptions options;
    options.workers = settings.integer("workers");
    if (settings.values().contains("micro_batches"))
      options.micro_batches = settings.integer("micro_batches");
    options.batch = settings.integer(prefix + "batch");
    at("--set: " + prefix + "batch", ErrorKind::usage, [&] { net::check(options); });
  }
}

std::vector<TrainedNetwork> add_training(const ExperimentRun& run, Group group,
                                         const std::vector<Method>& methods,
                                         Conclusion& conclusion) {
  if (run.settings.text(key(group, "nets")) == "-") return {};
  return add_training_on(run, group, load_data(run, key(group, "data")), methods, conclusion);
}

std::vector<TrainedNetwork> add_training_on(const ExperimentRun& run, Group group,
                                            const net::Dataset& data,
                                            const std::vector<Method>& methods,
                                            Conclusion& conclusion) {
  const std::int64_t count = run.settings.integer("workers");
  std::vector<TrainedNetwork> all;
  for (const std::string& net : run.settings.list(key(group, "nets"))) {
    for (const std::string& optimizer : run.settings.list(key(group, "optimizers"))) {
      const std::string label =
          fmt::format("{}, {}", net.substr(net.find_last_of('/') + 1), optimizer);
      TrainingPlan plan{
          .trial =
              training_of(run.settings, net,
                          {.optimizer = optimizer, .least_batch = count, .prefix = key(group, "")}),
          .data = data.name(),
          .seeds = seeds_of(run),
          .at_once = true,
          .prefix = label + ": "};
      plan.trial.options.workers = count;
      for (const Method& method : methods)
        plan.methods.push_back({.name = method.name,
                                .recipe = method.recipe,
                                .change = method.change,
                                .counted = {{"counted", "bits on the wire"}}});
      auto study = run_training_study<Trained>(
          run, data, plan,
          [&](const TrainTrial& trial, std::size_t) { return train(trial, data); });
      const bool accuracy = study.runs[0][0].outcome.accuracy;
      SeedFigures scores = scores_of(study, accuracy);
      all.push_back({label, optimizer, methods, std::move(study), accuracy, std::move(scores)});
      const TrainedNetwork& trained = all.back();
      judge(trained, conclusion);
      say_diverged(trained.study, plan.seeds, plan.prefix, conclusion);
      show(trained,
           fmt::format("{} on {}, {}, {}, {}", label, data.name(), counted(count, "worker"),
                       counted(plan.trial.options.epochs, "epoch"),
                       counted(static_cast<std::int64_t>(trained.study.seeds()), "seed")),
           conclusion);
    }
  }
  return all;
}

}  // namespace numemu::experiments::workers
