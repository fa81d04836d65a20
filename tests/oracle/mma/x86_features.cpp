// CPUID, XGETBV and, for AMX, the permission of the kernel.
#include "tests/oracle/mma/x86_features.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace numemu::oracle::mma {

#if defined(__x86_64__) && defined(__linux__)
namespace {

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Leaf leaf7(unsigned subleaf) {
  Leaf r;
  if (__get_cpuid_count(7, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

bool bit(unsigned word, int index) { return (word >> index & 1) != 0; }

/// Which register states the kernel saves.
std::uint64_t saved_states() {
  Leaf r;
  constexpr int kOsxsave = 27;
  if (__get_cpuid(1, &r.a, &r.b, &r.c, &r.d) == 0 || !bit(r.c, kOsxsave)) return 0;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

bool saves_zmm() { return (saved_states() & 0xe6) == 0xe6; }

/// Tile data is a state that a process must request (Linux, Documentation/x86/xstate.rst).
bool may_use_tiles() {
  constexpr std::uint64_t kTiles = 3u << 17;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  if ((saved_states() & kTiles) != kTiles) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_avx512() {
  constexpr int kF = 16, kBw = 30, kVl = 31;
  const unsigned b = leaf7(0).b;
  return bit(b, kF) && bit(b, kBw) && bit(b, kVl) && saves_zmm();
}

bool has_tiles() {
  constexpr int kAmxTile = 24;
  return bit(leaf7(0).d, kAmxTile) && has_avx512() && may_use_tiles();
}

}  // namespace

bool has_amx_bf16() { return bit(leaf7(0).d, 22) && has_tiles(); }
bool has_amx_int8() { return bit(leaf7(0).d, 25) && has_tiles(); }
bool has_avx512_bf16() { return bit(leaf7(1).a, 5) && has_avx512(); }
bool has_avx512_vnni() { return bit(leaf7(0).c, 11) && has_avx512(); }
bool has_avx512_fp16() { return bit(leaf7(0).d, 23) && has_avx512(); }
bool has_avx2() { return bit(leaf7(0).b, 5) && (saved_states() & 0x6) == 0x6; }
bool has_avx_vnni() { return bit(leaf7(1).a, 4) && has_avx2(); }
#else
bool has_amx_bf16() { return false; }
bool has_amx_int8() { return false; }
bool has_avx512_bf16() { return false; }
bool has_avx512_vnni() { return false; }
bool has_avx512_fp16() { return false; }
bool has_avx2() { return false; }
bool has_avx_vnni() { return false; }
#endif

}  // namespace numemu::oracle::mma
