// A gate: the accuracy that a row must reach, with a verdict of three values at 99 %.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// A quality target: METRIC at least (or at most) `bound`, or `bound` times float32's METRIC on the
/// same samples.
struct Gate {
  std::string text;    ///< "top1 >= 0.99 float32"
  std::string metric;  ///< a name of net::score_names()
  bool at_least = true, relative = true;
  double bound = 1;
};

/// A published target by name.
struct GatePreset {
  std::string_view name, metric;
  double share;  ///< of float32's metric
  std::string_view source;
};
std::span<const GatePreset> gate_presets();

/// "0.99" (the share of float32's top-1), "METRIC>=0.76", "METRIC<=2", "METRIC>=0.99*float32", or
/// the name of a preset. Throws Error with the nearest known name.
Gate parse_gate(const std::string& text);

/// Adds `gate` to the row: target, metric, value, required, margin (value - required, negated where
/// less is better), margin_ci99, images, images_needed and verdict (pass, fail, undecided). A
/// pass has its whole interval at 0 or above, a fail below 0.
///
/// A share of samples that are right or wrong is paired by sample: the interval is that of the mean
/// of right - bound right_float32, by the row's counts. Of other scores, and of rows from before
/// they had counts, it comes from the row's intervals of the difference and of the value; their
/// half-lengths are added, which is never too short. `images` counts samples: windows of a text,
/// images of class maps. `images_needed`: the least number of samples at which that interval
/// decides if the observed shares stay as they are, more than `images` while undecided; null where
/// no number does (a margin of 0) or none is known (no interval). Throws Error where the row lacks
/// the metric, and for a share of float32 where the row's baseline has quantizers (its
/// `baseline_has`).
void judge_gate(const Gate&, Row&);

/// Throws Error for a share of float32 where the network that is called float32 has `quantizers`
/// (policies::own_quantizers(); "" for none).
void require_float32(const Gate&, const std::string& quantizers);

}  // namespace numemu::experiments
