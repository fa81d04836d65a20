// Data sets with more calibration samples than the 512 that most keep.
#pragma once
#include <cstdint>

#include "emu/net/data/dataset.hpp"

namespace numemu::net {

/// The set with its first `count` training samples as calibration samples. Throws Error for none or
/// for more than there are.
Dataset with_calibration(const Dataset&, std::int64_t count);

}  // namespace numemu::net
