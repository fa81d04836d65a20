#include "policies/calibrate/synthesize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "emu/net/backward.hpp"
#include "emu/net/fold_batch_norm.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/math.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/random.hpp"
#include "formats/suggest.hpp"

namespace numemu::policies {

std::vector<NormTarget> fold_to_targets(net::Graph& graph) {
  std::vector<NormTarget> targets;
  for (const net::Node& node : graph.nodes) {
    const auto* norm = dynamic_cast<const net::BatchNorm*>(node.op.get());
    if (norm == nullptr) continue;
    const std::span<const net::Parameter> p = std::as_const(*norm).parameters();
    NormTarget target;
    target.value = graph.value_name(node.inputs[0]);
    for (std::size_t c = 0; c < p[0].value.data.size(); ++c) {
      const double gain = p[0].value.data[c], variance = p[3].value.data[c];
      target.mean.push_back(p[1].value.data[c]);
      target.variance.push_back(gain * gain * variance / (variance + norm->options().epsilon));
    }
    targets.push_back(std::move(target));
  }
  if (targets.empty())
    throw Error("network " + graph.name +
                ": expected batch normalisation, its statistics are what data is made from; "
                "torch.onnx.export keeps it with training=TrainingMode.PRESERVE and "
                "do_constant_folding=False");
  net::fold_batch_norm(graph);
  for (const net::Node& node : graph.nodes) {
    if (dynamic_cast<const net::BatchNorm*>(node.op.get()) != nullptr)
      throw Error("layer " + node.name +
                  ": expected batch normalisation that folds into the layer before it");
  }
  return targets;
}

double norm_divergence(const NormTarget& target, const net::Tensor& x, net::Tensor* gradient) {
  const auto channels = static_cast<std::int64_t>(target.mean.size());
  const std::int64_t rows = x.size() / channels;
  const net::BatchStatistics batch = net::batch_statistics(x.data.data(), rows, channels, {});
  double sum = 0;
  std::vector<double> shift(target.mean.size()), slope(target.mean.size());
  for (std::size_t c = 0; c < target.mean.size(); ++c) {
    const double s2 = target.variance[c], v = batch.variance[c];
    if (!(s2 > 0 && v > 0)) continue;
    const double off = batch.mean[c] - target.mean[c];
    sum += (portable::log(v / s2) + (s2 + off * off) / v - 1) / 2;
    shift[c] = off / v / static_cast<double>(rows);
    slope[c] = (1 / v - (s2 + off * off) / (v * v)) / static_cast<double>(rows);
  }
  if (gradient == nullptr) return sum;
  *gradient = net::Tensor(x.shape);
  net::for_each_row(rows, channels, [&](std::int64_t r) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t i = r * channels + c;
      gradient->data[i] = net::neutral(
          static_cast<float>(shift[c] + slope[c] * (double{x.data[i]} - batch.mean[c])));
    }
  });
  return sum;
}

double norm_divergence(const net::Graph& folded, const std::vector<NormTarget>& targets,
                       const net::Tensor& batch) {
  std::map<std::string, const NormTarget*, std::less<>> of;
  double channels = 0, sum = 0;
  for (const NormTarget& target : targets) {
    of[target.value] = &target;
    channels += static_cast<double>(target.mean.size());
  }
  const net::Observer observer = [&](const net::Node& node, const net::Tensor& x) {
    const auto found = of.find(node.name);
    if (found != of.end()) sum += norm_divergence(*found->second, x, nullptr);
  };
  net::Numerics float32;
  net::forward(folded, batch, float32, {}, &observer);
  return sum / channels;
}

namespace {

constexpr std::array<const char*, 3> kSmoothing = {"none", "images", "gradient"};
constexpr std::uint32_t kTensor = 0x73796e74;  // "synt"

/// Standard normal numbers, a function of the seed and the number of the batch.
net::Tensor noise(const net::Shape& shape, std::uint64_t seed, std::int64_t batch) {
  RandomSource random;
  random.seed = seed;
  random.stream = Stream::data;
  random.tensor = kTensor;
  random.draw = static_cast<std::uint16_t>(batch);
  net::Tensor x(shape);
  x.data = normal::sample(random, x.data.size());
  return x;
}

/// [n, height, width, channels] with weights 1 2 1 along height and width, the pixels at the border
/// repeated, times 8/3: independent pixels keep their variance, as (1 + 4 + 1) / 16 = (3/8)^2 of it
/// is left by a mean along both axes (more at the border). `adjoint`: its transpose.
net::Tensor smoothed(const net::Tensor& x, bool adjoint) {
  const std::int64_t height = x.dim(1), width = x.dim(2), channels = x.dim(3);
  constexpr float kWeight[3] = {0.25f, 0.5f, 0.25f}, kScale = 8.0f / 3;
  net::Tensor out(x.shape);
  const auto pixel = [&](std::int64_t n, std::int64_t h, std::int64_t w) {
    h = std::clamp<std::int64_t>(h, 0, height - 1);
    w = std::clamp<std::int64_t>(w, 0, width - 1);
    return ((n * height + h) * width + w) * channels;
  };
  net::for_each_row(x.dim(0), 9 * height * width * channels, [&](std::int64_t n) {
    for (std::int64_t h = 0; h < height; ++h) {
      for (std::int64_t w = 0; w < width; ++w) {
        const std::int64_t here = pixel(n, h, w);
        for (int k = 0; k < 9; ++k) {
          const std::int64_t there = pixel(n, h + k / 3 - 1, w + k % 3 - 1);
          const float weight = kScale * kWeight[k / 3] * kWeight[k % 3];
          const std::int64_t to = adjoint ? there : here, from = adjoint ? here : there;
          for (std::int64_t c = 0; c < channels; ++c) out.data[to + c] += weight * x.data[from + c];
        }
      }
    }
  });
  return out;
}

/// Float32 without the gradients of weights, which nothing reads and which are a third of the work.
struct NoWeightGradients final : net::Numerics {
  void product(const net::Step& step, const net::Product& p) override {
    if (p.kind != net::GemmKind::wgrad) net::Numerics::product(step, p);
  }
};

/// The batch's divergence and its gradient along the images.
class Target {
 public:
  Target(const net::Graph& folded, const std::vector<NormTarget>& targets, const Synthesis& options)
      : folded_(folded), options_(options) {
    for (const NormTarget& target : targets) channels_ += static_cast<double>(target.mean.size());
    for (const NormTarget& target : targets) {
      inject_.push_back({target.value, [&, this](const net::Tensor& x) {
                           net::Tensor gradient;
                           divergence_ += norm_divergence(target, x, &gradient) / channels_;
                           for (float& g : gradient.data) g /= static_cast<float>(channels_);
                           return gradient;
                         }});
    }
    if (options.source != SampleSource::classes) return;
    inject_.push_back({folded.nodes.back().name, [this](const net::Tensor& logits) {
                         net::Tensor gradient;
                         net::find_objective("cross_entropy")
                             .evaluate(logits, labels_, &gradient,
                                       static_cast<float>(options_.class_weight));
                         return gradient;
                       }});
  }

  net::Tensor gradient(const net::Tensor& images, const std::vector<std::int32_t>& labels) {
    divergence_ = 0;
    labels_.classes = labels;
    const std::string input(folded_.value_name(0));
    NoWeightGradients float32;
    net::Gradients found = net::gradients(folded_, {&images, 1}, float32,
                                          {.phase = net::Phase::inference}, {&input, 1}, inject_);
    return std::move(found.values[0]);
  }
  double divergence() const { return divergence_; }

 private:
  const net::Graph& folded_;
  const Synthesis& options_;
  double channels_ = 0, divergence_ = 0;
  net::Targets labels_;
  std::vector<net::Injection> inject_;
};

}  // namespace

const char* to_string(SampleSource source) {
  constexpr const char* kNames[] = {"noise", "batch_norm", "class"};
  return kNames[static_cast<int>(source)];
}

const char* to_string(Smoothing smoothing) {
  return kSmoothing[static_cast<std::size_t>(smoothing)];
}

Smoothing parse_smoothing(std::string_view text) {
  return static_cast<Smoothing>(index_named("smoothing", text, kSmoothing));
}

SynthesizedSamples synthesize(const net::Graph& folded, const std::vector<NormTarget>& targets,
                              std::int64_t count, const Synthesis& options,
                              const OnSynthesis& told) {
  if (folded.inputs.size() != 1)
    throw Error("network " + folded.name + ": expected one input to make samples for");
  if (options.batch < 2 || count < 2)
    throw Error("samples made from batch normalisation: expected batches of at least 2 samples");
  const net::Shape& sample = folded.inputs[0].shape;
  const bool smooth = options.smooth != Smoothing::none && sample.size() == 3 &&
                      options.source != SampleSource::noise;
  const bool of_images = smooth && options.smooth == Smoothing::images;
  const std::int64_t batches = (count + options.batch - 1) / options.batch;
  SynthesizedSamples made;
  made.x = net::Tensor({0});
  made.x.shape = sample;
  made.x.shape.insert(made.x.shape.begin(), count);
  for (std::int64_t b = 0; b < batches; ++b) {
    // All batches have as many samples; what is beyond the count is dropped.
    net::Shape shape = made.x.shape;
    shape[0] = options.batch;
    net::Parameter images{"images", noise(shape, options.seed, b)};
    std::vector<std::int32_t> labels;
    net::Tensor shown = images.value;
    if (options.source == SampleSource::classes) {
      net::Numerics float32;
      const std::int64_t classes = net::forward(folded, shown, float32).dim(-1);
      for (std::int64_t i = 0; i < options.batch; ++i)
        labels.push_back(static_cast<std::int32_t>((b * options.batch + i) % classes));
    }
    if (options.source != SampleSource::noise) {
      Target target(folded, targets, options);
      net::TrainOptions adam;
      adam.optimizer = "adam";
      adam.weight_decay = 0;
      const net::Parameter* const list[] = {&images};
      const std::unique_ptr<net::Optimizer> optimizer = net::make_optimizer(adam, list);
      std::vector<float> delta;
      for (std::int64_t step = 0; step < options.steps; ++step) {
        if (of_images) shown = smoothed(images.value, false);
        net::Tensor gradient = target.gradient(of_images ? shown : images.value, labels);
        if (smooth) gradient = smoothed(gradient, true);
        const double place = static_cast<double>(step) / static_cast<double>(options.steps);
        optimizer->begin_step(options.rate * (1 + net::cos_pi(place)) / 2);
        optimizer->step(0, images, gradient, delta);
        for (std::size_t i = 0; i < delta.size(); ++i) images.value.data[i] += delta[i];
        if (told) told(b * options.steps + step, batches * options.steps, target.divergence());
      }
      shown = of_images ? smoothed(images.value, false) : images.value;
    }
    made.divergence += norm_divergence(folded, targets, shown) / static_cast<double>(batches);
    const std::int64_t each = net::element_count(sample);
    const std::int64_t kept = std::min(options.batch, count - b * options.batch);
    made.x.data.append(std::span(shown.data).first(static_cast<std::size_t>(kept * each)));
    labels.resize(std::min<std::size_t>(labels.size(), static_cast<std::size_t>(kept)));
    made.labels.insert(made.labels.end(), labels.begin(), labels.end());
  }
  return made;
}

}  // namespace numemu::policies
