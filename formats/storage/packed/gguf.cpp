// Layout as published by ggml (docs/gguf.md of github.com/ggml-org/ggml).
#include "formats/storage/packed/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "formats/error.hpp"
#include "formats/storage/packed/stored_numbers.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu {
namespace {

/// Types of ggml.h: elements and bytes of a block; 0: known by name only.
struct GgmlType {
  std::uint32_t type;
  std::string_view name;
  std::int64_t block, bytes;
};
constexpr std::array<GgmlType, 32> kGgmlTypes = {{
    {0, "F32", 1, 4},       {1, "F16", 1, 2},       {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},    {7, "Q5_1", 32, 24},    {8, "Q8_0", 32, 34},    {9, "Q8_1", 0, 0},
    {10, "Q2_K", 256, 84},  {11, "Q3_K", 256, 110}, {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210}, {15, "Q8_K", 0, 0},     {16, "IQ2_XXS", 0, 0},  {17, "IQ2_XS", 0, 0},
    {18, "IQ3_XXS", 0, 0},  {19, "IQ1_S", 0, 0},    {20, "IQ4_NL", 0, 0},   {21, "IQ3_S", 0, 0},
    {22, "IQ2_S", 0, 0},    {23, "IQ4_XS", 0, 0},   {24, "I8", 0, 0},       {25, "I16", 0, 0},
    {26, "I32", 0, 0},      {27, "I64", 0, 0},      {28, "F64", 0, 0},      {29, "IQ1_M", 0, 0},
    {30, "BF16", 1, 2},     {34, "TQ1_0", 0, 0},    {35, "TQ2_0", 0, 0},    {39, "MXFP4", 32, 17},
}};

const GgmlType* ggml_type(std::uint32_t type) {
  const auto found = std::ranges::find(kGgmlTypes, type, &GgmlType::type);
  return found == kGgmlTypes.end() ? nullptr : &*found;
}

/// Types of values in the metadata (gguf_metadata_value_type) and their bytes; 0: of other size.
constexpr std::array<int, 13> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::uint32_t kStringValue = 8, kArrayValue = 9, kUint32Value = 4;
constexpr int kDeepestArray = 4;
constexpr std::uint32_t kMostGgmlAxes = 4;
constexpr std::int64_t kUsualAlignment = 32, kLongestKey = 65535;

/// Little-endian parts of the header, front to back, read in pieces.
class GgufReader {
 public:
  explicit GgufReader(InputFile& file) : file_(file) {}

  std::int64_t position() const { return file_.position() - left_in_piece(); }
  std::int64_t left() const { return file_.left() + left_in_piece(); }
  [[noreturn]] void fail(const std::string& text) const { file_.fail_at(position(), text); }

  template <class T>
  T number() {
    require(sizeof(T), "a number");
    T value;
    take(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string text(const char* what) {
    const auto length = number<std::uint64_t>();
    require(length, what);
    std::string value(length, '\0');
    take(value.data(), static_cast<std::int64_t>(length));
    return value;
  }
  void skip(std::uint64_t count, const char* what) {
    require(count, what);
    const auto inside = static_cast<std::size_t>(
        std::min<std::uint64_t>(count, static_cast<std::uint64_t>(left_in_piece())));
    at_ += inside;
    file_.skip(static_cast<std::int64_t>(count - inside));
  }
  /// That many bytes are in the file.
  void require(std::uint64_t count, const char* what) const {
    if (count > static_cast<std::uint64_t>(left()))
      fail(fmt::format("expected {} for {}, found {} to the end of the file",
                       count > INT64_MAX ? "more than 2^63 bytes"
                                         : counted(static_cast<std::int64_t>(count), "byte"),
                       what, left()));
  }

 private:
  std::int64_t left_in_piece() const { return static_cast<std::int64_t>(piece_.size() - at_); }
  void take(char* out, std::int64_t count) {
    while (count > 0) {
      if (left_in_piece() == 0) {
        constexpr std::int64_t kPiece = 1 << 16;
        piece_ = file_.read(std::min(kPiece, file_.left()));
        at_ = 0;
      }
      const std::int64_t now = std::min(count, left_in_piece());
      std::memcpy(out, piece_.data() + at_, static_cast<std::size_t>(now));
      at_ += static_cast<std::size_t>(now);
      out += now;
      count -= now;
    }
  }

  InputFile& file_;
  std::string piece_;
  std::size_t at_ = 0;
};

void skip_value(GgufReader& in, std::uint32_t type, int depth) {
  if (type >= kValueBytes.size())
    in.fail(fmt::format("expected a type of values from 0 to 12, found {}", type));
  if (type == kStringValue) {
    in.skip(in.number<std::uint64_t>(), "a string");
  } else if (type == kArrayValue) {
    if (depth == kDeepestArray)
      in.fail(fmt::format("expected arrays in arrays at most {} deep", kDeepestArray));
    const auto of = in.number<std::uint32_t>();
    const auto count = in.number<std::uint64_t>();
    in.require(count, "an array");  // a byte or more each
    if (of < kValueBytes.size() && kValueBytes[of] > 0)
      return in.skip(count * static_cast<std::uint64_t>(kValueBytes[of]), "an array");
    for (std::uint64_t i = 0; i < count; ++i) skip_value(in, of, depth + 1);
  } else {
    in.skip(static_cast<std::uint64_t>(kValueBytes[type]), "a value");
  }
}

std::string where_of(const GgufEntry& entry) { return "tensor " + quote_name(entry.name) + ": "; }

GgufEntry read_entry(GgufReader& in) {
  GgufEntry entry;
  entry.described = in.position();
  entry.name = in.text("the name of a tensor");
  const auto axes = in.number<std::uint32_t>();
  if (axes > kMostGgmlAxes)
    in.fail(where_of(entry) +
            fmt::format("expected at most {} axes, found {}", kMostGgmlAxes, axes));
  for (std::uint32_t i = 0; i < axes; ++i) {
    const auto extent = in.number<std::uint64_t>();
    if (extent > INT64_MAX) in.fail(where_of(entry) + "expected extents of 0..2^63-1");
    entry.shape.insert(entry.shape.begin(), static_cast<std::int64_t>(extent));
  }
  entry.type = in.number<std::uint32_t>();
  const auto offset = in.number<std::uint64_t>();
  if (offset > INT64_MAX) in.fail(where_of(entry) + "expected an offset of 0..2^63-1");
  entry.begin = static_cast<std::int64_t>(offset);
  const std::optional<std::int64_t> elements = element_count_of(entry.shape);
  if (!elements)
    in.fail(where_of(entry) + fmt::format("shape: expected fewer than 2^63 elements, found {}",
                                          shape_text(entry.shape)));
  entry.elements = *elements;
  return entry;
}

/// Offsets count from the first aligned byte after the header.
void place(InputFile& file, GgufHeader& header, std::int64_t end, std::int64_t alignment) {
  const std::int64_t size = file.position() + file.left();
  const std::int64_t first = (end + alignment - 1) / alignment * alignment;
  std::vector<const GgufEntry*> in_order;
  for (GgufEntry& entry : header.entries) {
    const auto fail = [&](const std::string& text) {
      file.fail_at(entry.described, where_of(entry) + text);
    };
    if (entry.begin % alignment != 0)
      fail(fmt::format("offset: expected a multiple of {}, found {}", alignment, entry.begin));
    const GgmlType* const type = ggml_type(entry.type);
    const bool known = type != nullptr && type->block > 0;
    if (known && (entry.shape.empty() ? 1 : entry.shape.back()) % type->block != 0)
      fail(fmt::format("shape: expected a last axis of whole blocks of {} for {}, found {}",
                       type->block, type->name, shape_text(entry.shape)));
    const std::int64_t bytes =
        known ? ggml_bytes(entry.type, entry.elements).value_or(INT64_MAX) : 0;
    const std::int64_t left = size - std::min(size, first);
    if (entry.begin > left || bytes > left - entry.begin)
      fail(fmt::format("expected {} at offset {} of the data, found {} of data",
                       bytes == INT64_MAX ? "more than 2^62 bytes" : counted(bytes, "byte"),
                       entry.begin, left));
    entry.begin += first;
    if (bytes > 0) in_order.push_back(&entry);
  }
  std::ranges::sort(in_order, {}, &GgufEntry::begin);
  for (std::size_t i = 1; i < in_order.size(); ++i) {
    const GgufEntry &before = *in_order[i - 1], &entry = *in_order[i];
    if (before.begin + *ggml_bytes(before.type, before.elements) > entry.begin)
      file.fail_at(entry.described, where_of(entry) + "expected bytes of its own, they overlap " +
                                        where_of(before).substr(0, where_of(before).size() - 2));
  }
}

}  // namespace

std::optional<std::int64_t> ggml_bytes(std::uint32_t type, std::int64_t elements) {
  const GgmlType* const found = ggml_type(type);
  if (found == nullptr || found->block == 0 || elements % found->block != 0) return std::nullopt;
  const std::int64_t blocks = elements / found->block;
  if (blocks > (INT64_MAX >> 1) / found->bytes) return std::nullopt;
  return blocks * found->bytes;
}

std::int64_t ggml_block(std::uint32_t type) { return ggml_type(type)->block; }

std::string ggml_type_name(std::uint32_t type) {
  const GgmlType* const found = ggml_type(type);
  return found == nullptr ? fmt::format("type {}", type) : std::string(found->name);
}

GgufHeader read_gguf_header(InputFile& file) {
  GgufReader in(file);
  in.require(4, "the word GGUF");
  const auto magic = in.number<std::uint32_t>();
  if (std::memcmp(&magic, "GGUF", sizeof magic) != 0) file.fail_at(0, "expected the word GGUF");
  const auto version = in.number<std::uint32_t>();
  if (version != 2 && version != 3)
    file.fail_at(4,
                 fmt::format("expected version 2 or 3 of GGUF, little-endian, found {}", version));
  const auto tensors = in.number<std::uint64_t>(), values = in.number<std::uint64_t>();
  GgufHeader header;
  std::int64_t alignment = kUsualAlignment;
  std::set<std::string> names;
  in.require(values, "the metadata");  // a byte or more each
  for (std::uint64_t i = 0; i < values; ++i) {
    const std::int64_t at = in.position();
    const std::string key = in.text("a key");
    if (std::ssize(key) > kLongestKey)
      file.fail_at(at, fmt::format("expected a key of at most {} bytes", kLongestKey));
    if (!names.insert(key).second)
      file.fail_at(at, fmt::format("expected each key once, found {} twice", quote_name(key)));
    const auto type = in.number<std::uint32_t>();
    if (key == "general.alignment") {
      const auto given = type == kUint32Value ? in.number<std::uint32_t>() : 0;
      if (given == 0 || given % 8 != 0 || given > (1U << 30))
        file.fail_at(at, "general.alignment: expected a uint32, a multiple of 8 up to 2^30");
      alignment = given;
    } else if (type == kStringValue) {
      header.metadata.emplace_back(key, in.text("a string"));
    } else {
      skip_value(in, type, 0);
    }
  }
  names.clear();
  in.require(tensors, "the tensors");
  for (std::uint64_t i = 0; i < tensors; ++i) {
    header.entries.push_back(read_entry(in));
    const GgufEntry& entry = header.entries.back();
    if (!names.insert(entry.name).second)
      file.fail_at(entry.described,
                   fmt::format("expected each name once, found {} twice", quote_name(entry.name)));
  }
  std::ranges::sort(header.metadata);
  place(file, header, in.position(), alignment);
  return header;
}

namespace {

// Block layouts as published in ggml-common.h and ggml-quants.c (github.com/ggml-org/llama.cpp).
// Products of a float16, a scale of at most 8 bits and a code are exact in float64, and so are
// their differences from a minimum: each number is rounded once.

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
