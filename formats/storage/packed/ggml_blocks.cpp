// Block layouts as published in ggml-common.h and ggml-quants.c (github.com/ggml-org/llama.cpp).
// Products of a float16, a scale of at most 8 bits and a code are exact in float64, and so are
// their differences from a minimum: each number is rounded once.
#include "formats/storage/packed/ggml_blocks.hpp"

#include <cmath>
#include <cstring>

#include "formats/storage/packed/numbers.hpp"

namespace numemu {
namespace {

constexpr int kBlock = 32, kSuper = 256;

template <class T>
T loaded(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double half_at(const std::uint8_t* from) { return half_value(loaded<std::uint16_t>(from)); }

/// Element i of 32 codes of 4 bits: the first half in the low ends of the bytes.
int nibble_at(const std::uint8_t* codes, int i) {
  return i < kBlock / 2 ? codes[i] & 15 : codes[i - kBlock / 2] >> 4;
}

/// value(q) of 32 codes of 4 bits, with a fifth one each where `fifth` has them.
template <class Number>
void decode_32(const std::uint8_t* codes, const std::uint8_t* fifth, float* out,
               const Number& value) {
  const std::uint32_t high = fifth == nullptr ? 0 : loaded<std::uint32_t>(fifth);
  for (int i = 0; i < kBlock; ++i)
    out[i] = static_cast<float>(value(nibble_at(codes, i) | static_cast<int>(high >> i & 1) << 4));
}

/// Scale and minimum j of 8, of 6 bits each: the first four in the low bits of bytes 0..3 and 4..7,
/// the others in bytes 8..11 and the high bits of those.
struct ScalePair {
  int scale, minimum;
};
ScalePair scale_pair(const std::uint8_t* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | s[j - 4] >> 6 << 4, s[j + 4] >> 4 | s[j] >> 6 << 4};
}

/// Q4_K, and Q5_K with fifth bits: bit j of byte i for element i of the sub-block j.
bool decode_k(const std::uint8_t* block, const std::uint8_t* fifth, const std::uint8_t* codes,
              float* out) {
  const double d = half_at(block), least = half_at(block + 2);
  if (!std::isfinite(d) || !std::isfinite(least)) return false;
  for (int j = 0; j < kSuper / kBlock; ++j) {
    const ScalePair pair = scale_pair(block + 4, j);
    const std::uint8_t* const own = codes + j / 2 * kBlock;
    for (int i = 0; i < kBlock; ++i) {
      int code = j % 2 == 0 ? own[i] & 15 : own[i] >> 4;
      if (fifth != nullptr) code |= (fifth[i] >> j & 1) << 4;
      *out++ = static_cast<float>(d * pair.scale * code - least * pair.minimum);
    }
  }
  return true;
}

/// Place of element i among codes of 2 bits: of each half of 128, four parts of 32 share bytes.
struct TwoBits {
  int half, quarter, lane;
  explicit TwoBits(int i) : half(i / 128), quarter(i % 128 / 32), lane(i % 32) {}
  int at(const std::uint8_t* codes) const { return codes[32 * half + lane] >> 2 * quarter & 3; }
};

/// Q2_K: a scale and a minimum of 4 bits for 16, in a byte.
bool decode_q2_k(const std::uint8_t* block, float* out) {
  const double d = half_at(block + 80), least = half_at(block + 82);
  if (!std::isfinite(d) || !std::isfinite(least)) return false;
  for (int i = 0; i < kSuper; ++i) {
    const int pair = block[i / 16];
    out[i] = static_cast<float>(d * (pair & 15) * TwoBits(i).at(block + 16) - least * (pair >> 4));
  }
  return true;
}

/// Q3_K: third bits in front, bit 4 half + quarter of a byte for each lane; scale j of 16 has its
/// low 4 bits in the bytes 0..7, 8 to 15 in their high ends, and 2 bits in the bytes 8..11.
bool decode_q3_k(const std::uint8_t* block, float* out) {
  const std::uint8_t *third = block, *codes = block + 32, *scales = block + 96;
  const double d = half_at(block + 108);
  if (!std::isfinite(d)) return false;
  for (int i = 0; i < kSuper; ++i) {
    const int j = i / 16;
    const int scale = (scales[j % 8] >> (j < 8 ? 0 : 4) & 15) | (scales[8 + j % 4] >> j / 4 * 2 & 3)
                                                                    << 4;
    const TwoBits place(i);
    const int code = place.at(codes) | (third[place.lane] >> (4 * place.half + place.quarter) & 1)
                                           << 2;
    out[i] = static_cast<float>(d * (scale - 32) * (code - 4));
  }
  return true;
}

/// Two halves of 128: low 4 bits in 64 bytes, high 2 bits in 32, an int8 scale for 16.
bool decode_q6_k(const std::uint8_t* block, float* out) {
  const std::uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const double d = half_at(block + 208);
  if (!std::isfinite(d)) return false;
  for (int i = 0; i < kSuper; ++i) {
    const int half = i / 128, within = i % 128, quarter = within / 32, lane = within % 32;
    const int byte = low[64 * half + 32 * (quarter % 2) + lane];
    const int code =
        (quarter < 2 ? byte & 15 : byte >> 4) | (high[32 * half + lane] >> 2 * quarter & 3) << 4;
    out[i] = static_cast<float>(d * static_cast<std::int8_t>(scales[i / 16]) * (code - 32));
  }
  return true;
}

}  // namespace

bool decode_ggml_block(std::uint32_t type, const std::uint8_t* block, float* out) {
  switch (type) {
    case 0:
      *out = loaded<float>(block);
      return true;
    case 1:
      *out = static_cast<float>(half_at(block));
      return true;
    case 30:
      *out = brain_value(loaded<std::uint16_t>(block));
      return true;
    case 10:
      return decode_q2_k(block, out);
    case 11:
      return decode_q3_k(block, out);
    case 12:
      return decode_k(block, nullptr, block + 16, out);
    case 13:
      return decode_k(block, block + 16, block + 48, out);
    case 14:
      return decode_q6_k(block, out);
    case 39: {
      if (block[0] == 255) return false;  // NaN of E8M0
      const double scale = power_of_two(block[0] - 127);
      for (int i = 0; i < kBlock; ++i)
        out[i] = static_cast<float>(e2m1_values()[nibble_at(block + 1, i)] * scale);
      return true;
    }
    default:
      break;
  }
  const double d = half_at(block), m = type == 3 || type == 7 ? half_at(block + 2) : 0;
  if (!std::isfinite(d) || !std::isfinite(m)) return false;
  const auto less = [d](int zero) { return [d, zero](int q) { return (q - zero) * d; }; };
  const auto above = [d, m](int q) { return q * d + m; };
  switch (type) {
    case 2:
      decode_32(block + 2, nullptr, out, less(8));
      break;
    case 3:
      decode_32(block + 4, nullptr, out, above);
      break;
    case 6:
      decode_32(block + 6, block + 2, out, less(16));
      break;
    case 7:
      decode_32(block + 8, block + 4, out, above);
      break;
    default:  // 8
      for (int i = 0; i < kBlock; ++i)
        out[i] = static_cast<float>(static_cast<std::int8_t>(block[2 + i]) * d);
  }
  return true;
}

}  // namespace numemu
