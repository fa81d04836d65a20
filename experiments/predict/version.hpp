// The version of predicted figures in rows; measured ones have that of the numerics.
#pragma once

namespace numemu::experiments {

/// 1 (rows without `predicted.version`): float32 gains, linear. 2: noise of random phase.
/// 3: weights matched in three sums. 4: the error of the SQNR is that of a ratio.
/// 5: no figure where a unit adds noise or may overflow; measured on up to 256 samples.
/// 6: portable functions; no figure where a register overflowed on the way.
/// 7: the noise of units is part of every figure.
/// 8: accuracy, loss and changed answers.
/// 9: numbers that many elements are have the errors of their rounding; blocks of dependent
/// elements; verdicts fail beyond 1 dB.
/// 10: accuracy on samples drawn by their margins; intervals by the spread of draws, whose samples
/// share phases.
/// 11: sums that are one number in many places have one error of the unit.
/// 12: samples are drawn by the margins of their answers, not of their labels.
/// 13: the floor of the loss counts what samples gain and lose; tiles have predictions.
inline constexpr int kPredictionVersion = 13;

/// Whether figures of that version leave out what units add.
inline constexpr bool ignores_units(int version) { return version < 7; }

}  // namespace numemu::experiments
