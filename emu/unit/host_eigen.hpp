// The unit host.eigen.f32: whatever Eigen's float product does on this CPU.
#pragma once
#include <memory>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

std::unique_ptr<Unit> make_host_eigen_f32();

}  // namespace numemu::unit
