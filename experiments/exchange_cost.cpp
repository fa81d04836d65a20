// All rules of exchange together: bits on the wire, measured between simulated workers beside what
// is predicted, bytes and seconds on paper by topology and number of workers, and what training
// loses whose gradients travel in few bits.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "emu/stats/mean.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/workers/exchange_figure.hpp"
#include "experiments/workers/synthetic_workers.hpp"
#include "experiments/workers/training_with_workers.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {
namespace exchange_costs {
namespace {

/// Of the prediction: scales of 32 bits for each tensor are left out.
constexpr double kBitsHold = 0.01;
/// Of AdaComp's mean field, which sends 2 to 8 % too few.
constexpr double kMeanFieldHolds = 0.1;

/// A rule as the link model has it, and as a recipe names it.
struct Rule {
  WireRule wire;
  Json recipe = nullptr;  ///< the key `exchange`; null: on paper alone
  double holds = kBitsHold;
  bool settles = false;  ///< what it sends depends on what earlier steps left
};

/// For a gradient of so many elements in one tensor.
std::vector<Rule> rules_of(const Settings& settings, std::int64_t elements) {
  const double share = settings.number("share");
  const auto named = [&](const char* rule) {
    return Json{{"rule", rule}, {"share", share}, {"order", "server"}};
  };
  const auto format = [](const char* name) { return Json{{"format", name}, {"order", "server"}}; };
  const auto by_server = [](const char* rule) { return Json{{"rule", rule}, {"order", "server"}}; };
  std::vector<Rule> rules = {{summed("bfloat16", 16), format("bfloat16")},
                             {summed("float8_e5m2", 8), format("float8_e5m2")},
                             {wire::topk(share, elements), named("topk")},
                             {wire::randomk(share, elements), named("randomk")}};
  for (const std::int64_t bin : settings.whole_numbers("bins"))
    rules.push_back({wire::adacomp(bin, elements),
                     {{"rule", "adacomp"}, {"bin", bin}, {"order", "server"}},
                     kMeanFieldHolds,
                     /*settles=*/true});
  rules.push_back({wire::scalecom(share, elements), named("scalecom")});
  rules.push_back({votes("majority"), by_server("majority")});
  rules.push_back({wire::birder_flat(), by_server("birder")});
  rules.push_back({wire::birder_nodes()});
  rules.push_back({wire::sign(), by_server("sign")});
  rules.push_back({wire::learned(share, 4, elements)});
  return rules;
}

/// Bits per element of the gradient, means over steps.
struct Measured {
  Estimate sent, returned;

  static void fields(auto& self, const auto& visit) {
    visit("sent", self.sent);
    visit("returned", self.returned);
  }
};

struct Synthetic {
  std::int64_t rows = 0, columns = 0, steps = 0, settle = 0;
  std::uint64_t seed = 0;

  std::int64_t elements() const { return rows * columns; }
};

Measured measure(const Rule& rule, std::int64_t count, const Synthetic& s) {
  workers::SyntheticWorkers group(rule.recipe, s.rows, s.columns, s.seed);
  std::vector<double> sent, returned;
  const std::int64_t settle = rule.settles ? s.settle : 0;
  for (std::int64_t step = 0; step < settle + s.steps; ++step) {
    const auto bits =
        group.exchange(step, workers::correlated_normals(count, s.elements(), 0, s.seed, step))
            .bits;
    if (step < settle) continue;
    sent.push_back(bits.sent / static_cast<double>(s.elements()));
    returned.push_back(bits.returned / static_cast<double>(s.elements()));
  }
  const auto estimate = [](const std::vector<double>& all) {
    const stats::Mean mean = stats::mean_of(all);
    return Estimate{mean.value, mean.error};
  };
  return {estimate(sent), estimate(returned)};
}

double predicted_sent(const WireRule& wire, std::int64_t workers) {
  return wire.bits(1) + wire.once / static_cast<double>(workers);
}
double predicted_returned(const WireRule& wire, std::int64_t workers) {
  return wire.result > 0 ? wire.result : wire.bits(workers);
}

/// Simulated workers beside the model (settings rows, wire_workers, steps, share).
void add_measured(const ExperimentRun& run, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  constexpr std::int64_t kColumns = 256;
  const Synthetic synthetic{.rows = settings.integer("rows"),
                            .columns = kColumns,
                            .steps = settings.integer("steps"),
                            .settle = settings.integer("settle"),
                            .seed = run.seed};
  std::vector<Rule> rules = rules_of(settings, synthetic.elements());
  std::erase_if(rules, [](const Rule& rule) { return rule.recipe.is_null(); });
  const std::vector<std::int64_t> counts = settings.whole_numbers("wire_workers");
  std::vector<TypedTrial<Measured>> trials;
  for (const Rule& rule : rules) {
    for (const std::int64_t count : counts) {
      trials.push_back({{{"exchange", rule.recipe},
                         {"workers", count},
                         {"rows", synthetic.rows},
                         {"columns", kColumns},
                         {"settle", rule.settles ? synthetic.settle : 0},
                         {"steps", synthetic.steps},
                         {"seed", run.seed}},
                        fmt::format("{}, {} workers", rule.wire.name, count),
                        [&rule, &synthetic, count] { return measure(rule, count, synthetic); }});
    }
  }
  const std::vector<Measured> measured = run_typed(run, std::move(trials));
  Chart chart{.kind = Chart::Kind::points,
              .title = "Bits that come back, of gradients of independent noise",
              .caption = fmt::format(
                  "Per element of a gradient of {} elements and step, mean over {} steps; order "
                  "server. Places of independent workers differ, so that what comes back grows "
                  "until all places and values are dense float32.",
                  synthetic.elements(), synthetic.steps),
              .x = "workers",
              .y = "bits per element",
              .log_x = true,
              .log_y = true};
  ResultTable table{
      "Bits on the wire, per element and step",
      {"rule", "workers", "sent, predicted", "sent, measured", "back, predicted", "back, measured"},
      {}};
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Rule& rule = rules[i / counts.size()];
    const std::int64_t count = counts[i % counts.size()];
    const double sent = predicted_sent(rule.wire, count),
                 back = predicted_returned(rule.wire, count);
    const auto judge = [&](const char* what, double predicted, const Estimate& found,
                           const char* claim) {
      conclusion.add(model_finding(fmt::format("{}, {} workers: bits per element {}",
                                               rule.wire.name, count, what),
                                   predicted, found.value, found.error, rule.holds * predicted),
                     claim);
    };
    judge("that a worker sends", sent, measured[i].sent, "sent");
    judge("that come back", back, measured[i].returned, "returned");
    const auto x = static_cast<double>(count);
    chart.add(rule.wire.name,
              with_error({.x = x, .y = measured[i].returned.value}, measured[i].returned.error),
              {.x = x, .y = back});
    table.rows.push_back({rule.wire.name, fmt::format("{}", count), fmt::format("{:.4f}", sent),
                          fmt::format("{:.4f}", measured[i].sent.value),
                          fmt::format("{:.4f}", back),
                          fmt::format("{:.4f}", measured[i].returned.value)});
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

void check_format(const std::string& name) {
  policies::Recipe::make({{"exchange", {{"format", name}}}}, "recipe");
}

Conclusion run_exchange_cost(const ExperimentRun& run) {
  Conclusion conclusion;
  add_measured(run, conclusion);
  std::vector<WireRule> wires;
  const auto elements = static_cast<std::int64_t>(link_setup(run.settings).elements);
  for (Rule& rule : rules_of(run.settings, elements)) wires.push_back(std::move(rule.wire));
  add_exchange_figure(wires, run.settings, conclusion);
  add_topology_tables(std::move(wires), run.settings, conclusion);
  std::vector<workers::Method> methods = {workers::dense()};
  for (const std::string& format : run.settings.list("formats")) {
    methods.push_back(workers::exchanged({{"format", format}}));
    methods.back().name = format;
  }
  for (const workers::Group group : {workers::Group::images, workers::Group::fine_tuning})
    workers::add_training(run, group, methods, conclusion);
  return conclusion;
}

}  // namespace
}  // namespace exchange_costs

extern const Experiment experiment_exchange_cost = {
    "exchange-cost",
    "what does an exchange of gradients cost under every rule, by topology and number of workers, "
    "where does each rule pay, and what do gradients in few bits lose",
    "Thakur, Rabenseifner and Gropp (IJHPCA 19, 2005) give the time of collective operations by "
    "latency and bandwidth; ScaleCom (Chen et al., NeurIPS 2020) claims that top-k exchange builds "
    "up with the workers where their places differ.",
    {{"sent", "A worker sends the bits of the model, AdaComp within 10 % (derived here)."},
     {"returned",
      "What comes back grows with the places that independent workers choose, up to dense float32 "
      "(derived here)."},
     {"accuracy",
      "Gradients that travel in 8 or 16 bits lose at most 0.5 points of top-1 to float32 (a "
      "contrast).",
      "seeds"}},
    with_links(workers::with_training(
        {{"rows", "64", "128", "512", "rows of 256 elements of the gradient", whole(1, 1'000'000)},
         {"wire_workers", "2,8", "2,8,32", "2,8,32,128", "workers whose bits are counted",
          wholes(1, 4096)},
         {"bins", "50", "50,500", "50,500", "elements of the bins of adacomp", wholes(1, 16384)},
         {"settle", "30", "400", "1000", "steps of adacomp before those that are measured",
          whole(0, 100'000)},
         {"steps", "4", "10", "20", "steps that are measured", whole(2, 100'000)},
         {"share", "0.01", "of topk, randomk and scalecom", real(1e-6, 1)},
         {"formats", "bfloat16,float8_e5m2,int8", "bfloat16,float8_e5m2,float8_e4m3fn,int8",
          "bfloat16,float8_e5m2,float8_e4m3fn,int8", "of gradients of trainings",
          list_of(exchange_costs::check_format)}},
        {workers::Group::images, workers::Group::fine_tuning})),
    exchange_costs::run_exchange_cost,
    workers::check_training};

}  // namespace numemu::experiments
