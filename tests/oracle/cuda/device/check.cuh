// Errors of the CUDA runtime as exceptions that say what was tried.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace numemu::oracle::recording {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace numemu::oracle::recording
