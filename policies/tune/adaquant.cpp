// Step adaquant: weight, bias and ranges of each layer trained until its quantized outputs come
// nearest to those of the float32 network.
#include "policies/tune/adaquant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "emu/net/observing.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/shuffle.hpp"
#include "emu/stats/mean.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/storage/array.hpp"
#include "policies/calibrate/least_squares.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/tune/base/gptq.hpp"
#include "policies/tune/base/trained_range.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuned_layers.hpp"

namespace numemu::policies {
namespace {

constexpr std::int64_t kStates = 10;  // that are compared on all samples

/// Float32 products that read another weight than the operator's own.
class WeightInstead : public net::Numerics {
 public:
  void read(const net::Tensor* weight) { weight_ = weight; }
  void product(const net::Step& step, const net::Product& given) override {
    net::Product product = given;
    for (net::ProductSide* side : {&product.a, &product.b})
      if (side->role == net::Role::weight && weight_ != nullptr) side->source = weight_;
    net::Numerics::product(step, product);
  }

 private:
  const net::Tensor* weight_ = nullptr;
};

/// Rows of a tensor by number.
net::Tensor rows_of(const net::Tensor& x, std::span<const std::int64_t> rows) {
  net::Shape shape = x.shape;
  const std::int64_t each = x.size() / shape[0];
  shape[0] = static_cast<std::int64_t>(rows.size());
  net::Tensor out(shape);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(x.data.begin() + rows[i] * each, each,
                out.data.begin() + static_cast<std::int64_t>(i) * each);
  return out;
}

/// Adam at a rate of its own.
class Adam {
 public:
  Adam(std::vector<net::Parameter*> parameters, double rate)
      : parameters_(std::move(parameters)), rate_(rate) {
    net::TrainOptions options;
    options.optimizer = "adam-l2";
    options.weight_decay = 0;
    const std::vector<const net::Parameter*> constant(parameters_.begin(), parameters_.end());
    optimizer_ = net::make_optimizer(options, constant);
  }
  void step(std::span<const net::Tensor> gradients) {
    if (rate_ == 0) return;
    optimizer_->begin_step(rate_);
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      optimizer_->step(p, *parameters_[p], gradients[p], delta_);
      float* const value = parameters_[p]->value.data.data();
      const float* const delta = delta_.data();
      net::for_each_element(parameters_[p]->value.size(),
                            [=](std::int64_t i) { value[i] += delta[i]; });
    }
  }

 private:
  std::vector<net::Parameter*> parameters_;
  double rate_;
  std::unique_ptr<net::Optimizer> optimizer_;
  std::vector<float> delta_;
};

std::vector<net::Parameter*> pointers(TrainedRange* range) {
  std::vector<net::Parameter*> all;
  if (range != nullptr)
    for (net::Parameter& parameter : range->parameters()) all.push_back(&parameter);
  return all;
}

class AdaQuantRun {
 public:
  AdaQuantRun(const AdaQuantLayer& layer, const AdaQuantOptions& options)
      : layer_(layer),
        options_(options),
        weight_(&parameter(layer.op, 0)),
        bias_(layer.op.parameters().size() > 1 ? &parameter(layer.op, 1) : nullptr),
        weight_operand_(TunedOperand::weight(layer.weight, weight_->value)),
        activation_(TunedOperand::activation(layer.activation)) {}

  AdaQuantResult run(const std::function<void(std::int64_t)>& progress) {
    AdaQuantResult result;
    predict(result);
    result.before = result.after = error_of_all();
    State best = state();
    Adam activation(pointers(activation_.range()), options_.activation_rate),
        ranges(pointers(weight_operand_.range()), options_.range_rate),
        weight({weight_}, options_.weight_rate);
    std::vector<net::Parameter*> biases;
    if (bias_ != nullptr) biases.push_back(bias_);
    Adam bias(biases, options_.bias_rate);
    const std::int64_t every = std::max<std::int64_t>(1, options_.iterations / kStates);
    for (std::int64_t i = 1; i <= options_.iterations; ++i) {
      gradients(batch(i));
      activation.step(activation_gradients_);
      ranges.step(range_gradients_);
      weight.step({&parameter_gradients_[0], 1});
      if (bias_ != nullptr) bias.step({&parameter_gradients_[1], 1});
      if (i % every == 0 || i == options_.iterations) {
        const double error = error_of_all();
        if (error < result.after) {
          result.after = error;
          result.best = i;
          best = state();
        }
      }
      if (progress) progress(i);
    }
    restore(best);
    if (const TrainedRange* range = activation_.range()) result.activation = range->scale(0);
    if (const TrainedRange* range = weight_operand_.range())
      for (std::int64_t g = 0; g < range->groups(); ++g)
        result.weight_scales.push_back(range->scale(g).scale);
    return result;
  }

 private:
  static net::Parameter& parameter(net::Op& op, std::size_t i) {
    if (op.parameters().empty())
      throw Error("adaquant: expected an operator with a weight, got " + std::string(op.kind()));
    return op.parameters()[i];
  }

  using State = std::vector<net::Tensor>;
  std::vector<net::Parameter*> trained() {
    std::vector<net::Parameter*> all{weight_};
    if (bias_ != nullptr) all.push_back(bias_);
    for (TrainedRange* range : {weight_operand_.range(), activation_.range()})
      for (net::Parameter* parameter : pointers(range)) all.push_back(parameter);
    return all;
  }
  State state() {
    State values;
    for (const net::Parameter* parameter : trained()) values.push_back(parameter->value);
    return values;
  }
  void restore(const State& values) {
    std::size_t i = 0;
    for (net::Parameter* parameter : trained()) parameter->value = values[i++];
  }

  std::int64_t samples() const { return layer_.x.dim(0); }

  /// Samples of iteration i, from 1 on: permutations of all, one after another.
  std::vector<std::int64_t> batch(std::int64_t i) {
    const std::int64_t size = std::min(options_.batch, samples()), each = samples() / size;
    const std::int64_t epoch = (i - 1) / each, first = (i - 1) % each * size;
    if (first == 0) order_ = net::shuffled(samples(), options_.seed, epoch);
    return {order_.begin() + first, order_.begin() + first + size};
  }

  net::OpCall call(net::Numerics& numerics) const {
    return {.layer = "tuned", .numerics = numerics, .step = {}};
  }
  net::Tensor forward(const net::Tensor& x, net::Numerics& numerics) const {
    const net::Tensor* const inputs[] = {&x};
    const net::Shape shapes[] = {x.shape};
    net::Tensor y(layer_.op.output_shape(shapes));
    layer_.op.forward(call(numerics), inputs, y);
    return y;
  }

  /// The sum of squared differences of outputs y of the samples from `first` on.
  double squared_error(const net::Tensor& y, std::int64_t first, bool relu) const {
    const float* const wanted = layer_.target.data.data() + first * (y.size() / y.dim(0));
    return pairwise_sum(y.size(), [&](std::int64_t i) {
      const double a = relu ? std::max(y.data[i], 0.0f) : y.data[i],
                   b = relu ? std::max(wanted[i], 0.0f) : wanted[i];
      return (a - b) * (a - b);
    });
  }

  /// body(first sample, samples of X) in batches.
  template <class Body>
  void for_all(const Body& body) const {
    for (std::int64_t first = 0; first < samples(); first += options_.batch)
      body(first, samples_of(layer_.x, first, std::min(options_.batch, samples() - first)));
  }

  double error_of_all() {
    weight_operand_.quantize(weight_->value, quantized_weight_);
    numerics_.read(&quantized_weight_);
    double sum = 0;
    net::Tensor quantized;
    for_all([&](std::int64_t first, const net::Tensor& x) {
      activation_.quantize(x, quantized);
      sum += squared_error(forward(quantized, numerics_), first, layer_.relu);
    });
    return sum / static_cast<double>(layer_.target.size());
  }

  /// Of the weight alone rounded, against the outputs of the weight as it is: both read X.
  void predict(AdaQuantResult& result) {
    weight_operand_.quantize(weight_->value, quantized_weight_);
    std::vector<LeastSquares> squares;
    net::Observing observing(numerics_, {.before = [&](const net::Step&, const net::Product& p) {
                               collect(p, false, squares);
                             }});
    double measured = 0;
    for_all([&](std::int64_t, const net::Tensor& x) {
      numerics_.read(nullptr);
      const net::Tensor exact = forward(x, observing);
      numerics_.read(&quantized_weight_);
      const net::Tensor rounded = forward(x, numerics_);
      measured +=
          stats::sum_of_squared_differences(exact.size(), rounded.data.data(), exact.data.data());
    });
    std::vector<std::vector<double>> hessians;
    for (const LeastSquares& matrix : squares) hessians.push_back(matrix.inputs_squared());
    const auto outputs = static_cast<double>(layer_.target.size());
    result.predicted = output_error(weight_->value, quantized_weight_, hessians) / outputs;
    result.rounded = measured / outputs;
  }

  void gradients(const std::vector<std::int64_t>& rows) {
    const net::Tensor x = rows_of(layer_.x, rows), wanted = rows_of(layer_.target, rows);
    weight_operand_.quantize(weight_->value, quantized_weight_);
    activation_.quantize(x, quantized_input_);
    numerics_.read(&quantized_weight_);
    net::Tensor y = forward(quantized_input_, numerics_);
    net::Tensor slope(y.shape);
    {
      const float factor = 2 / static_cast<float>(y.size());
      const float *const out = y.data.data(), *const target = wanted.data.data();
      float* const to = slope.data.data();
      const bool relu = layer_.relu;
      net::for_each_element(y.size(), [=](std::int64_t i) {
        const float off = out[i] - (relu ? std::max(target[i], 0.0f) : target[i]);
        to[i] = relu && !(out[i] > 0) ? 0.0f : factor * off;
      });
    }
    const bool wants_input = activation_.range() != nullptr;
    std::vector<net::Tensor> inputs(1);
    if (wants_input) inputs[0] = net::Tensor(x.shape);
    parameter_gradients_.clear();
    for (const net::Parameter& parameter : layer_.op.parameters())
      parameter_gradients_.emplace_back(parameter.value.shape);
    const net::Tensor* const read[] = {&quantized_input_};
    layer_.op.backward(call(numerics_),
                       {read, &y, slope, inputs, parameter_gradients_, wants_input});
    activation_gradients_.clear();
    if (wants_input) activation_.backward(x, inputs[0], activation_gradients_);
    weight_operand_.backward(weight_->value, parameter_gradients_[0], range_gradients_);
  }

  const AdaQuantLayer& layer_;
  const AdaQuantOptions& options_;
  net::Parameter *weight_, *bias_;
  TunedOperand weight_operand_, activation_;
  WeightInstead numerics_;
  std::vector<std::int64_t> order_;
  net::Tensor quantized_weight_, quantized_input_;
  std::vector<net::Tensor> activation_gradients_, range_gradients_, parameter_gradients_;
};

}  // namespace

AdaQuantResult adaquant(const AdaQuantLayer& layer, const AdaQuantOptions& options,
                        const std::function<void(std::int64_t)>& progress) {
  return AdaQuantRun(layer, options).run(progress);
}

namespace {

struct AdaquantStepOptions final : PolicyOptions {
  AdaQuantOptions training;
  std::string mode = "sequential";
  std::int64_t samples = 0;
  std::vector<Option> list() override {
    return {{"iterations", "steps of Adam for each layer", &training.iterations, 0, 1e6},
            {"mode",
             "sequential: layers read the network as quantized and tuned so far; parallel: the "
             "float32 one",
             &mode,
             0,
             0,
             {"sequential", "parallel"}},
            {"batch", "samples of a step", &training.batch, 1, 1e6},
            {"samples", "calibration samples used, 0 for all", &samples, 0, 1e9},
            {"activation_rate", "rate of the activation's range", &training.activation_rate, 0, 1},
            {"range_rate", "rate of the weight's ranges", &training.range_rate, 0, 1},
            {"weight_rate", "rate of the weight", &training.weight_rate, 0, 1},
            {"bias_rate", "rate of the bias", &training.bias_rate, 0, 1}};
  }
};

class AdaQuant final : public TuneStep {
 public:
  explicit AdaQuant(const AdaquantStepOptions& options) : options_(options) {}

  std::int64_t begin(const Tuning& tuning) override {
    layers_ = tuned_layers(tuning, "adaquant");
    shared_ = leave_out_shared(tuning, "adaquant", layers_);
    return static_cast<std::int64_t>(layers_.size());
  }

  void run(Tuning& tuning, std::int64_t part, const TuneProgress& progress) override {
    const TunedLayer& layer = layers_[static_cast<std::size_t>(part)];
    const LayerSamples samples = layer_samples(
        tuning, layer, options_.mode == "parallel" ? Inputs::reference : Inputs::tuned,
        options_.samples);
    const LayerRecipe roles = tuned_recipe(tuning).layer(layer.name);
    AdaQuantOptions training = options_.training;
    training.seed = tuning.seed + tensor_word(layer.name + "/adaquant");
    const AdaQuantResult result =
        adaquant({.op = *tuning.graph.nodes[layer.node].op,
                  .x = samples.x,
                  .target = samples.target,
                  .relu = layer.relu,
                  .weight = roles[RolePart::weight],
                  .activation = roles[RolePart::activation]},
                 training, [&](std::int64_t done) {
                   progress(static_cast<double>(done) / static_cast<double>(training.iterations));
                 });
    if (!result.weight_scales.empty()) set_weight_scales(tuning, layer, result.weight_scales);
    if (result.activation) {
      tuning.ranges[layer.name].activation =
          range_of(*tuning.recipe.layer(layer.name)[RolePart::activation], *result.activation);
    }
    errors_.insert(errors_.end(), {result.predicted, result.rounded, result.before, result.after});
  }

  void save_state(net::NamedState& state) const override { save_numbers("errors", errors_, state); }
  void load_state(const net::NamedState& state) override {
    errors_ = load_numbers("errors", state);
  }

  std::string summary() const override {
    double before = 0, after = 0, off = 0;
    for (std::size_t i = 0; i + 3 < errors_.size(); i += 4) {
      if (errors_[i] > 0) off = std::max(off, std::abs(errors_[i + 1] / errors_[i] - 1));
      before += errors_[i + 2];
      after += errors_[i + 3];
    }
    return fmt::format(
        "{}: sum of mean squared errors {:.4g} before, {:.4g} after; error of rounding the "
        "weights as predicted within {:.1e}{}",
        counted(std::ssize(layers_), "layer"), before, after, off, shared_);
  }

 private:
  const AdaquantStepOptions& options_;
  std::vector<TunedLayer> layers_;
  std::string shared_;
  std::vector<double> errors_;  ///< of each layer: predicted, rounded, before, after
};

}  // namespace

extern const TuneStepKind tune_adaquant{
    .name = "adaquant",
    .summary = "weights, biases and ranges trained layer by layer on the outputs of float32",
    .source = "Hubara et al. 2020 (arXiv 2006.10518)",
    .options = make_options<AdaquantStepOptions>,
    .make = make_step<AdaQuant, AdaquantStepOptions>};

}  // namespace numemu::policies
