// The yardsticks; this file alone is compiled with -march=native.
#include "bench/native_yardsticks.hpp"

#include <time.h>

#include <cmath>

// Another namespace than the library's Eigen: the linker would otherwise merge functions built for
// different CPUs.
#define Eigen EigenNative
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>

namespace numemu::bench {

void eigen_native(const float* a, const float* b, float* d, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Matrix>(d, m, n).noalias() =
      Eigen::Map<const Matrix>(a, m, k) * Eigen::Map<const Matrix>(b, k, n);
}

void chain_native(const float* a, const float* b, float* d, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
  for (std::int64_t i = 0; i < m; ++i) {
    float* out = d + i * n;
    for (std::int64_t j = 0; j < n; ++j) out[j] = 0;
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t j = 0; j < n; ++j) out[j] = std::fma(a[i * k + l], b[l * n + j], out[j]);
    }
  }
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

namespace {

#if defined(__AVX512F__)
using Vector = __m512;
Vector broadcast(float x) { return _mm512_set1_ps(x); }
Vector fused(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__FMA__)
using Vector = __m256;
Vector broadcast(float x) { return _mm256_set1_ps(x); }
Vector fused(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#else
using Vector = float;
Vector broadcast(float x) { return x; }
Vector fused(Vector a, Vector b, Vector c) { return std::fma(a, b, c); }
#endif

}  // namespace

double fma_ceiling() {
  constexpr int kChains = 12,
                kRounds = 200'000;  // more chains than latency times ports; about 1 ms
  Vector sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = broadcast(static_cast<float>(c));
  const Vector factor = broadcast(0.999f), term = broadcast(1e-3f);
  const double start = thread_seconds();
  for (int r = 0; r < kRounds; ++r) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = fused(sums[c], factor, term);
  }
  Vector total = sums[0];
  for (int c = 1; c < kChains; ++c) total = fused(total, factor, sums[c]);
  volatile Vector keep = total;
  (void)keep;
  const double seconds = thread_seconds() - start;
  return static_cast<double>(sizeof(Vector) / sizeof(float)) * kChains * kRounds / seconds;
}

}  // namespace numemu::bench
