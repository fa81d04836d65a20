#include "experiments/engine/answers.hpp"

#include <algorithm>

#include "formats/storage/base64.hpp"

namespace numemu::experiments {

RowAnswers row_answers(const std::vector<std::uint8_t>& right) {
  const auto n = std::min<std::size_t>(right.size(), kMostAnswers);
  std::vector<std::uint8_t> bytes((n + 7) / 8);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i / 8] |= static_cast<std::uint8_t>((right[i] != 0 ? 1 : 0) << i % 8);
  return {n, base64(bytes)};
}

std::optional<std::vector<std::uint8_t>> read_answers(const RowAnswers& answers) {
  const std::uint64_t n = answers.n;
  if (n > kMostAnswers || answers.right.size() > 4 * kMostAnswers) return std::nullopt;
  const std::optional<std::vector<std::uint8_t>> bytes = read_base64(answers.right);
  if (!bytes || bytes->size() != (n + 7) / 8) return std::nullopt;
  std::vector<std::uint8_t> right(n);
  for (std::size_t i = 0; i < n; ++i) right[i] = (*bytes)[i / 8] >> i % 8 & 1;
  return right;
}

}  // namespace numemu::experiments
