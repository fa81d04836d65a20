// Upper bounds of this machine: Eigen and a loop of FMAs, built with -march=native.
#pragma once
#include <cstdint>

namespace numemu::bench {

/// d (m x n) = a (m x k) x b (k x n), all row-major float32, by Eigen on one thread.
void eigen_native(const float* a, const float* b, float* d, std::int64_t m, std::int64_t n,
                  std::int64_t k);

/// eigen_native() as chains of std::fma, k ascending: what neutral.f32.sequential must equal in
/// every bit.
void chain_native(const float* a, const float* b, float* d, std::int64_t m, std::int64_t n,
                  std::int64_t k);

/// Processor time of the calling thread in seconds: unlike the wall clock it does not count other
/// programs' turns.
double thread_seconds();

/// Multiply-adds per second of independent float32 vector FMAs that touch no memory: the ceiling of
/// the moment.
double fma_ceiling();

}  // namespace numemu::bench
