// Tensors kept for backward as stochastic codes of few bits: is the noise of the gradients what the
// closed forms say, where does it come from, which bits are best, what does training lose?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "emu/net/kept_bytes.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/actnn/passes.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/random.hpp"
#include "policies/bits/allocation.hpp"
#include "policies/bits/sample_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments::actnn {

// Bits by the greedy algorithm against the optimum of the same items.

namespace {

using policies::AllocationMethod;
using policies::BitItem;

constexpr std::size_t kFew = 6, kMany = 64;  // items: what trying everything can do, and a batch
constexpr double kRounding = 1e-12;          // relative, of sums in another order
constexpr double kNear = 1.01;               // of the least loss, where sizes differ

/// Sensitivities of lognormal law; sizes are equal, or those of layers.
std::vector<BitItem> items_of(std::size_t count, bool sized, std::uint64_t seed,
                              std::int64_t instance) {
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::probe;
  random.tensor = static_cast<std::uint32_t>(instance);
  constexpr double kSpread = 2, kSizes[] = {1, 4, 16, 64};
  std::vector<BitItem> items(count);
  for (std::size_t i = 0; i < count; ++i) {
    items[i].sensitivity = portable::exp(kSpread * normal::draw(random, 2 * i, 31));
    if (sized) items[i].weight = kSizes[random.bits(2 * i + 1, 2)];
  }
  return items;
}

double least_loss(const std::vector<BitItem>& items, double budget, AllocationMethod method) {
  policies::AllocationTable table;
  for (const BitItem& item : items) {
    table.emplace_back();
    for (int b = 1; b <= policies::kMostItemBits; ++b)
      table.back().push_back({policies::item_loss(item, b), {item.weight * b}});
  }
  return policies::allocate(table, {budget}, method)->loss;
}

}  // namespace

void add_allocation(const ExperimentRun& run, Conclusion& conclusion) {
  const std::int64_t instances = run.settings.integer("instances");
  ResultTable table{
      fmt::format("greedy bits of {} instances, sensitivities of lognormal law", instances),
      {"items", "sizes", "average bits", "optimum by", "optimal", "mean loss / least",
       "worst loss / least", "loss of equal bits / greedy"},
      {}};
  struct Case {
    std::size_t count;
    bool sized;
    AllocationMethod method;
  };
  for (const Case& c :
       {Case{kFew, false, AllocationMethod::exhaustive},
        Case{kMany, false, AllocationMethod::exact}, Case{kFew, true, AllocationMethod::exhaustive},
        Case{kMany, true, AllocationMethod::exact}}) {
    for (const int average : {2, 4}) {
      std::int64_t optimal = 0;
      double sum = 0, worst = 0, gain = 0;
      for (std::int64_t i = 0; i < instances; ++i) {
        const std::vector<BitItem> items = items_of(c.count, c.sized, run.seed, i);
        double budget = 0;
        for (const BitItem& item : items) budget += item.weight * average;
        const double loss = policies::bits_loss(items, policies::greedy_bits(items, budget));
        const double ratio = loss / least_loss(items, budget, c.method);
        optimal += std::fabs(ratio - 1) <= kRounding;
        sum += ratio / static_cast<double>(instances);
        worst = std::max(worst, ratio);
        gain += policies::bits_loss(items, std::vector<int>(c.count, average)) / loss /
                static_cast<double>(instances);
      }
      const std::string where = fmt::format("{} items of {} size, {} bits on average", c.count,
                                            c.sized ? "unequal" : "equal", average);
      conclusion.add(exact_finding("instances where greedy finds the least loss, " + where,
                                   static_cast<double>(instances), static_cast<double>(optimal),
                                   optimal == instances),
                     c.sized ? "greedy, layers" : "greedy");
      if (c.sized && c.count == kMany) {
        conclusion.add(
            exact_finding(
                fmt::format("mean loss over the least, {} (at most {} claimed)", where, kNear), 1,
                sum, sum <= kNear, at_most(kNear)),
            "greedy, near");
      }
      table.rows.push_back(
          {std::to_string(c.count), c.sized ? "1 to 64" : "equal", std::to_string(average),
           c.method == AllocationMethod::exhaustive ? "trying everything" : "dominance",
           fmt::format("{} of {}", optimal, instances), fmt::format("{:.4f}", sum),
           fmt::format("{:.3f}", worst), fmt::format("{:.2f}", gain)});
    }
  }
  conclusion.tables.push_back(std::move(table));
}

// Networks trained at the levels of ActNN and with fixed bits, and the bytes they keep.

namespace {

constexpr double kMargin = 0.5;       // points of top-1 that 2 bits are claimed to lose at most
constexpr double kSmaller = 12;       // times, of L3, claimed
constexpr double kLargerBatch = 6.6;  // times, the least that is published
constexpr double kCoarse = 0.01;      // relative, of bytes where bits differ by sample
constexpr const char* kPublishedOptimizer = "sgd";     // with momentum, on CIFAR-10 and ImageNet
constexpr double kShortMinimum = 2, kLongMinimum = 4;  // bytes

struct Level {
  std::string name;
  Json recipe = Json::object();
  double bits = 0;      ///< per element of linear contexts, on average; 0: float32
  bool norms = true;    ///< contexts of batch normalisation are compressed too
  bool greedy = false;  ///< by sample and layer
  bool role = false;    ///< by a role, to the same codes
};

/// The values that batch normalisation reads.
std::vector<std::string> norm_inputs(const net::Graph& graph) {
  std::vector<std::string> names;
  for (const net::Node& node : graph.nodes)
    if (node.op->kind() == "batch_norm") names.emplace_back(graph.value_name(node.inputs[0]));
  return names;
}

/// With minima in bfloat16, as published, or in float32.
std::vector<Level> levels(const net::Graph& graph, std::int64_t group, double minimum) {
  const auto saved = [&](const char* key, const char* value) {
    return Json{{"saved",
                 {{"group", group},
                  {"minimum", minimum == kShortMinimum ? "bfloat16" : "float32"},
                  {key, value}}}};
  };
  std::vector<Level> all{{"L0, float32"},
                         {"L1, 4 bits but for batch normalisation", saved("format", "uint4"), 4},
                         {"L2, 4 bits", saved("format", "uint4"), 4},
                         {"L3, greedy 2 bits", saved("bits", "greedy(2)"), 2, true, true},
                         {"2 bits", saved("format", "uint2"), 2},
                         {"1 bit", saved("format", "uint1"), 1},
                         {"1 bit, nearest",
                          {{"roles",
                            {{"saved",
                              {{"format", fmt::format("group(uint1,{},bfloat16,min)", group)},
                               {"rounding", "rne"}}}}}},
                          1,
                          true,
                          false,
                          true}};
  for (const std::string& value : norm_inputs(graph))
    all[1].recipe["layers"].push_back({{"match", value}, {"saved", nullptr}});
  all[1].norms = false;
  return all;
}

/// Bytes of a batch: those of each sample, and statistics.
struct PlannedBytes {
  double each = 0, fixed = 0;

  double of(double samples) const { return samples * each + fixed; }
};

/// By the plan: a bit per sign, b per linear element (greedy: the mean of what the algorithm makes
/// of float32 ranges and gradients), a bfloat16 scale and a minimum of so many bytes per group, all
/// else as it is. Headers are left out.
PlannedBytes predicted_bytes(const Sample& sample, const Level& level, std::int64_t group,
                             double minimum) {
  const net::Graph& graph = sample.graph;
  const std::int64_t samples = sample.x.dim(0);
  std::map<std::string, std::vector<int>> chosen;
  if (level.greedy) chosen = bits_of(sample, exact_pass(sample), 0, level.bits, group);
  const auto bits = [&](int value) {
    if (!level.greedy) return level.bits;
    double sum = 0;
    for (const int b : chosen.at(std::string(graph.value_name(value)))) sum += b;
    return sum / static_cast<double>(samples);
  };
  constexpr double kScale = 2, kFloat = 4, kSign = 0.125;
  net::Shape input = graph.inputs[0].shape;
  input.insert(input.begin(), samples);
  const std::vector<net::Shape> shapes = net::value_shapes(graph, std::vector<net::Shape>{input});
  const std::vector<std::string> norms = norm_inputs(graph);
  double bytes = 0;
  for (int v = 0; v < static_cast<int>(graph.value_count()); ++v) {
    net::Uses uses;
    for (const net::Node& node : graph.nodes) {
      for (std::size_t k = 0; k < node.inputs.size(); ++k)
        if (node.inputs[k] == v && node.op->input_use(k))
          uses.set(static_cast<std::size_t>(*node.op->input_use(k)));
      if (graph.value_of(static_cast<std::size_t>(&node - graph.nodes.data())) == v &&
          node.op->output_use())
        uses.set(static_cast<std::size_t>(*node.op->output_use()));
    }
    const auto n = static_cast<double>(net::element_count(shapes[static_cast<std::size_t>(v)]));
    const bool kept =
        level.bits == 0 ||
        (!level.norms && std::ranges::find(norms, graph.value_name(v)) != norms.end());
    bool whole = false;
    for (std::size_t u = 0; u < net::kUses; ++u) {
      if (!uses[u]) continue;
      const auto use = static_cast<net::Use>(u);
      const auto each = static_cast<std::int64_t>(n) / samples;
      if (!kept && use == net::Use::linear)
        bytes += n * bits(v) / 8 +
                 (kScale + minimum) * static_cast<double>(samples * ((each + group - 1) / group));
      else if (!kept && use == net::Use::sign)
        bytes += n * kSign;
      else
        whole = true;
    }
    if (whole) bytes += kFloat * n;
  }
  // Statistics of batch normalisation: mean and inverse deviation of each channel.
  double fixed = 0;
  for (const net::Node& node : graph.nodes)
    if (node.op->kind() == "batch_norm")
      fixed += 2 * kFloat * static_cast<double>(node.op->parameters()[0].value.size());
  return {bytes / static_cast<double>(samples), fixed};
}

/// Bytes that a step keeps, after a first step that the greedy algorithm learns from.
net::KeptBytes::Sums kept_by(const Sample& sample, const Level& level, std::uint64_t seed) {
  policies::RecipeNumerics recipe(policies::Recipe::make(level.recipe, "recipe of actnn", seed),
                                  sample.graph);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(sample.x.dim(0)));
  const net::Step step{.phase = net::Phase::training, .samples = &ids};
  recipe.begin_step(step);
  pass(sample, recipe);
  recipe.end_step(step);
  net::KeptBytes counted(recipe);
  counted.begin_step(step);
  pass(sample, counted);
  counted.end_epoch({});
  return *counted.of_epoch(0);
}

void add_bytes(const ExperimentRun& run, const net::Dataset& data, const std::string& net,
               std::int64_t group, Conclusion& conclusion) {
  const std::int64_t batch = run.settings.integer("batch");
  const Sample sample = sample_of(net, data, 32, batch, run.seed);
  ResultTable table{fmt::format("bytes kept for backward of a sample, {} at batch {}", net, batch),
                    {"method", "minima", "predicted", "counted", "times less than float32"},
                    {}};
  const auto samples = static_cast<double>(sample.x.dim(0));
  for (const double minimum : {kShortMinimum, kLongMinimum}) {
    const bool as_published = minimum == kShortMinimum;
    const char* const minima = as_published ? "bfloat16" : "float32";
    const std::vector<Level> all = levels(sample.graph, group, minimum);
    const double whole = predicted_bytes(sample, all[0], group, minimum).of(samples) / samples;
    for (const Level& level : all) {
      if (level.role || (level.bits == 0 && !as_published)) continue;
      const double predicted = predicted_bytes(sample, level, group, minimum).of(samples) / samples;
      const double counted = kept_by(sample, level, run.seed).per_sample();
      conclusion.add(
          exact_finding(fmt::format("bytes kept of a sample, {}, minima in {}", level.name, minima),
                        predicted, counted, std::fabs(counted / predicted - 1) <= kCoarse,
                        near(predicted, kCoarse * predicted)),
          "bytes");
      if (level.greedy) {
        conclusion.add(
            exact_finding(
                fmt::format("times fewer bytes than float32 of all kept tensors, {}, minima in {} "
                            "(at least {} claimed)",
                            level.name, minima, kSmaller),
                kSmaller, whole / counted, whole / counted >= kSmaller, at_least(kSmaller)),
            as_published ? "memory" : "memory, float32 minima");
      }
      table.rows.push_back({level.name, level.bits == 0 ? "-" : minima,
                            fmt::format("{:.1f}", predicted), fmt::format("{:.1f}", counted),
                            fmt::format("{:.2f}", whole / counted)});
    }
  }
  conclusion.tables.push_back(std::move(table));
}

/// Values, gradients and the momentum of SGD of all trained parameters, in float32.
double model_bytes(const net::Graph& graph) {
  constexpr double kTensors = 3, kFloat = 4;
  double bytes = 0;
  for (const net::Parameter* const parameter : graph.parameters())
    if (parameter->trained)
      bytes += kTensors * kFloat * static_cast<double>(parameter->value.size());
  return bytes;
}

/// The largest batch that fits: `predicted` or near it, and at least `batch`, which does.
std::int64_t largest_batch(std::int64_t batch, std::int64_t predicted,
                           const std::function<bool(std::int64_t)>& fits) {
  std::int64_t low = batch, high = std::max(batch, predicted), step = 1;
  if (high == batch || fits(high)) {
    low = high;
    for (; fits(low + step); step *= 2) low += step;
    high = low + step;
  } else {
    for (; high - step > batch && !fits(high - step); step *= 2) high -= step;
    low = std::max(batch, high - step);
  }
  while (high - low > 1) {
    const std::int64_t middle = std::midpoint(low, high);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

/// What a training holds with `batch` samples, and the largest batch that holds no more.
struct BatchInBytes {
  double budget = 0;
  std::int64_t predicted = 0, counted = 0;

  static void fields(auto& self, const auto& visit) {
    visit("budget", self.budget);
    visit("predicted", self.predicted);
    visit("counted", self.counted);
  }
};

/// The largest batch in the bytes that a float32 training of `budget_batch` samples holds between
/// its passes: model_bytes() and what is kept for backward. Buffers of single layers are left out.
void add_batches(const ExperimentRun& run, const net::Dataset& data, const std::string& net,
                 std::int64_t group, Conclusion& conclusion) {
  constexpr std::int64_t kTrain = 32;
  const std::int64_t batch = run.settings.integer("budget_batch");
  const auto sample = [&](std::int64_t n) { return sample_of(net, data, kTrain, n, run.seed); };
  const Sample first = sample(batch);
  const std::vector<Level> all = levels(first.graph, group, kShortMinimum);
  const auto largest_of = [&](const Level& level) {
    const double model = model_bytes(first.graph);
    const auto held = [&](const Level& of, std::int64_t n) {
      return model + static_cast<double>(kept_by(sample(n), of, run.seed).bytes);
    };
    const PlannedBytes plan = predicted_bytes(first, level, group, kShortMinimum);
    BatchInBytes result{.budget = held(all[0], batch)};
    result.predicted =
        static_cast<std::int64_t>(std::floor((result.budget - model - plan.fixed) / plan.each));
    result.counted = largest_batch(batch, result.predicted,
                                   [&](std::int64_t n) { return held(level, n) <= result.budget; });
    return result;
  };
  std::vector<Level> compressed;
  for (const Level& level : all)
    if (!level.role && level.bits != 0) compressed.push_back(level);
  const std::vector<BatchInBytes> results =
      run_cases<BatchInBytes>(run, compressed, [&](const Level& level) {
        Json point = sample_point(net, data, kTrain, batch, run.seed);
        point["kept"] = level.recipe;
        return TypedTrial<BatchInBytes>{std::move(point), "largest batch, " + level.name,
                                        [&] { return largest_of(level); }};
      });
  const double budget = results.front().budget;
  ResultTable table{fmt::format("largest batch of {} in {:.0f} bytes, which float32 fills with {} "
                                "samples (parameters, gradients, momentum and kept tensors)",
                                net, budget, batch),
                    {"method", "predicted", "counted", "times that of float32"},
                    {}};
  for (std::size_t l = 0; l < compressed.size(); ++l) {
    const Level& level = compressed[l];
    const auto predicted = static_cast<double>(results[l].predicted),
               counted = static_cast<double>(results[l].counted);
    const double times = counted / static_cast<double>(batch);
    conclusion.add(
        exact_finding(
            fmt::format("largest batch in the bytes of {} in float32, {}", batch, level.name),
            predicted, counted, std::fabs(counted / predicted - 1) <= kClosedForm,
            near(predicted, kClosedForm * predicted)),
        "batch, predicted");
    if (level.greedy) {
      conclusion.add(
          exact_finding(fmt::format("times the batch of float32 in the same bytes, {} "
                                    "(at least {} claimed)",
                                    level.name, kLargerBatch),
                        kLargerBatch, times, times >= kLargerBatch, at_least(kLargerBatch)),
          "batch");
    }
    table.rows.push_back({level.name, fmt::format("{}", results[l].predicted),
                          fmt::format("{}", results[l].counted), fmt::format("{:.2f}", times)});
  }
  conclusion.tables.push_back(std::move(table));
}

/// The levels trained by one optimizer.
void add_levels(const ExperimentRun& run, const net::Dataset& data, const std::string& optimizer,
                const std::vector<Level>& all, Conclusion& conclusion) {
  const bool as_published = optimizer == kPublishedOptimizer;
  TrainingPlan plan;
  plan.trial = training_of(run.settings, run.settings.text("net"),
                           {.optimizer = optimizer, .least_batch = 2});
  plan.data = run.settings.text("data");
  plan.seeds = seeds_of(run);
  plan.prefix = optimizer + ", ";
  plan.at_once = true;
  for (const Level& level : all) plan.methods.push_back({level.name, level.recipe});
  TrainingTable training = run_training(run, data, plan);

  PairedClaims accuracy;
  for (std::size_t m = 1; m < all.size(); ++m) {
    if (all[m].bits < 2) continue;
    accuracy.add(fmt::format("{}: points of top-1 gained on float32 by {}, at least -{}", optimizer,
                             all[m].name, kMargin),
                 gain(training.top1, m), -kMargin, as_published ? "accuracy" : "other optimizers");
  }
  conclusion.add(accuracy.judged());
  conclusion.add(judge_gains({{optimizer + ": points of top-1 that 1 bit without bias gains over 1 "
                                           "bit to nearest",
                               gain(training.top1, all.size() - 2, all.size() - 1)}}),
                 "bias");
  training.table.title += ", " + optimizer;
  training.chart.title += ", " + optimizer;
  conclusion.tables.push_back(std::move(training.table));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const std::int64_t group = run.settings.integer("group");
  const std::string& net = run.settings.text("net");
  add_bytes(run, data, net, group, conclusion);
  add_batches(run, data, net, group, conclusion);
  TrainTrial first;
  first.net = net;
  const std::vector<Level> all = levels(initial_network(first, data), group, kShortMinimum);
  for (const std::string& optimizer : run.settings.list("optimizers"))
    add_levels(run, data, optimizer, all, conclusion);
}

}  // namespace numemu::experiments::actnn

namespace numemu::experiments {

extern const Experiment experiment_actnn = {
    "actnn",
    "what stochastic codes of few bits in place of the tensors kept for backward do to gradients, "
    "to memory and to training",
    "Chen et al. (ICML 2021, arXiv 2104.14129) claim that contexts in 2 bits on average, "
    "stochastic and without bias, add a variance to gradients that is the sum of what the layers "
    "add, keep 12 times fewer bytes and lose less than 0.5 points of top-1.",
    {{"variance",
      "The squared error of a weight gradient is the sum over the elements of its context of their "
      "rounding variance times the squared output gradients that meet them (derived here)."},
     {"unbiased", "Gradients of layers whose own context is compressed have no bias (published)."},
     {"layers add",
      "The variance of a gradient is the sum of what each context adds to it, given the gradient "
      "that reaches that context, within 5 % (published; the margin is ours)."},
     {"layers alone",
      "So is it where each context is compressed alone, within 5 % (derived here)."},
     {"greedy", "With equal sizes the greedy algorithm finds the least loss (derived here)."},
     {"greedy, layers", "So it does with unequal sizes (derived here)."},
     {"greedy, near",
      "With unequal sizes its mean loss over 64 items is at most 1 % above the least (a "
      "contrast)."},
     {"bytes",
      "Bytes kept are those of codes, scales, minima, signs and statistics, within 1 % (derived "
      "here)."},
     {"memory",
      "Level L3 keeps at least 12 times fewer bytes than float32, minima in bfloat16 as published "
      "(published)."},
     {"memory, float32 minima", "So it does with minima in float32 (a contrast)."},
     {"batch",
      "In the bytes of a float32 training, buffers of single layers left out, level L3 has batches "
      "at least 6.6 times as large (published)."},
     {"batch, predicted",
      "The largest batch is that of the predicted bytes, within 2 % (derived here)."},
     {"accuracy",
      "With 2 bits or more training by SGD, as published, loses at most 0.5 points of top-1 "
      "(published; the margin is ours).",
      "seeds"},
     {"other optimizers",
      "So it does by other optimizers, which scale steps by gradients (a contrast).", "seeds"},
     {"bias", "At 1 bit stochastic rounding ends above rounding to nearest (a contrast).",
      "seeds"}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks whose weight gradients are measured",
      takes_networks()},
     {"net", "mlp-bn", "network whose contexts add up, and that is trained", takes_network()},
     data_setting(),
     {"bits", "2", "1,2,4,8", "1,2,3,4,5,6,8", "of the codes", wholes(1, 8)},
     {"group", "256", "elements that share a scale", whole(2, 1 << 20)},
     {"gradient_train", "256", "2048", "8192",
      "samples that these networks were trained with, once", whole(32, 1'000'000'000)},
     {"gradient_batch", "16", "64", "64", "samples that gradients come from", whole(2, 65536)},
     {"draws", "40", "200", "400", "of the codes of a context", whole(2 * 20, 1'000'000)},
     {"passes", "4", "50", "200", "pairs of draws for each context that adds up",
      whole(4, 1'000'000)},
     {"instances", "2", "50", "200", "of the allocation of bits", whole(1, 100'000)},
     {"optimizers", "sgd", "sgd,adam", "sgd,adam", "optimizers, each at its recommended rate",
      takes_optimizers()},
     rate_settings(),
     training_settings({"1", "4", "8"}, "128", {"512", "8192", "8192"}, {"500", "4000", "0"},
                       {.least_batch = 2}),
     {"budget_batch", "16", "128", "128", "images of a float32 step whose bytes are the budget",
      whole(2, 4096)},
     seeds_setting({"1", "5", "10"})},
    conclude<actnn::add_allocation, actnn::add_variance, actnn::add_layers, actnn::add_training>};

}  // namespace numemu::experiments
