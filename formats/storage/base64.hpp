// Bytes as text in base64 (RFC 4648, with padding).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numemu {

std::string base64(const std::vector<std::uint8_t>& bytes);

/// The bytes that base64() gives the text for; nothing for any other text.
std::optional<std::vector<std::uint8_t>> read_base64(std::string_view text);

}  // namespace numemu
