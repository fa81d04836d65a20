// The complement entropy of a row of logits in closed form, and in a format by division and by
// logits.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "formats/format.hpp"

namespace numemu::experiments::complement {

/// Of a row of logits, label g: q is the softmax over the others, 0 for g.
struct Row {
  std::vector<double> q;
  double entropy = 0;  ///< H = -sum q ln q
  double rest = 0;     ///< 1 - p_g, p the softmax over all
  double terms = 0;    ///< sum of q abs(ln q): what roundings of the terms are relative to

  /// dH/dz_k = -q_k (ln q_k + H), 0 for g.
  std::vector<double> slope() const;
};
Row complement_row(std::span<const float> logits, std::size_t label);

/// q, ln q and their products, each rounded to the format; sums are float64.
/// By division q_j = p_j / (1 - p_g + guard), each of p_j, the difference, the denominator and the
/// quotient rounded; by logits the format gets q of complement_row().
double entropy_by_division(const Row&, std::span<const float> logits, std::size_t label,
                           const Format&, double guard);
double entropy_by_logits(const Row&, const Format&);
/// 1 - p_g + guard as entropy_by_division() divides by it.
double denominator(const Row&, const Format&, double guard);

/// What division gives in closed form: with S = rest / denominator every q is S times too large,
/// -sum S q ln(S q) = S (H - ln S).
double predicted_by_division(const Row&, double denominator);
/// How far roundings take it from that, at most, and an entropy by logits (S = 1) from H.
double division_bound(const Row&, const Format&, double denominator);
double logits_bound(const Row&, const Format&);

/// The gradient of the objective beside closed form and central differences, and both ways in the
/// format `division_format` by the margin of the label (settings classes, rows, margins, guard).
void add_closed_forms(const ExperimentRun&, Conclusion&);

}  // namespace numemu::experiments::complement
