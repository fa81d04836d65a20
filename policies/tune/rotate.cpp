// Step rotate: the values of attention rotated in the weights that give them and read them, so that
// outliers are spread over the channels of a head.
#include "policies/tune/rotate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/math.hpp"
#include "emu/net/observing.hpp"
#include "emu/net/tied.hpp"
#include "emu/stats/mean.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/tune/base/rotation_links.hpp"
#include "policies/tune/base/tune_step.hpp"

namespace numemu::policies {
namespace {

double mean_of(std::int64_t n, const auto& term) {
  return n == 0 ? 0 : pairwise_sum(n, term) / static_cast<double>(n);
}

double fourth(float x) {
  const double square = double{x} * double{x};
  return square * square;
}

}  // namespace

double RawMoments::peak() const { return square > 0 ? largest / std::sqrt(square) : 0; }

RawMoments raw_moments(const float* x, std::int64_t n) {
  RawMoments moments;
  moments.square = n == 0 ? 0 : stats::sum_of_squares(n, x) / static_cast<double>(n);
  moments.fourth = mean_of(n, [&](std::int64_t i) { return fourth(x[i]); });
  for (std::int64_t i = 0; i < n; ++i)
    moments.largest = std::max(moments.largest, std::abs(double{x[i]}));
  return moments;
}

RawMoments rotated_moments(const float* x, std::int64_t n, std::int64_t block) {
  const auto b = static_cast<double>(block);
  RawMoments moments;
  moments.square =
      mean_of(n / block,
              [&](std::int64_t i) { return stats::sum_of_squares(block, x + i * block); }) /
      b;
  moments.fourth = mean_of(n / block, [&](std::int64_t i) {
    const float* const line = x + i * block;
    const double s2 = stats::sum_of_squares(block, line);
    const double s4 = pairwise_sum(block, [&](std::int64_t k) { return fourth(line[k]); });
    return (3 * s2 * s2 - 2 * s4) / (b * b);
  });
  for (std::int64_t i = 0; i < n; i += block) {
    const double sum =
        pairwise_sum(block, [&](std::int64_t k) { return std::abs(double{x[i + k]}); });
    moments.largest = std::max(moments.largest, sum / std::sqrt(b));
  }
  return moments;
}

namespace {

struct RotateStepOptions final : PolicyOptions {
  std::int64_t block = 65536;
  std::vector<Option> list() override {
    return {{"block",
             "channels that are rotated together at most; the largest power of two that divides a "
             "head's is taken",
             &block, 2, 65536}};
  }
};

/// Moments of what a layer reads, as it is and after a rotation.
struct Moments {
  RawMoments now, rotated;
  double elements = 0;

  void add(const net::Tensor& x, std::int64_t block) {
    const auto n = static_cast<double>(x.size());
    const auto join = [&](RawMoments& all, const RawMoments& next) {
      all.square = (all.square * elements + next.square * n) / (elements + n);
      all.fourth = (all.fourth * elements + next.fourth * n) / (elements + n);
      all.largest = std::max(all.largest, next.largest);
    };
    join(now, raw_moments(x.data.data(), x.size()));
    join(rotated, rotated_moments(x.data.data(), x.size(), block));
    elements += n;
  }
};

class Rotate final : public TuneStep {
 public:
  explicit Rotate(const RotateStepOptions& options) : options_(options) {}

  void run(Tuning& tuning, std::int64_t, const TuneProgress& progress) override {
    RotationLinks found = rotation_links(tuning.graph);
    std::erase_if(found.links, [&](const RotationLink& link) {
      std::vector<std::size_t> nodes = link.biases;
      nodes.insert(nodes.end(), {link.producer, link.consumer});
      for (const std::size_t at : nodes) {
        const net::Node& node = tuning.graph.nodes[at];
        if (const std::string shared = net::sharing(tuning.graph, node); !shared.empty()) {
          found.left_out.push_back(fmt::format("{}: {}", node.name, shared));
          return true;
        }
      }
      return false;
    });
    const std::vector<RotationLink>& links = found.links;
    if (links.empty()) {
      throw Error(fmt::format(
          "{}: step rotate: expected attention whose values go from one linear layer to another "
          "with at least two channels in a head{}{}; elsewhere the recipe's key transform rotates",
          tuning.where, found.left_out.empty() ? "" : ", found ", joined(found.left_out, "; ")));
    }
    const std::vector<Moments> before = moments(tuning, links);
    progress(0.5);
    for (const RotationLink& link : links) {
      RandomSource signs;
      signs.seed = tuning.seed;
      signs.tensor = tensor_word(tuning.graph.nodes[link.consumer].name + "/transform/0/rotate");
      for (net::Graph* const graph : {&tuning.graph, &tuning.reference})
        rotate_link(*graph, link, link.block(options_.block), signs);
      for (const std::size_t node : {link.producer, link.consumer}) {
        LayerRanges& ranges = tuning.ranges[tuning.graph.nodes[node].name];
        ranges.weight.clear();
        if (node == link.consumer) ranges.activation.reset();
      }
    }
    std::erase_if(tuning.ranges, [](const auto& entry) { return entry.second.empty(); });
    complete_ranges(tuning);
    describe(tuning, links, before, moments(tuning, links));
    if (!found.left_out.empty())
      text_ += fmt::format("; as they were: {}", joined(found.left_out, "; "));
  }

  std::string summary() const override { return text_; }

 private:
  /// Of what the consumers read, in float32.
  std::vector<Moments> moments(const Tuning& tuning, const std::vector<RotationLink>& links) const {
    std::vector<Moments> all(links.size());
    net::Observing numerics({.before = [&](const net::Step&, const net::Product& p) {
      for (std::size_t i = 0; i < links.size(); ++i)
        if (tuning.reference.nodes[links[i].consumer].name == p.layer)
          all[i].add(*p.a.source, links[i].block(options_.block));
    }});
    tuning.calibration.for_each([&](std::int64_t, const std::vector<net::Tensor>& inputs) {
      net::forward(tuning.reference, inputs, numerics);
    });
    return all;
  }

  void describe(const Tuning& tuning, const std::vector<RotationLink>& links,
                const std::vector<Moments>& before, const std::vector<Moments>& after) {
    text_ = fmt::format("{} rotated; kurtosis and largest / root mean square of what they read:",
                        links.size());
    for (std::size_t i = 0; i < links.size(); ++i) {
      text_ += fmt::format("{} {} {:.2f} to {:.2f} (predicted {:.2f}), {:.1f} to {:.1f}",
                           i == 0 ? "" : ";", tuning.graph.nodes[links[i].consumer].name,
                           before[i].now.kurtosis(), after[i].now.kurtosis(),
                           before[i].rotated.kurtosis(), before[i].now.peak(), after[i].now.peak());
    }
  }

  const RotateStepOptions& options_;
  std::string text_;
};

}  // namespace

extern const TuneStepKind tune_rotate{
    .name = "rotate",
    .summary =
        "values of attention rotated by Hadamard matrices in the weights around them; the "
        "network computes the same",
    .source = "Ashkboos et al., NeurIPS 2024 (QuaRot, arXiv 2404.00456)",
    .options = make_options<RotateStepOptions>,
    .make = make_step<Rotate, RotateStepOptions>};

}  // namespace numemu::policies
