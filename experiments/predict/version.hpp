// The version of predicted figures in rows; measured ones have that of the numerics.
#pragma once

namespace numemu::experiments {

/// 1 (rows without `predicted.version`): float32 gains, linear. 2: noise of random phase.
/// 3: weights matched in three sums. 4: the error of the SQNR is that of a ratio.
/// 5: no figure where a unit adds noise or may overflow; measured on up to 256 samples.
/// 6: portable functions; no figure where a register overflowed on the way.
inline constexpr int kPredictionVersion = 6;

}  // namespace numemu::experiments
