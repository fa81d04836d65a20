#include "experiments/predict/layer_noise.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <numeric>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/run_context.hpp"
#include "emu/net/tensor.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "experiments/predict/injected_network.hpp"
#include "experiments/predict/layer_powers.hpp"
#include "experiments/predict/tensor_noise.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/calibrate/static_scale.hpp"
#include "policies/numerics/operands/scale_groups.hpp"

namespace numemu::experiments {
namespace {

/// Streamed samples go through in rounds of so many chunks of at most so many samples.
constexpr std::int64_t kChunks = 4, kMostChunk = 8;

/// Means over outputs y and float32 outputs x.
struct Correlation {
  double noise = 0, xx = 0, yy = 0, xy = 0;
};

/// Standard error in dB of the ratio of the mean signal to the mean noise: loud samples have more
/// noise, too, so that the spread of the noise alone is not that of the ratio.
double decibel_error(const std::vector<Correlation>& parts) {
  if (parts.size() < 2) return HUGE_VAL;
  double noise = 0, signal = 0;
  for (const Correlation& part : parts) {
    noise += part.noise / static_cast<double>(parts.size());
    signal += part.xx / static_cast<double>(parts.size());
  }
  if (noise == 0) return 0;
  if (signal == 0) return HUGE_VAL;
  std::vector<double> shares;
  for (const Correlation& part : parts) shares.push_back(part.noise / noise - part.xx / signal);
  return 10 / portable::log(10.0) * stats::mean_of(shares).error;
}

Correlation mean_of(const std::vector<Correlation>& parts) {
  const auto mean = [&](double Correlation::*part) {
    return stats::mean_of(std::ssize(parts),
                          [&](std::int64_t i) { return parts[static_cast<std::size_t>(i)].*part; })
        .value;
  };
  return {mean(&Correlation::noise), mean(&Correlation::xx), mean(&Correlation::yy),
          mean(&Correlation::xy)};
}

Correlation correlate(const float* y, const float* x, std::int64_t n) {
  const auto mean = [&](const auto& term) { return pairwise_sum(n, term) / n; };
  return {mean([&](std::int64_t i) {
            const double error = double{y[i]} - x[i];
            return error * error;
          }),
          mean([&](std::int64_t i) { return double{x[i]} * x[i]; }),
          mean([&](std::int64_t i) { return double{y[i]} * y[i]; }),
          mean([&](std::int64_t i) { return double{x[i]} * y[i]; })};
}

/// min over g of |g y - x|^2 is |x|^2 - (x y)^2 / |y|^2, at g = x y / |y|^2.
OutputFidelity fidelity(const Correlation& c) {
  if (c.noise == 0) return {HUGE_VAL, HUGE_VAL, 1};
  const double gain = c.yy > 0 ? c.xy / c.yy : 0;
  return {decibels(c.xx, c.noise), decibels(c.xx, c.xx - gain * c.xy), gain};
}

/// Elements of a line that the blocks of an operand cut, where they are neighbours in the tensor:
/// along its last axis, or along all that an output multiplies.
std::optional<std::int64_t> block_width(const policies::RolePolicy& policy, net::Role role,
                                        const net::Tensor& weight, const net::Tensor& x) {
  if (policy.axis == policies::BlockAxis::channel) return x.shape.back();
  const std::int64_t depth = weight.dim(0) > 0 ? weight.size() / weight.dim(0) : 0;
  if (depth == 0 || (role == net::Role::activation && depth != x.shape.back())) return std::nullopt;
  return depth;
}

/// A right operand of attention with the elements that share a scale side by side.
net::Tensor in_scale_groups(const policies::RolePolicy& policy, const net::GemmLayer& layer,
                            const net::Tensor& x) {
  const policies::ScaleGroups groups =
      policies::scale_groups(policy, layer, layer.right, x.shape, x.dim(0));
  const std::int64_t rows = x.shape.at(x.shape.size() - 2), width = x.shape.back();
  const net::ProductSide side{.source = &x,
                              .stack = {.outer = x.size() / (rows * width), .width = width}};
  std::vector<float> copy;
  const float* const elements = policies::in_groups(groups, side, copy);
  net::Tensor out({x.size()});
  std::copy_n(elements, x.size(), out.data.data());
  return out;
}

/// Measures what predict_tensors() predicted.
class TensorMeasurement {
 public:
  TensorMeasurement(const policies::BoundRecipe& recipe, const policies::FloatReference& reference,
                    const policies::RecipeNumerics* ran)
      : seed_(recipe->seed()), reference_(reference), ran_(ran) {
    for (const auto& [gemm, roles] : recipe.products()) layers_[gemm.name] = gemm;
    for (const net::Node& node : recipe.graph().nodes) tables_[node.name] = net::table_of(node);
  }

  void fill_in(TensorNoise& noise) const {
    const std::string& name = noise.source.layer;
    const net::Role role = noise.source.role;
    const policies::PlainOperand* const multiplied =
        role == net::Role::weight && ran_ != nullptr ? ran_->roles().frozen_weight(name) : nullptr;
    if (role == net::Role::weight)
      net::require_elements(*net::at_layer(layers_, name).weight, name + "/weight");
    if (multiplied != nullptr && !multiplied->dequantized) {
      measure_noise(noise, *net::at_layer(layers_, name).weight, multiplied->codes);
    } else if (role == net::Role::key || role == net::Role::value) {
      measure_noise(noise,
                    in_scale_groups(noise.policy, net::at_layer(layers_, name),
                                    net::at_layer(reference_.seconds, name)),
                    seed_);
    } else {
      measure_noise(noise,
                    role == net::Role::weight      ? *net::at_layer(layers_, name).weight
                    : role == net::Role::embedding ? *net::at_layer(tables_, name)
                                                   : net::at_layer(reference_.inputs, name),
                    seed_);
    }
  }

  /// Whether it is a weight of that node.
  bool is_weight(const TensorNoise& noise, const net::Node& node) const {
    return noise.source.role == net::Role::weight &&
           net::at_layer(layers_, noise.source.layer).node == &node;
  }

 private:
  const std::uint64_t seed_;
  const policies::FloatReference& reference_;
  const policies::RecipeNumerics* const ran_;
  std::map<std::string, net::GemmLayer> layers_;
  std::map<std::string, const net::Tensor*> tables_;
};

using AfterNode = std::function<void(const net::Node&)>;

/// Runs 0 to n - 1 over threads, or one after the other; the first exception by number is thrown.
void in_parallel(std::int64_t n, bool parallel, const std::function<void(std::int64_t)>& run) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(n));
  std::atomic<bool> failed = false;
  net::RunContext& run_context = net::RunScope::current();
#pragma omp parallel for schedule(dynamic) if (parallel)
  for (std::int64_t k = 0; k < n; ++k) {
    if (failed) continue;
    const net::RunScope scope(run_context);
    try {
      run(k);
    } catch (...) {
      failures[static_cast<std::size_t>(k)] = std::current_exception();
      failed = true;
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// What passes over some samples have shown: the powers of every one.
class Measured {
 public:
  /// One pass; `after` may be empty.
  void add(const net::Graph& graph, net::Numerics& numerics,
           const policies::FloatReference& reference, const AfterNode& after) {
    LayerPowers powers(graph, reference, 0, reference.samples());
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
      powers.add(node, output);
      if (after) after(node);
    };
    net::Observing observing(
        numerics, {.after = [&](const net::Step&, const net::Product& p) { powers.add(p); }});
    const net::Tensor logits = net::forward(graph, reference.batch, observing, {}, &observe);
    for (auto& [layer, samples] : powers.of_samples()) {
      std::vector<Power>& all = layers_[layer];
      all.insert(all.end(), samples.begin(), samples.end());
    }
    const std::int64_t samples = reference.samples();
    const std::int64_t shares = samples > 0 && logits.size() % samples == 0 ? samples : 1;
    const std::int64_t each = logits.size() / shares;
    samples_ += samples;
    for (std::int64_t i = 0; i < shares; ++i)
      outputs_.push_back(
          correlate(logits.data.data() + i * each, reference.logits.data.data() + i * each, each));
    sums_.resize(static_cast<std::size_t>(each));
    for (std::int64_t i = 0; i < logits.size(); ++i)
      sums_[static_cast<std::size_t>(i % each)] +=
          reference.logits.data[static_cast<std::size_t>(i)];
    add(stats::count_finite(logits.data.data(), logits.size()));
  }

  /// What other passes have shown of further samples.
  void add(const Measured& other) {
    for (const auto& [layer, samples] : other.layers_) {
      std::vector<Power>& all = layers_[layer];
      all.insert(all.end(), samples.begin(), samples.end());
    }
    outputs_.insert(outputs_.end(), other.outputs_.begin(), other.outputs_.end());
    samples_ += other.samples_;
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
    add(other.finite_);
  }

  std::int64_t samples() const { return samples_; }
  double output_interval() const { return 2 * stats::kNormal95 * decibel_error(outputs_); }

  LayerMeasurement result() const {
    LayerMeasurement out;
    for (const auto& [layer, samples] : layers_) {
      const Sqnr sqnr = sqnr_of(samples);
      out.db[layer] = sqnr.db;
      out.error[layer] = sqnr.error;
    }
    const Correlation all = mean_of(outputs_);
    out.output = fidelity(all);
    out.output_centred_db = decibels(std::max(0.0, all.xx - mean_power()), all.noise);
    out.output_error = decibel_error(outputs_);
    out.outputs = finite_;
    out.samples = samples();
    return out;
  }

 private:
  void add(const stats::FiniteCounts& counts) {
    finite_.of += counts.of;
    finite_.nan += counts.nan;
    finite_.infinite += counts.infinite;
  }
  /// Mean over the outputs of the square of their mean over samples.
  double mean_power() const {
    const auto n = static_cast<double>(outputs_.size());
    return pairwise_sum(std::ssize(sums_),
                        [&](std::int64_t i) {
                          const double mean = sums_[static_cast<std::size_t>(i)] / n;
                          return mean * mean;
                        }) /
           static_cast<double>(std::max<std::size_t>(1, sums_.size()));
  }

  std::map<std::string, std::vector<Power>> layers_;
  std::vector<double> sums_;          ///< of every float32 output over the samples
  std::vector<Correlation> outputs_;  ///< of every sample; one where the output has no samples
  std::int64_t samples_ = 0;
  stats::FiniteCounts finite_;
};

/// The float32 outputs of a batch, without the operands.
policies::FloatReference outputs_of(const net::Graph& graph, std::vector<net::Tensor> batch) {
  policies::FloatReference out;
  const policies::ReferenceListener keep{
      .operands = {}, .output = [&](std::string_view layer, const net::Tensor& output) {
        out.outputs.insert_or_assign(std::string(layer), output);
      }};
  out.logits = policies::listen(graph, batch, keep);
  out.batch = std::move(batch);
  return out;
}

}  // namespace

Verdict layer_verdict(double predicted_db, double measured_db, std::int64_t samples, double error) {
  if (!std::isfinite(predicted_db)) return Verdict::none;
  const double distance = std::fabs(predicted_db - measured_db), half = stats::kNormal95 * error;
  if (std::isnan(distance)) return Verdict::fails;
  if (samples < kFewestJudged || std::isnan(half)) return Verdict::undecided;
  if (distance + half <= kLayerHolds) return Verdict::holds;
  return distance - half > kLayerHolds ? Verdict::fails : Verdict::undecided;
}

Sqnr sqnr_of(const std::vector<Power>& samples) {
  std::vector<Correlation> parts;
  for (const Power& power : samples) parts.push_back({power.noise, power.signal, 0, 0});
  const Correlation all = mean_of(parts);
  return {decibels(all.xx, all.noise), decibel_error(parts)};
}

std::vector<TensorNoise> predict_tensors(const policies::BoundRecipe& recipe,
                                         const policies::FloatReference& reference, FitCache& fits,
                                         const policies::StaticScales& known) {
  std::vector<TensorNoise> noises;
  const policies::CalibrationPolicy& calibration = recipe->calibration();
  const auto predict_elements = [&](const TensorSource& source, const policies::RolePolicy& policy,
                                    const net::Tensor& x, std::int64_t groups) {
    if (x.size() == 0) return;  // no sample of its errors
    if (source.role != net::Role::weight && source.role != net::Role::embedding &&
        policies::has_static_scale(calibration, policy)) {
      const auto found = known.find(source.layer);
      const policies::TensorScale scale =
          source.role == net::Role::activation && found != known.end()
              ? found->second
              : policies::static_scale(calibration, policy, reference, x);
      noises.push_back(predict_noise(source, policy, x, {scale.scale}, fits, scale.zero_point));
      return;
    }
    noises.push_back(predict_noise(
        source, policy, x,
        policies::choose_scales(policies::RoleQuantizer(policy), x.data.data(), x.size(), groups),
        fits));
  };
  const auto predict = [&](const net::GemmLayer& gemm, net::Role role,
                           const policies::RolePolicy& policy, const net::Tensor& x) {
    const TensorSource source{gemm.name, role};
    if (x.size() == 0) return;  // no sample of its errors
    if (policy.block != nullptr) {
      const std::optional<std::int64_t> width = block_width(policy, role, *gemm.weight, x);
      if (policy.block->affine == Affine::sym && width)  // else no closed form
        noises.push_back(predict_block_noise(source, policy, x, *width, fits));
      return;
    }
    const std::int64_t samples = role == net::Role::weight ? 1 : x.dim(0);
    predict_elements(source, policy, x,
                     policies::scale_groups(policy, gemm, role, x.shape, samples).count);
  };
  for (const net::Node& node : recipe.graph().nodes) {
    const net::Tensor* const table = net::table_of(node);
    const std::optional<policies::RolePolicy>& policy =
        recipe.layer(node.name)[policies::RolePart::embedding];
    if (table == nullptr || !policy) continue;
    const TensorSource source{node.name, net::Role::embedding};
    if (policy->block == nullptr) {
      const bool rows = policy->granularity == policies::Granularity::channel;
      predict_elements(source, *policy, *table, rows ? table->dim(0) : 1);
    } else if (policy->block->affine == Affine::sym && table->size() > 0) {
      noises.push_back(predict_block_noise(source, *policy, *table, table->shape.back(), fits));
    }
  }
  for (const auto& [gemm, layer] : recipe.products()) {
    // What a mask or a transform leaves has another law than the tensor: nothing is predicted of
    // it.
    if (recipe.chosen("transform", gemm.name) != nullptr) continue;
    if (layer[policies::RolePart::weight] && !layer.masks[policies::RolePart::weight] &&
        gemm.weight != nullptr)
      predict(gemm, net::Role::weight, *layer[policies::RolePart::weight], *gemm.weight);
    if (layer[policies::RolePart::activation] && !layer.masks[policies::RolePart::activation] &&
        gemm.weight != nullptr)
      predict(gemm, net::Role::activation, *layer[policies::RolePart::activation],
              net::at_layer(reference.inputs, gemm.name));
    if (!layer.apart(gemm.right)) continue;
    const std::optional<policies::RolePolicy>& cache = layer.role(gemm.right, {});
    if (!cache || cache->block != nullptr) continue;
    const net::Tensor& recorded = net::at_layer(reference.seconds, gemm.name);
    if (recorded.size() == 0) continue;
    predict_elements(
        {gemm.name, gemm.right}, *cache, in_scale_groups(*cache, gemm, recorded),
        policies::scale_groups(*cache, gemm, gemm.right, recorded.shape, recorded.dim(0)).count);
  }
  return noises;
}

void measure_tensors(std::vector<TensorNoise>& noises, const policies::BoundRecipe& recipe,
                     const policies::FloatReference& reference,
                     const policies::RecipeNumerics* ran) {
  const TensorMeasurement measurement(recipe, reference, ran);
  for (TensorNoise& noise : noises) measurement.fill_in(noise);
}

ProbePlan probe_plan(double macs_of_a_sample, std::int64_t reference_samples) {
  const std::int64_t samples = std::min(kProbeSamples, reference_samples);
  if (samples == 0) return {};
  const double affordable = kProbeMacs / (macs_of_a_sample * static_cast<double>(samples));
  const double probes = std::clamp(affordable, double{kFewestProbes}, double{kProbes});
  return {static_cast<std::int64_t>(probes), samples};
}

LayerPrediction predict_layers(const policies::BoundRecipe& recipe,
                               const policies::FloatReference& reference,
                               const policies::StaticScales& static_scales, std::int64_t most,
                               const MoreSamples& more) {
  InjectedNetwork injected(recipe, reference, static_scales);
  return predict_layers(injected, reference, most, more);
}

LayerPrediction predict_layers(InjectedNetwork& injected, const policies::FloatReference& reference,
                               std::int64_t most, const MoreSamples& more) {
  struct Probe {
    std::map<std::string, Power> layers;
    Correlation output;
  };
  const net::Graph& graph = injected.recipe().graph();
  std::vector<net::Tensor> one;
  for (const net::Tensor& x : reference.batch) one.push_back(policies::first_samples(x, 1));
  ProbePlan plan = probe_plan(net::multiply_adds(graph, one), reference.samples());
  plan.probes = std::min(plan.probes, most);
  // Chunks of the reference follow each other; after the last whole one comes the first again.
  const std::int64_t chunks = reference.samples() / std::max<std::int64_t>(1, plan.samples);
  std::vector<Probe> probes(static_cast<std::size_t>(plan.probes));
  const auto run = [&](std::int64_t k) {
    std::int64_t first = k % chunks * plan.samples, count = plan.samples;
    const std::int64_t behind = (k - chunks) * plan.samples;
    policies::FloatReference own;  // of further samples
    std::vector<net::Tensor> batch;
    if (behind >= 0 && behind + plan.samples <= more.count)
      batch = more.batch(behind, plan.samples);
    const bool further = !batch.empty();
    if (further) {
      own = outputs_of(graph, batch);
      first = 0;
      count = own.samples();
    } else {
      for (const net::Tensor& x : reference.batch)
        batch.push_back(policies::samples_of(x, first, count));
    }
    const policies::FloatReference& float32 = further ? own : reference;
    LayerPowers powers(graph, float32, first, count);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
    std::iota(samples.begin(), samples.end(), further ? reference.samples() + behind : first);
    const net::Step step{net::Phase::inference, k, &samples};
    net::Observing observing(
        injected, {.after = [&](const net::Step&, const net::Product& p) { powers.add(p); }});
    observing.begin_step(step);
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
      powers.add(node, output);
    };
    const net::Tensor logits = net::forward(graph, batch, observing, step, &observe);
    observing.end_step(step);
    const std::int64_t each = logits.size() / count;
    probes[k].layers = powers.means();
    probes[k].output =
        correlate(logits.data.data(), float32.logits.data.data() + first * each, logits.size());
  };
  in_parallel(plan.probes, true, run);
  LayerPrediction prediction;
  prediction.units = injected.units();
  const auto count = static_cast<std::int64_t>(probes.size());
  for (const std::string& layer : net::gemm_layer_names(graph)) {
    const auto total = [&](double Power::*part) {
      return pairwise_sum(
          count, [&](std::int64_t k) { return net::at_layer(probes[k].layers, layer).*part; });
    };
    prediction.db[layer] = decibels(total(&Power::signal), total(&Power::noise));
    prediction.signal[layer] = total(&Power::signal) / static_cast<double>(count);
  }
  const auto total = [&](double Correlation::*part) {
    return pairwise_sum(count, [&](std::int64_t k) { return probes[k].output.*part; });
  };
  const Correlation all{total(&Correlation::noise), total(&Correlation::xx),
                        total(&Correlation::yy), total(&Correlation::xy)};
  prediction.output = fidelity(all);
  std::vector<Correlation> outputs;
  for (const Probe& probe : probes) outputs.push_back(probe.output);
  prediction.output_error = decibel_error(outputs);
  return prediction;
}

LayerMeasurement measure_layers(const net::Graph& graph, net::Numerics& numerics,
                                const policies::FloatReference& reference,
                                const MoreSamples& more) {
  Measured measured;
  measured.add(graph, numerics, reference, {});
  // Threads take a chunk each, as long as all chunks are no more than the reference.
  const std::int64_t chunk = std::clamp<std::int64_t>(reference.samples() / kChunks, 1, kMostChunk);
  const bool parallel = reference.samples() >= kChunks;
  std::int64_t first = 0;
  while (first < more.count && measured.samples() < kMeasuredSamples &&
         (measured.samples() < kFewestStreamed || !(measured.output_interval() < kShortInterval))) {
    std::vector<std::vector<net::Tensor>> batches;
    std::int64_t left = std::min(more.count - first, kMeasuredSamples - measured.samples());
    for (std::int64_t i = 0; i < kChunks && left > 0; ++i) {
      const std::int64_t count = std::min(left, chunk);
      if (auto batch = more.batch(first, count); !batch.empty())
        batches.push_back(std::move(batch));
      first += count;
      left -= count;
    }
    std::vector<Measured> parts(batches.size());
    in_parallel(std::ssize(batches), parallel, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      parts[at].add(graph, numerics, outputs_of(graph, std::move(batches[at])), {});
    });
    for (const Measured& part : parts) measured.add(part);
  }
  return measured.result();
}

void withhold_fused(LayerMeasurement& measured, const policies::RecipeNumerics& ran) {
  for (auto& [layer, db] : measured.db) {
    if (ran.roles().gives_fused(layer)) db = measured.error[layer] = NAN;
  }
}

LayerMeasurement measure_once(std::vector<TensorNoise>& noises, const policies::RecipeNumerics& ran,
                              net::Numerics& numerics, const policies::FloatReference& reference,
                              const AfterNode& after) {
  const TensorMeasurement measurement(ran.bound(), reference, &ran);
  Measured layers;
  layers.add(ran.bound().graph(), numerics, reference, [&](const net::Node& node) {
    for (TensorNoise& noise : noises) {
      if (measurement.is_weight(noise, node)) measurement.fill_in(noise);
    }
    after(node);
  });
  for (TensorNoise& noise : noises) {
    if (noise.source.role != net::Role::weight) measurement.fill_in(noise);
  }
  LayerMeasurement out = layers.result();
  withhold_fused(out, ran);
  return out;
}

}  // namespace numemu::experiments
