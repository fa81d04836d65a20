// The setting `granularity`: how many scales the weights of a tried format have.
#pragma once
#include <string>

#include "experiments/engine/experiment.hpp"

namespace numemu::experiments {

/// The setting's row: per channel by default, as the shipped recipes have it.
inline constexpr Setting kWeightGranularity = {
    "granularity", "channel", "channel", "channel",
    "scales of weights whose format is no block format: channel (one each) or tensor"};
/// "channel" or "tensor". Throws Error naming the setting.
const std::string& weight_granularity(const Settings&);
/// A role of an element format gets that granularity if it is the weight's; a block format keeps
/// its own. False where nothing was set.
bool set_weight_granularity(Json& role, const char* name, const std::string& granularity,
                            const std::string& where);

}  // namespace numemu::experiments
