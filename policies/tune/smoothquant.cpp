// Step smoothquant: the ranges of activation channels moved into the weights that read them.
#include <algorithm>
#include <cmath>
#include <map>

#include "emu/net/forward.hpp"
#include "emu/net/observing.hpp"
#include "policies/tune/base/equalise.hpp"
#include "policies/tune/base/tune_step.hpp"

namespace numemu::policies {
namespace {

struct SmoothquantStepOptions final : PolicyOptions {
  double strength = 0.5;
  std::string scales = "real";
  std::vector<Option> list() override {
    return {
        {"strength", "share of an activation's range that moves to the weights", &strength, 0, 1},
        scale_steps_option(scales)};
  }
};

class SmoothQuant final : public TuneStep {
 public:
  explicit SmoothQuant(const SmoothquantStepOptions& options) : options_(options) {}

  void run(Tuning& tuning, std::int64_t, const TuneProgress& progress) override {
    std::map<std::string, std::vector<double>> magnitudes;  // |x| of channels that layers read
    net::Observing numerics({.before = [&](const net::Step&, const net::Product& p) {
      if (p.b.role != net::Role::weight) return;
      const net::Tensor& x = *p.a.source;
      std::vector<double>& largest = magnitudes[std::string(p.layer)];
      largest.resize(static_cast<std::size_t>(x.dim(-1)));
      for (std::int64_t i = 0; i < x.size(); ++i) {
        double& of = largest[static_cast<std::size_t>(i % x.dim(-1))];
        of = std::max(of, std::abs(double{x.data[i]}));
      }
    }});
    tuning.calibration.for_each([&](std::int64_t first, const std::vector<net::Tensor>& inputs) {
      net::forward(tuning.reference, inputs, numerics);
      progress(static_cast<double>(first) / static_cast<double>(tuning.calibration.samples));
    });
    std::vector<std::vector<double>> of_nodes;
    for (const net::Node& node : tuning.graph.nodes) of_nodes.push_back(magnitudes[node.name]);
    net::Graph* const graphs[] = {&tuning.graph, &tuning.reference};
    report_ = smooth_activations(graphs, of_nodes, options_.strength, scale_steps(options_.scales));
    forget_moved_ranges(tuning, "smoothquant", report_);
  }
  std::string summary() const override { return summary_of(report_); }

 private:
  const SmoothquantStepOptions& options_;
  std::vector<ScaledLink> report_;
};

}  // namespace

extern const TuneStepKind tune_smoothquant{
    .name = "smoothquant",
    .summary =
        "ranges of activation channels moved into the weights behind; the network computes "
        "the same",
    .source = "Xiao et al., ICML 2023 (arXiv 2211.10438)",
    .options = make_options<SmoothquantStepOptions>,
    .make = make_step<SmoothQuant, SmoothquantStepOptions>};

}  // namespace numemu::policies
