#include "formats/storage/base64.hpp"

#include <algorithm>

namespace numemu {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(const std::vector<std::uint8_t>& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) { return i + k < bytes.size() ? bytes[i + k] : 0u; };
    const std::uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k < bytes.size() + 1 ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::vector<std::uint8_t>> read_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = i + padding < text.size() ? kDigits.find(text[i]) : 0;
    if (digit == kDigits.npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    for (int shift = 16; i % 4 == 3 && shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::uint8_t>(group >> shift));
  }
  bytes.resize(bytes.size() - padding);
  // Bits behind the last byte are zero in what base64() gives.
  return base64(bytes) == text ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace numemu
