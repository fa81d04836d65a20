// Which test samples a row got right, as bits: what two rows are paired by.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// Bits of a row: those of its first samples, at most 1,668 characters.
inline constexpr std::int64_t kMostAnswers = 10000;

/// `right` is base64 of ceil(n / 8) bytes, sample i in bit i mod 8 (from the lowest) of byte i / 8;
/// one entry a sample.
RowAnswers row_answers(const std::vector<std::uint8_t>& right);
/// One entry a sample; nothing where `answers` is none.
std::optional<std::vector<std::uint8_t>> read_answers(const RowAnswers&);

}  // namespace numemu::experiments
