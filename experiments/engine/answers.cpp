#include "experiments/engine/answers.hpp"

#include <algorithm>
#include <string_view>

namespace numemu::experiments {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 (RFC 4648) with padding.
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

}  // namespace

Json answers_json(const std::vector<std::uint8_t>& right) {
  const auto n = std::min<std::size_t>(right.size(), kMostAnswers);
  std::vector<std::uint8_t> bytes((n + 7) / 8);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i / 8] |= static_cast<std::uint8_t>((right[i] != 0 ? 1 : 0) << i % 8);
  return {{"n", n}, {"right", base64(bytes)}};
}

std::optional<std::vector<std::uint8_t>> read_answers(const Json& answers) {
  if (!answers.is_object() || !answers.contains("n") || !answers.contains("right") ||
      !answers["n"].is_number_unsigned() || !answers["right"].is_string())
    return std::nullopt;
  const auto n = answers["n"].get<std::uint64_t>();
  const auto text = answers["right"].get<std::string>();
  if (n > kMostAnswers || text.size() != ((n + 7) / 8 + 2) / 3 * 4) return std::nullopt;
  std::vector<std::uint8_t> right(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t byte = i / 8, group = byte / 3;
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char digit = text[4 * group + k];
      const std::size_t found = kDigits.find(digit);
      if (found == kDigits.npos && digit != '=') return std::nullopt;
      value = value << 6 | (found == kDigits.npos ? 0 : static_cast<std::uint32_t>(found));
    }
    right[i] = value >> (16 - 8 * (byte % 3)) >> i % 8 & 1;
  }
  return right;
}

}  // namespace numemu::experiments
