#include "experiments/engine/answers.hpp"

#include <algorithm>

#include "formats/storage/base64.hpp"

namespace numemu::experiments {

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
  if (n > kMostAnswers || text.size() > 4 * kMostAnswers) return std::nullopt;
  const std::optional<std::vector<std::uint8_t>> bytes = read_base64(text);
  if (!bytes || bytes->size() != (n + 7) / 8) return std::nullopt;
  std::vector<std::uint8_t> right(n);
  for (std::size_t i = 0; i < n; ++i) right[i] = (*bytes)[i / 8] >> i % 8 & 1;
  return right;
}

}  // namespace numemu::experiments
