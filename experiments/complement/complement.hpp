// The complement entropy of a row of logits in closed form, in a format by division and by logits,
// and the accuracy of a network on attacked inputs.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/format.hpp"

namespace numemu::experiments::complement {

/// Of a row of logits, label g: q is the softmax over the others, 0 for g.
struct Row {
  std::vector<double> q;
  double entropy = 0;  ///< H = -sum q ln q
  double rest = 0;     ///< 1 - p_g, p the softmax over all

  /// dH/dz_k = -q_k (ln q_k + H), 0 for g.
  std::vector<double> slope() const;
};
Row complement_row(std::span<const float> logits, std::size_t label);

/// To nearest even.
double rounded(double x, const Format&);
/// Half a unit in the last place, relative to the smallest significand.
double unit_of(const Format&);

/// 1 - p_g + guard, each of p_g, the difference and the sum rounded to the format.
double denominator(const Row&, const Format&, double guard);
/// The entropy of q, q, ln q and their products rounded to the format, sums in float64. By division
/// q_j = p_j / denominator(), with p_j and the quotient rounded; by logits q is complement_row()'s.
double entropy_by_division(const Row&, const Format&, double guard);
double entropy_by_logits(const Row&, const Format&);

/// What division gives in closed form: with S = rest / denominator every q is S times too large,
/// -sum S q ln(S q) = S (H - ln S).
double predicted_by_division(const Row&, double denominator);
/// How far roundings take an entropy from that, at most, with so many roundings of each q: 2 by
/// division; by logits 1, the denominator being `rest`.
double rounding_bound(const Row&, const Format&, double denominator, int roundings);

/// Throws Error for a format that the closed forms do not serve.
void check_format(const std::string& name);
/// Throws Error for a setting `guard` that the setting `format` rounds to 0.
void check_guard(const Settings&);

/// The gradient of the objective beside closed form and central differences, and both ways in the
/// setting `format` by the margin of the label (settings classes, rows, margins, guard).
void add_closed_forms(const ExperimentRun&, Conclusion&);

struct Robust {
  std::vector<double> top1;   ///< per cent, by epsilon
  double rise = 0;            ///< of the mean loss at the first epsilon
  double predicted_rise = 0;  ///< epsilon times the sum of absolute gradients
  double lost = 0;            ///< share of images whose 1 - p_g is 0 in the format 1-6-9
};

/// Of the first test images, in float32: x + epsilon sign(dL/dx), L the cross-entropy, in the units
/// of the network's input, of which none is clipped. Gradients are those of a training step, so
/// batch normalisation sees the statistics of its batch.
Robust robustness(const net::Graph&, const net::Dataset&, std::int64_t images,
                  const std::vector<double>& epsilons);

}  // namespace numemu::experiments::complement
