// Gates that choose the precision of two layers for each sample, against static choices.
#include "experiments/fractrain/gates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/build/builder.hpp"
#include "emu/net/math.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "policies/numerics/staged_numerics.hpp"

namespace numemu::experiments::fractrain {

using net::Tensor;

namespace {

constexpr std::int64_t kHidden = 128, kGate = 16;
constexpr double kMargin = 0.5;  // points of top-1
constexpr double kNear = 0.25;   // of the cost in per cent of 32 x 32 bits
constexpr const char* kNetwork = "two gated dense blocks";
const Precision kRest{8, 8, 8};

/// A way to choose: one of the precisions for all, or gates with targets by stage.
struct Gating {
  std::string name;
  std::vector<Precision> choices;
  std::vector<double> targets;  ///< stages of equal length; none: one choice
};

std::vector<Gating> gatings(const Settings& settings) {
  std::vector<Gating> all;
  const std::vector<Precision> choices = gate_choices();
  for (auto bits = choices.rbegin(); bits != choices.rend(); ++bits)
    all.push_back({"static " + bits->text(), {*bits}, {}});
  for (const double target : settings.numbers("targets"))
    all.push_back({fmt::format("gates, {} %", target), choices, {target}});
  const std::vector<double> staged = settings.numbers("staged_targets");
  all.push_back({fmt::format("gates, {} to {} %", staged.front(), staged.back()), choices, staged});
  return all;
}

/// Of a training: the cost in per cent, and how many rows took each choice.
struct Measured {
  double top1 = 0, cost = 0;
  std::vector<double> taken;

  static void fields(auto& self, const auto& visit) {
    visit("top1", self.top1);
    visit("cost", self.cost);
    visit("taken", self.taken);
  }
};

Measured train(const TrainTrial& trial, const net::Dataset& data, const Gating& gating,
               double beta) {
  GatedNet net = gated_net(data.input_shape(), data.classes(), gating.choices, beta);
  net::initialize(net.graph, trial.seed);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  policies::StagedNumerics numerics(parsed_recipe(trial), net.graph);
  const auto aim = [&](std::int64_t epoch) {
    const auto stages = static_cast<std::int64_t>(gating.targets.size());
    for (GatedDense* block : net.blocks)
      block->target = stages == 0
                          ? 0
                          : gating.targets.at(static_cast<std::size_t>(
                                std::min(epoch, options.epochs - 1) * stages / options.epochs));
  };
  aim(0);
  net::TrainHooks hooks;
  hooks.on_epoch = [&](const net::EpochMetrics& epoch) { aim(epoch.epoch + 1); };
  net::train(net.graph, restricted(data, trial.train_samples, false), options, numerics, hooks);
  Measured measured{test_top1(net.graph, data, trial.eval_samples, numerics), 0, {}};
  double rows = 0;
  for (std::size_t k = 0; k < gating.choices.size(); ++k) {
    double of_choice = 0;
    for (const GatedDense* block : net.blocks) of_choice += static_cast<double>(block->taken()[k]);
    measured.cost += 100 * published_cost(gating.choices[k]) * of_choice;
    rows += of_choice;
    measured.taken.push_back(of_choice);
  }
  measured.cost /= rows;
  return measured;
}

/// "4/6 25, 4/8 75": the share of every choice in per cent, mean over the seeds.
std::string shares_of(const Gating& gating, const std::vector<Measured>& seeds) {
  std::string text;
  for (std::size_t k = 0; k < gating.choices.size() && gating.choices.size() > 1; ++k) {
    double share = 0;
    for (const Measured& run : seeds) {
      double all = 0;
      for (const double taken : run.taken) all += taken;
      share += run.taken[k] / all / static_cast<double>(seeds.size());
    }
    text += fmt::format("{}{} {:.0f}", k == 0 ? "" : ", ", gating.choices[k].text(), 100 * share);
  }
  return text.empty() ? "-" : text;
}

void judge(const std::vector<Gating>& compared, const SeedFigures& costs, const SeedFigures& top1,
           Conclusion& conclusion) {
  PairedClaims claims;
  for (std::size_t g = 0; g < compared.size(); ++g) {
    const Gating& gating = compared[g];
    if (gating.targets.empty()) continue;
    double target = 0;
    for (const double t : gating.targets) target += t / static_cast<double>(gating.targets.size());
    const stats::PairedInterval cost = stats::paired_interval(costs[g]);
    conclusion.add(
        interval_finding(fmt::format("{}, {}: mean cost of the choices", kNetwork, gating.name),
                         target, cost, near(target, kNear)),
        "target");
    claims.add(fmt::format("{}: points gained by {} on {}, at least -{}", kNetwork, gating.name,
                           compared[0].name, kMargin),
               gain(top1, g), -kMargin, "gates");
  }
  conclusion.add(claims.judged());
}

}  // namespace

std::vector<double> gate_gradient(std::span<const double> p, std::span<const double> d) {
  double mean = 0;
  for (std::size_t k = 0; k < p.size(); ++k) mean += p[k] * d[k];
  std::vector<double> gradient(p.size());
  for (std::size_t k = 0; k < p.size(); ++k) gradient[k] = p[k] * (d[k] - mean);
  return gradient;
}

std::vector<double> gate_shares(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  double sum = 0;
  for (const float z : logits) sum += p.emplace_back(net::exp(z - most));
  for (double& share : p) share /= sum;
  return p;
}

namespace {

std::vector<net::OpProduct> products_of(std::size_t choices) {
  std::vector<net::OpProduct> all;
  for (std::size_t k = 0; k < choices; ++k) all.push_back({fmt::format(".{}", k), 0});
  return all;
}

}  // namespace

GatedDense::GatedDense(std::int64_t in, std::int64_t out, std::vector<double> costs, double beta)
    : Op({.kind = "gated_dense",
          .result = net::ResultKind::product,
          .inputs = {net::Use::linear, net::Use::statistic},
          .products = products_of(costs.size())}),
      in_(in),
      out_(out),
      costs_(std::move(costs)),
      beta_(beta),
      taken_(costs_.size()) {
  parameters_.push_back({"weight", Tensor({out, in}), in});
  parameters_.push_back({"bias", Tensor({out}), 0});
}

net::Shape GatedDense::output_shape(net::Shapes inputs) const {
  const auto count = static_cast<std::int64_t>(choices());
  if (inputs.size() != 2 || inputs[0].size() != 2 || inputs[0][1] != in_ ||
      inputs[1] != net::Shape{inputs[0][0], count}) {
    throw Error(
        fmt::format("gated_dense: expected inputs [batch, {}] and [batch, {}]", in_, count));
  }
  return {inputs[0][0], out_};
}

std::vector<std::size_t> GatedDense::chosen(const Tensor& logits) const {
  std::vector<std::size_t> rows;
  for (std::int64_t row = 0; row < logits.dim(0); ++row) {
    const float* const z = logits.data.data() + row * logits.dim(1);
    rows.push_back(static_cast<std::size_t>(std::max_element(z, z + choices()) - z));
  }
  return rows;
}

void GatedDense::forward(const net::OpCall& call, net::OpInputs inputs, net::Tensor& output) const {
  const std::vector<std::size_t> rows = chosen(*inputs[1]);
  Tensor all({static_cast<std::int64_t>(choices()), output.dim(0), out_});
  Tensor y(output.shape);
  for (std::size_t k = 0; k < choices(); ++k) {
    const std::string layer = fmt::format("{}.{}", call.layer, k);
    net::dense_forward(call, {layer}, *inputs[0], parameters_[0].value, y);
    std::copy(y.data.begin(), y.data.end(),
              all.data.begin() + static_cast<std::ptrdiff_t>(k) * y.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * out_;
      if (rows[row] == k) std::copy_n(y.data.begin() + at, out_, output.data.begin() + at);
    }
  }
  net::add_bias(parameters_[1].value, output);
  if (call.phase != net::Phase::training) return;
  for (const std::size_t k : rows) ++taken_[k];
  if (call.context != nullptr) *call.context = std::move(all);
}

void GatedDense::backward(const net::OpCall& call, const net::OpBackward& back) const {
  const std::vector<std::size_t> rows = chosen(*back.inputs[1]);
  const auto add = [](const Tensor& part, Tensor& sum) {
    for (std::size_t i = 0; i < part.data.size(); ++i)
      sum.data[i] = net::neutral(sum.data[i] + part.data[i]);
  };
  std::fill(back.grad_parameters[0].data.begin(), back.grad_parameters[0].data.end(), 0.0f);
  net::bias_gradient(back.grad_output, back.grad_parameters[1]);
  for (std::size_t k = 0; k < choices(); ++k) {
    const std::string layer = fmt::format("{}.{}", call.layer, k);
    Tensor g(back.grad_output.shape), grad_weight(parameters_[0].value.shape),
        grad_x(back.inputs[0]->shape);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * out_;
      if (rows[row] == k)
        std::copy_n(back.grad_output.data.begin() + at, out_, g.data.begin() + at);
    }
    net::dense_weight_gradient(call, {layer}, g, *back.inputs[0], grad_weight);
    add(grad_weight, back.grad_parameters[0]);
    if (!back.want_inputs) continue;
    net::dense_input_gradient(call, {layer}, g, parameters_[0].value, grad_x);
    add(grad_x, back.grad_inputs[0]);
  }
  if (!back.want_inputs) return;
  double cost = 0;
  for (const std::size_t k : rows) cost += costs_[k] / static_cast<double>(rows.size());
  const double toward = (cost < target ? -beta_ : beta_) / static_cast<double>(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const float* const g = back.grad_output.data.data() + static_cast<std::int64_t>(row) * out_;
    std::vector<double> d;
    for (std::size_t k = 0; k < choices(); ++k) {
      const float* const y =
          call.kept->data.data() + static_cast<std::int64_t>(k * rows.size() + row) * out_;
      double dot = toward * costs_[k];
      for (std::int64_t i = 0; i < out_; ++i) dot += double{g[i]} * y[i];
      d.push_back(dot);
    }
    const std::span z(back.inputs[1]->data.data() + row * choices(), choices());
    const std::vector<double> gradient = gate_gradient(gate_shares(z), d);
    for (std::size_t k = 0; k < choices(); ++k)
      back.grad_inputs[1].data[row * choices() + k] = static_cast<float>(gradient[k]);
  }
}

std::vector<Precision> gate_choices() { return {{4, 3, 6}, {4, 4, 6}, {4, 4, 8}, {4, 6, 8}}; }

GatedNet gated_net(const net::Shape& image, std::int64_t classes,
                   const std::vector<Precision>& choices, double beta) {
  std::vector<double> costs;
  for (const Precision& bits : choices) costs.push_back(100 * published_cost(bits));
  net::Builder builder("gated", image, classes);
  builder.flatten("flatten").linear("fc1", kHidden).relu("relu1");
  GatedNet net;
  for (int block = 1; block <= 2; ++block) {
    const int x = builder.value();
    const std::string gate = fmt::format("gate{}", block);
    builder.linear(gate + ".in", kGate).relu(gate + ".relu");
    const int logits =
        builder.linear(gate + ".out", static_cast<std::int64_t>(choices.size())).value();
    auto op = std::make_unique<GatedDense>(kHidden, kHidden, costs, beta);
    net.blocks.push_back(op.get());
    builder.node(fmt::format("block{}", block), std::move(op), {x, logits});
    builder.relu(fmt::format("relu{}", block + 1));
  }
  builder.classifier("fc2");
  net.graph = builder.take();
  return net;
}

Json gated_recipe(const std::vector<Precision>& choices, const Precision& rest) {
  Json recipe = {{"roles", roles_of(rest)}, {"layers", Json::array()}};
  for (std::size_t k = 0; k < choices.size(); ++k)
    recipe["layers"].push_back(
        {{"match", fmt::format("block?.{}", k)}, {"roles", roles_of(choices[k])}});
  return recipe;
}

void add_dynamic(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<Gating> compared = gatings(settings);
  const double beta = settings.number("beta");
  TrainingPlan plan{.trial = training_of(settings, "mlp"),  // whose rates the gated network has
                    .data = data.name(),
                    .seeds = seeds_of(run),
                    .at_once = true};
  for (const Gating& gating : compared)
    plan.methods.push_back({.name = gating.name,
                            .recipe = gated_recipe(gating.choices, kRest),
                            .counted = {{"gates", {{"targets", gating.targets}, {"beta", beta}}}}});
  const auto study =
      run_training_study<Measured>(run, data, plan, [&](const TrainTrial& trial, std::size_t g) {
        return train(trial, data, compared[g], beta);
      });
  const SeedFigures costs = study.figures(&Measured::cost),
                    top1 = study.figures([](const Measured&m) { return 100 * m.top1; });
  judge(compared, costs, top1, conclusion);
  conclusion.tables.push_back(study_table(
      fmt::format("{} on {}, {} epochs, {}, paired by seed: cost and choices of training", kNetwork,
                  data.name(), plan.trial.options.epochs, counted(study.seeds(), "seed")),
      compared.size(),
      {name_column("precision", study.methods),
       mean_column("cost, % of 32 x 32 bits", costs),
       mean_column("top-1, %", top1),
       difference_column("difference, points", top1),
       interval_column(top1),
       {"choices, %", [&](std::size_t g) { return shares_of(compared[g], study.runs[g]); }}}));
}

}  // namespace numemu::experiments::fractrain
