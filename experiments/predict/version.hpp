// The version of predicted figures in rows; measured ones have that of the numerics.
#pragma once

namespace numemu::experiments {

/// 1 (rows without `predicted.version`): float32 gains, linear. 2: noise of random phase.
/// 3: weights matched in three sums. 4: the error of the SQNR is that of a ratio.
inline constexpr int kPredictionVersion = 4;

}  // namespace numemu::experiments
