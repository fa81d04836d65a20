// Which test samples a row got right, as bits: what two rows are paired by.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// Bits of a row: those of its first samples, at most 1,668 characters.
inline constexpr std::int64_t kMostAnswers = 10000;

/// {"n", "right"}: `right` is base64 of ceil(n / 8) bytes, sample i in bit i mod 8 (from the
/// lowest) of byte i / 8; one entry a sample.
Json answers_json(const std::vector<std::uint8_t>& right);
/// One entry a sample; nothing where `answers` is none.
std::optional<std::vector<std::uint8_t>> read_answers(const Json& answers);

}  // namespace numemu::experiments
