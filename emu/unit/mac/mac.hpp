// Multiply-adds that are each rounded to a small register: the fast path of CoreKind::chain.
#pragma once
#include <string_view>

#include "emu/unit/description.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// The fields of a description that it understands (fast_paths.hpp).
inline constexpr std::string_view kMacFields[] = {"core",
                                                  "group",
                                                  "accumulator.format",
                                                  "accumulator.rounding",
                                                  "accumulator.overflow",
                                                  "accumulator.bits",
                                                  "accumulator.fraction",
                                                  "accumulator.integer_overflow",
                                                  "c",
                                                  "d",
                                                  "chain.chunk",
                                                  "nan_code"};

/// D = A x B + C as ReferenceDot computes it, over OpenMP threads. False, and nothing is written,
/// where the product is not one that the vector loops are proven for:
/// - another core than `chain`, steps of several products;
/// - C or D do not fit float32; a floating register that is unsigned, has no mantissa bits or no
///   subnormals (FieldZero other than `subnormal`), or does not fit float32; a two's complement
///   register of more than 32 bits;
/// - sr(n) with M + n (variant b: M + n + 1) above 50, M the register's mantissa bits (two's
///   complement with a fraction to cut: its bits less one);
/// - operands beyond a float32's 24 bits, or with exponents whose products leave a float64;
/// - a two's complement register with NaN or infinity among the operands, or with products so large
///   that a float64 cannot round them (more than about 2^(50 - n) units in the last place).
bool multiply_mac(const UnitDescription&, const Gemm&);

}  // namespace numemu::unit
