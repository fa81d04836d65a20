#include "policies/numerics/random_identity.hpp"

#include <fmt/format.h>

#include "formats/digest.hpp"

namespace numemu::policies {

RandomSource operand_random(std::uint64_t seed, std::string_view layer, net::Role role,
                            std::int64_t step, net::GemmKind kind, std::int64_t repetition) {
  RandomSource source;
  source.seed = seed;
  source.stream = Stream::quantize;
  const std::string times = repetition == 0 ? "" : fmt::format(".{}", repetition);
  source.tensor = tensor_word(
      fmt::format("{}/{}/{}{}/{}", layer, net::to_string(role), step, times, net::to_string(kind)));
  return source;
}

RandomSource stored_random(std::uint64_t seed, std::string_view layer, std::string_view role,
                           const net::Step& step, std::string_view use) {
  const bool inference = step.phase == net::Phase::inference;
  const std::string part = inference || step.part == 0 ? "" : fmt::format(".{}", step.part);
  RandomSource source;
  source.seed = seed;
  source.tensor =
      tensor_word(fmt::format("{}/{}/{}{}/{}", layer, role, inference ? 0 : step.index, part, use));
  return source;
}

}  // namespace numemu::policies
