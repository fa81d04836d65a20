#include "policies/exchange/base/drawn_signs.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "policies/numerics/random_identity.hpp"

namespace numemu::policies {

void draw_signs(const RandomSource& random, std::span<float> x) {
  float* const values = x.data();
  net::for_each_row(std::ssize(x), 1, [=](std::int64_t i) {
    if (values[i] != values[i]) return;
    const double up = (1 + double{values[i]}) / 2;
    values[i] = random.uniform(static_cast<std::uint64_t>(i)) < up ? 1.0f : -1.0f;
  });
}

RandomSource sign_random(std::uint64_t seed, const Message& message, std::string_view use) {
  net::Step step = message.step;
  step.part = message.sender;
  return stored_random(seed, message.parameter, "exchange", step, use);
}

}  // namespace numemu::policies
