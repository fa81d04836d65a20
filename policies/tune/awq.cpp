// Step awq: channels that meet large activations made larger in the weight before it is rounded, by
// the share of the activation's magnitude that gives the least error of the outputs.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "emu/net/math.hpp"
#include "formats/error.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/tune/base/equalise.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuned_layers.hpp"
#include "policies/tune/base/weight_rounding.hpp"

namespace numemu::policies {
namespace {

struct AwqStepOptions final : PolicyOptions {
  std::int64_t grid = 20, samples = 0;
  std::string scales = "real";
  std::vector<Option> list() override {
    return {{"grid", "strengths tried, from 0 to 1 - 1 / grid", &grid, 1, 1000},
            {"samples", "calibration samples used, 0 for all", &samples, 0, 1e6},
            scale_steps_option(scales)};
  }
};

/// A layer that reads the channels of a link.
struct Reader {
  const net::Tensor* weight = nullptr;  ///< of the tuned network: [rows, depth]
  RolePolicy role;
  std::vector<double> hessian;  ///< X^T X of its inputs, [depth, depth]
  const ChannelLink* link = nullptr;
};

/// The squared error of the outputs on those inputs, were the weight rounded as w s and the inputs
/// divided by s.
double error_of(const Reader& reader, const std::vector<double>& s) {
  const net::Tensor& w = *reader.weight;
  const std::int64_t rows = w.dim(0), depth = w.size() / rows;
  const auto of = [&](std::int64_t column) {
    return s[static_cast<std::size_t>(reader.link->channel_of(column))];
  };
  net::Tensor scaled = w;
  for (std::int64_t i = 0; i < w.size(); ++i)
    scaled.data[i] = static_cast<float>(double{w.data[i]} * of(i % depth));
  const net::Tensor rounded = WeightGrid(reader.role, scaled).nearest(scaled);
  std::vector<double> off(static_cast<std::size_t>(depth));
  double error = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < depth; ++k)
      off[k] = double{rounded.data[r * depth + k]} / of(k) - double{w.data[r * depth + k]};
    for (std::int64_t k = 0; k < depth; ++k) {
      double sum = 0;
      for (std::int64_t l = 0; l < depth; ++l) sum += reader.hessian[k * depth + l] * off[l];
      error += off[k] * sum;
    }
  }
  return error;
}

/// mean|x|^strength per channel, so that the largest times the least is 1.
std::vector<double> scales_of(const std::vector<double>& means, double strength, ScaleSteps steps) {
  std::vector<double> s;
  for (const double mean : means)
    s.push_back(mean > 0 ? double{net::pow(static_cast<float>(mean), static_cast<float>(strength))}
                         : 1);
  const auto [least, most] = std::minmax_element(s.begin(), s.end());
  const double middle = std::sqrt(*least * *most);
  for (double& of : s) of = stepped_scale(of / middle, steps);
  return s;
}

class Awq final : public TuneStep {
 public:
  explicit Awq(const AwqStepOptions& options) : options_(options) {}

  std::int64_t begin(const Tuning& tuning) override {
    tuned_layers(tuning, "awq");
    return 1;
  }

  void run(Tuning& tuning, std::int64_t, const TuneProgress& progress) override {
    const std::vector<TunedLayer> layers = tuned_layers(tuning, "awq");
    std::map<std::size_t, const TunedLayer*> by_node;
    for (const TunedLayer& layer : layers) by_node[layer.node] = &layer;
    std::vector<std::size_t> done;
    double share = 0;
    for (const TunedLayer& layer : layers) {
      progress(share++ / static_cast<double>(layers.size()));
      ScaledLink entry{"", layer.name};
      try {
        const std::size_t producer = channel_producer(tuning.graph, layer.node);
        if (std::ranges::find(done, producer) != done.end()) continue;
        done.push_back(producer);
        entry.producer = tuning.graph.nodes[producer].name;
        scale(tuning, channel_link(tuning.graph, producer), by_node, entry);
      } catch (const Error& error) {
        entry.refused = error.what();
      }
      report_.push_back(std::move(entry));
    }
    forget_moved_ranges(tuning, "awq", report_);
  }
  std::string summary() const override { return summary_of(report_); }

 private:
  void scale(Tuning& tuning, const ChannelLink& link,
             const std::map<std::size_t, const TunedLayer*>& by_node, ScaledLink& entry) const {
    const BoundRecipe recipe(tuning.recipe, tuning.graph, tuning.where);
    std::vector<Reader> readers;
    std::vector<double> means(static_cast<std::size_t>(link.channels));
    entry.consumers.clear();
    for (const std::size_t consumer : link.consumers) {
      const std::string& name = tuning.graph.nodes[consumer].name;
      entry.consumers += (entry.consumers.empty() ? "" : " ") + name;
      const auto layer = by_node.find(consumer);
      if (layer == by_node.end())
        throw Error("layer " + name + " reads the channels too, and its weight is not quantized");
      LayerHessians hessians =
          layer_hessians(tuning, *layer->second, Inputs::reference, options_.samples);
      if (hessians.matrices.size() != 1) throw Error("layer " + name + " has groups of channels");
      const net::Tensor& weight =
          std::as_const(*tuning.graph.nodes[consumer].op).parameters()[0].value;
      readers.push_back(
          {&weight, *recipe.layer(name)[RolePart::weight], std::move(hessians.matrices[0]), &link});
      const LayerSamples samples =
          layer_samples(tuning, *layer->second, Inputs::reference, options_.samples);
      const std::int64_t last = samples.x.dim(-1);
      for (std::int64_t i = 0; i < samples.x.size(); ++i)
        means[static_cast<std::size_t>(link.channel_of(i % last))] +=
            std::abs(double{samples.x.data[i]});
    }
    const ScaleSteps steps = scale_steps(options_.scales);
    std::vector<double> best;
    double least = 0;
    for (std::int64_t i = 0; i < options_.grid; ++i) {
      const double strength = static_cast<double>(i) / static_cast<double>(options_.grid);
      std::vector<double> s = scales_of(means, strength, steps);
      double error = 0;
      for (const Reader& reader : readers) error += error_of(reader, s);
      if (best.empty() || error < least) {
        least = error;
        best = std::move(s);
      }
    }
    for (net::Graph* const graph : {&tuning.graph, &tuning.reference})
      scale_channels(*graph, link, best);
    const auto [low, high] = std::minmax_element(best.begin(), best.end());
    entry.least = *low;
    entry.most = *high;
  }

  const AwqStepOptions& options_;
  std::vector<ScaledLink> report_;
};

}  // namespace

extern const TuneStepKind tune_awq{
    .name = "awq",
    .summary =
        "channels scaled before weights are rounded, by activations, for the least error of "
        "the outputs; the network computes the same",
    .source = "Lin et al., MLSys 2024 (AWQ, arXiv 2306.00978)",
    .options = make_options<AwqStepOptions>,
    .make = make_step<Awq, AwqStepOptions>};

}  // namespace numemu::policies
