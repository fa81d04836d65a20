// The GPU in hand as a Machine: copies tiles there, launches the instruction's kernel, copies D
// back.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/oracle/cuda/ask/ask_conversion.hpp"
#include "tests/oracle/cuda/ask/machine.hpp"
#include "tests/oracle/cuda/device/cvt.cuh"
#include "tests/oracle/cuda/device/kernel.cuh"

namespace numemu::oracle::recording {

/// What the driver says of a device.
struct GpuIdentity {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  int capability;    ///< 10 major + minor
  int driver;        ///< CUDA version of the driver, 1000 major + 10 minor
  int runtime;       ///< CUDA version the program was built with
};
/// Throws std::runtime_error where there is no GPU.
GpuIdentity gpu_identity();

/// Every kernel this compiler could build, in the order of instructions.def.
std::vector<Kernel> kernels();

/// The kernels of the GPU in hand; throws std::runtime_error where there is none.
std::unique_ptr<Machine> gpu_machine();

/// Its conversions.
Converter gpu_converter();

}  // namespace numemu::oracle::recording
