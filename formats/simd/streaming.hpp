// When results are written past the caches.
#pragma once
#include <cstdint>

namespace numemu::simd {

/// n results of 4 bytes from `out` on: more than a second-level cache holds, and aligned to a cache
/// line, as streaming stores require.
inline bool worth_streaming(const void* out, std::int64_t n) {
  constexpr std::int64_t kLeast = std::int64_t{1} << 22;
  constexpr std::uintptr_t kLine = 64;
  return n >= kLeast && reinterpret_cast<std::uintptr_t>(out) % kLine == 0;
}

}  // namespace numemu::simd
