// Chains of fused multiply-adds, k ascending: the fast path of every unit that is such a chain, of
// float32 or float64 alone the whole product.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// One side of a product: element (r, k) = values[row[r] + depth[k]].
template <class T>
struct ChainSide {
  const T* values = nullptr;
  const std::int32_t* row = nullptr;
  const std::int32_t* depth = nullptr;
};

/// d[i * n + j] = fma(a(i, k-1), b(j, k-1), ... fma(a(i, 0), b(j, 0), c[i * n + j])), every fma
/// rounded to T, RNE. Out float: the chain rounded once to float32, NaN 0x7fc00000. Out double (T
/// double only): the chain as it is, where chain_fuses().
template <class T, class Out>
struct Chain {
  std::int64_t m = 0, n = 0, k = 0;
  ChainSide<T> a, b;
  const Out* c = nullptr;  ///< m x n row-major, or null for +0
  Out* d = nullptr;        ///< m x n row-major
};

/// Runs over OpenMP threads unless the problem is small or a parallel region is active; same bits
/// either way. Without chain_fuses(), T double assumes that no product and no partial sum needs
/// rounding, so that fused or not is the same.
void run_chain(const Chain<float, float>&);
void run_chain(const Chain<double, float>&);
void run_chain(const Chain<double, double>&);

/// Whether float64 multiply-adds are fused on this CPU (float32 ones always are).
bool chain_fuses();

/// The instruction set run_chain uses on this machine ("AVX3", "AVX2", "NEON"...).
std::string chain_target();

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kFloatChainFields[] = {"core", "accumulator.format", "c", "d",
                                                         "nan_code"};

/// Covers the chain core with a float32 or float64 register, every multiply-add rounded to nearest
/// even, subnormals kept and one NaN. False where it does not apply.
bool multiply_float_chain(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
