// AMX tile products, for comparison with the emulated ones.
#include <cstdint>
#include <cstring>

#include "tests/oracle/mma/x86_instructions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numemu::oracle::mma {

#if defined(__x86_64__)
namespace {

constexpr int kRows = 16, kRowBytes = 64;

/// Palette 1: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

/// B[k][16] of elements of `size` bytes in the layout of AMX: the 4 / size neighbours in k of a
/// column side by side.
void interleave(const void* b, int size, std::uint8_t* out) {
  const auto* in = static_cast<const std::uint8_t*>(b);
  const int together = 4 / size, depth = kRows * together;
  for (int k = 0; k < depth; ++k) {
    for (int j = 0; j < kRows; ++j) {
      std::memcpy(out + k / together * kRowBytes + j * 4 + k % together * size,
                  in + (k * kRows + j) * size, static_cast<std::size_t>(size));
    }
  }
}

enum class Product { bf16, ssd, sud, usd, uud };

template <Product kProduct>
__attribute__((target("amx-tile,amx-bf16,amx-int8"))) void tile_product(const void* a,
                                                                        const void* b,
                                                                        const void* c, void* d) {
  alignas(64) std::uint8_t columns[kRows * kRowBytes];
  interleave(b, kProduct == Product::bf16 ? 2 : 1, columns);
  TileConfiguration configuration;
  for (int tile = 0; tile < 3; ++tile) {
    configuration.row_bytes[tile] = kRowBytes;
    configuration.rows[tile] = kRows;
  }
  // The intrinsics name addresses, not the memory behind them.
  asm volatile("" : : "r"(columns), "r"(&configuration), "r"(a), "r"(c) : "memory");
  _tile_loadconfig(&configuration);
  _tile_loadd(0, c, kRowBytes);
  _tile_loadd(1, a, kRowBytes);
  _tile_loadd(2, columns, kRowBytes);
  if constexpr (kProduct == Product::bf16) _tile_dpbf16ps(0, 1, 2);
  if constexpr (kProduct == Product::ssd) _tile_dpbssd(0, 1, 2);
  if constexpr (kProduct == Product::sud) _tile_dpbsud(0, 1, 2);
  if constexpr (kProduct == Product::usd) _tile_dpbusd(0, 1, 2);
  if constexpr (kProduct == Product::uud) _tile_dpbuud(0, 1, 2);
  _tile_stored(0, d, kRowBytes);
  asm volatile("" : : : "memory");
  _tile_release();
}

}  // namespace

void run_tdpbf16ps(const void* a, const void* b, const void* c, void* d) {
  tile_product<Product::bf16>(a, b, c, d);
}
void run_tdpbssd(const void* a, const void* b, const void* c, void* d) {
  tile_product<Product::ssd>(a, b, c, d);
}
void run_tdpbsud(const void* a, const void* b, const void* c, void* d) {
  tile_product<Product::sud>(a, b, c, d);
}
void run_tdpbusd(const void* a, const void* b, const void* c, void* d) {
  tile_product<Product::usd>(a, b, c, d);
}
void run_tdpbuud(const void* a, const void* b, const void* c, void* d) {
  tile_product<Product::uud>(a, b, c, d);
}
#else
void run_tdpbf16ps(const void*, const void*, const void*, void*) {}
void run_tdpbssd(const void*, const void*, const void*, void*) {}
void run_tdpbsud(const void*, const void*, const void*, void*) {}
void run_tdpbusd(const void*, const void*, const void*, void*) {}
void run_tdpbuud(const void*, const void*, const void*, void*) {}
#endif

}  // namespace numemu::oracle::mma
