#include "experiments/fractrain/laws.hpp"

#include <fmt/format.h>

#include <optional>

#include "formats/call_text.hpp"
#include "formats/error.hpp"

namespace numemu::experiments::fractrain {

Precision Precision::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto bits = [&](const std::string& part) { return whole_argument(part, 2, 8); };
  const auto forward = bits(text.substr(0, slash));
  const auto backward = slash == std::string::npos ? std::nullopt : bits(text.substr(slash + 1));
  if (!forward || !backward) {
    throw Error(fmt::format(
        "precision '{}': expected FORWARD/BACKWARD with bits from 2 to 8, as in 3/6", text));
  }
  return {static_cast<int>(*forward), static_cast<int>(*forward), static_cast<int>(*backward)};
}

std::string Precision::text() const { return fmt::format("{}/{}", activation, gradient); }

double cost(const Precision& bits, const MultiplyAdds& macs) {
  return (bits.weight * bits.activation * macs.fprop + bits.weight * bits.gradient * macs.dgrad +
          bits.activation * bits.gradient * macs.wgrad) /
         (32.0 * 32.0);
}

double published_cost(const Precision& bits) { return cost(bits, {1, 1, 1}) / 3; }

double published_share(const std::vector<Precision>& epochs, const Precision& whole) {
  double sum = 0;
  for (const Precision& bits : epochs) sum += published_cost(bits);
  return sum / static_cast<double>(epochs.size()) / published_cost(whole);
}

}  // namespace numemu::experiments::fractrain
