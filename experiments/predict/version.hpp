// The version of predicted figures in rows; measured ones have that of the numerics.
#pragma once

namespace numemu::experiments {

/// 1 (rows without `predicted.version`): float32 gains, linear. 2: noise of random phase.
inline constexpr int kPredictionVersion = 2;

}  // namespace numemu::experiments
