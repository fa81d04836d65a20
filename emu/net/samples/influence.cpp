#include "emu/net/samples/influence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace numemu::net::samples {
namespace {

constexpr std::uint32_t kTensors = 1000;  // numbers of random tensors of a checkpoint's operands

std::int64_t count_of(const Batch& batch) { return batch.x.dim(0); }

}  // namespace

Influences::Influences(std::vector<const Format*> formats, const Rounding& drawn, Batch training,
                       Batch targets, std::int64_t ranked, std::uint64_t seed)
    : formats_(std::move(formats)),
      drawn_(drawn),
      training_(std::move(training)),
      targets_(std::move(targets)),
      ranked_(ranked),
      seed_(seed),
      scores_(1 + 3 * formats_.size()),
      laws_(scores_.size()) {}

void Influences::add(const Graph& graph, double rate) {
  const std::vector<LayerOperands> operands = operands_of(graph, training_),
                                   targets = operands_of(graph, targets_);
  const std::uint32_t first = checkpoint_++ * 2 * kTensors;
  const auto stored = [&](const Format* format, bool drawn, std::uint16_t draw) -> Stored {
    return {format, drawn ? drawn_ : Rounding{}, seed_, first, draw};
  };
  const auto of_targets = [&](Stored how) {
    how.first_tensor += kTensors;
    return SampleGradients(targets, how);
  };
  const SampleGradients exact(operands, {});
  add_scores(rate, exact, exact, of_targets({}), scores_[0]);
  std::size_t way = 1;
  for (const Format* format : formats_) {
    const SampleGradients nearest(operands, stored(format, false, 0));
    add_scores(rate, nearest, nearest, of_targets(stored(format, false, 0)), scores_[way]);
    const SampleGradients once(operands, stored(format, true, 0)),
        again(operands, stored(format, true, 1));
    add_scores(rate, once, once, of_targets(stored(format, true, 0)), scores_[way + 1]);
    add_scores(rate, once, again, {}, scores_[way + 2]);
    add_laws(rate, operands, targets, *format, way);
    way += 3;
  }
}

bool Influences::finite() const {
  return std::all_of(scores_[0].self.begin(), scores_[0].self.end(),
                     [](double s) { return std::isfinite(s); });
}

/// Self-influence by `a` and `b`, influence on the targets by `a`; no targets: none.
void Influences::add_scores(double rate, const SampleGradients& a, const SampleGradients& b,
                            const std::optional<SampleGradients>& targets, Scores& scores) const {
  scores.self.resize(static_cast<std::size_t>(a.samples()));
  for (std::int64_t i = 0; i < a.samples(); ++i)
    scores.self[static_cast<std::size_t>(i)] += rate * a.dot(i, b, i);
  if (!targets) return;
  const auto ranked = static_cast<std::size_t>(ranked_);
  scores.targets.resize(static_cast<std::size_t>(targets->samples()), std::vector<double>(ranked));
  for (std::size_t t = 0; t < scores.targets.size(); ++t) {
    for (std::size_t i = 0; i < ranked; ++i)
      scores.targets[t][i] +=
          rate * a.dot(static_cast<std::int64_t>(i), *targets, static_cast<std::int64_t>(t));
  }
}

/// Of one draw and of two.
void Influences::add_laws(double rate, const std::vector<LayerOperands>& operands,
                          const std::vector<LayerOperands>& targets, const Format& format,
                          std::size_t nearest) {
  const std::int64_t samples = count_of(training_), others = count_of(targets_);
  const GradientLaws law(operands, format, drawn_, samples);
  ScoreLaws &one = laws_[nearest + 1], &two = laws_[nearest + 2];
  one.self.resize(static_cast<std::size_t>(samples));
  two.self.resize(static_cast<std::size_t>(samples));
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const SelfLaw self = law.self(i);
    one.self[at] = sum(one.self[at], self.one, rate);
    two.self[at] = sum(two.self[at], self.two, rate);
  }
  if (!all_factored(operands)) return;
  const GradientLaws of_targets(targets, format, drawn_, others);
  const auto ranked = static_cast<std::size_t>(ranked_);
  one.targets.resize(static_cast<std::size_t>(others), std::vector<Moments>(ranked));
  for (std::size_t t = 0; t < one.targets.size(); ++t) {
    for (std::size_t i = 0; i < ranked; ++i) {
      Moments& all = one.targets[t][i];
      all =
          sum(all, law.two(static_cast<std::int64_t>(i), of_targets, static_cast<std::int64_t>(t)),
              rate);
    }
  }
}

}  // namespace numemu::net::samples
