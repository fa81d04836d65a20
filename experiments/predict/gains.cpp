#include "experiments/predict/gains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/stats/pairwise.hpp"
#include "experiments/predict/noise_power.hpp"
#include "experiments/predict/part_noise.hpp"
#include "formats/digest.hpp"
#include "formats/random.hpp"

namespace numemu::experiments {
namespace {

/// x plus noise of random sign whose mean square is exactly `power`, of the given shape.
net::Tensor disturbed(const net::Tensor& x, NoiseShape shape, double power,
                      const RandomSource& random) {
  const double profile = shape == NoiseShape::proportional
                             ? mean_square(x)
                             : stats::pairwise_sum(x.size(), [&](std::int64_t i) {
                                 return x.data[i] != 0 ? 1.0 : 0.0;
                               }) / x.size();
  const float size = static_cast<float>(std::sqrt(power / profile));
  net::Tensor out = x;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const float weight =
        shape == NoiseShape::proportional ? x.data[i] : (x.data[i] != 0 ? 1.0f : 0.0f);
    out.data[i] += random.bits(i, 1) ? size * weight : -size * weight;
  }
  return out;
}

/// Float32 numerics with one operand of one layer's forward product replaced.
class Probe : public net::Numerics {
 public:
  Probe(std::string layer, net::Role role, const net::Tensor& operand, PartNoise& parts)
      : layer_(std::move(layer)), role_(role), operand_(operand), parts_(parts) {}
  void product(const net::Product& product) override {
    net::Product changed = product;
    net::ProductSide& side = role_ == net::Role::weight ? changed.b : changed.a;
    // Of a recurrent layer the reference holds all steps side by side: those are left as they are.
    if (product.layer == layer_ && side.source->size() == operand_.size()) side.source = &operand_;
    net::Numerics::product(changed);
    parts_.add(changed);
  }

 private:
  std::string layer_;
  net::Role role_;
  const net::Tensor& operand_;
  PartNoise& parts_;
};

/// Float32 numerics that count multiply-adds.
class MacCounter : public net::Numerics {
 public:
  void product(const net::Product& p) override {
    macs += multiply_adds(p);
    net::Numerics::product(p);
  }
  double macs = 0;
};

int probes_for(const net::Graph& graph, const policies::FloatReference& reference) {
  const double kinds = 4.0 * static_cast<double>(net::gemm_layers(graph).size());
  const double affordable =
      NoiseGains::kProbeMacs / (multiply_adds(graph, reference.batch) * kinds);
  return static_cast<int>(
      std::clamp(affordable, double{NoiseGains::kFewestProbes}, double{NoiseGains::kProbes}));
}

}  // namespace

double multiply_adds(const net::Product& p) {
  return static_cast<double>(p.d_stack.count() * p.m) * static_cast<double>(p.n * p.k);
}

double multiply_adds(const net::Graph& graph, const std::vector<net::Tensor>& batch) {
  MacCounter counter;
  net::forward(graph, batch, counter);
  return counter.macs;
}

NoiseGains::NoiseGains(const net::Graph& graph, const policies::FloatReference& whole,
                       std::uint64_t seed)
    : layers_(net::gemm_layer_names(graph)) {
  std::vector<net::Tensor> batch;
  for (const net::Tensor& x : whole.batch)
    batch.push_back(policies::first_samples(x, kProbeImages));
  const policies::FloatReference reference = policies::float_reference(graph, std::move(batch));
  const int probes = probes_for(graph, reference);

  struct Job {
    TensorSource source;
    NoiseShape shape;
    int probe;
    std::map<std::string, double> gain;  // by layer
  };
  std::vector<Job> jobs;
  for (const std::string& layer : layers_) {
    for (const net::Role role : {net::Role::weight, net::Role::activation}) {
      if (reference.seconds.contains(layer)) continue;
      for (const NoiseShape shape : {NoiseShape::flat, NoiseShape::proportional}) {
        for (int probe = 0; probe < probes; ++probe)
          jobs.push_back({{layer, role}, shape, probe, {}});
      }
    }
  }
  const auto run = [&](Job& job) {
    const auto& [layer, role] = job.source;
    const net::Tensor& x =
        role == net::Role::weight ? net::weight_of(graph, layer) : reference.inputs.at(layer);
    const double power = mean_square(x) * kProbeSize * kProbeSize;
    if (power == 0) return;
    RandomSource random;
    random.seed = seed;
    random.stream = Stream::probe;
    random.tensor =
        tensor_word(fmt::format("{}/{}/{}/{}", layer, net::to_string(role), job.probe,
                                job.shape == NoiseShape::flat ? "flat" : "proportional"));
    const net::Tensor operand = disturbed(x, job.shape, power, random);
    PartNoise parts(graph, reference);
    Probe numerics(layer, role, operand, parts);
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& output) {
      const auto clean = reference.outputs.find(node.name);
      if (clean == reference.outputs.end()) return;
      job.gain[node.name] = mean_square_difference(output, clean->second) / power;
    };
    net::forward(graph, reference.batch, numerics, &observe);
    for (const auto& [part, noise] : parts.mean_squares()) job.gain[part] = noise / power;
  };
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < jobs.size(); ++i) run(jobs[i]);
  // In order: the same sum for any number of threads.
  for (const Job& job : jobs) {
    for (const auto& [layer, gain] : job.gain) {
      gains_[job.source][layer][static_cast<int>(job.shape)] += gain / probes;
    }
  }
}

double NoiseGains::gain(const TensorSource& source, NoiseShape shape,
                        const std::string& layer) const {
  const auto found = gains_.find(source);
  if (found == gains_.end()) return 0;
  const auto at = found->second.find(layer);
  return at == found->second.end() ? 0 : at->second[static_cast<int>(shape)];
}

}  // namespace numemu::experiments
