// Parameterised clipping activation: the end of an activation's range follows the gradients of what
// lies beyond it.
#include "policies/learn/base/learned_range.hpp"

namespace numemu::policies {
namespace {

struct PactOptions final : LearnOptions {
  double decay = 0.0002;
  std::vector<Option> list() override {
    return {{"decay", "of the end of the range, added to its gradient", &decay, 0, 1},
            rate_option(*this),
            method_option(*this)};
  }
};

class Pact final : public LearnedRange {
 public:
  Pact(Binding given, net::Numerics& inner)
      : LearnedRange(
            std::move(given), inner, "recipe/learn/pact",
            [](const LearnOptions&, RolePart part) { return part == RolePart::activation; }) {}

 protected:
  /// An element beyond an end is that end; rounding counts for nothing.
  double slope(double value, double, const LevelRange& range) const override {
    return value >= range.high ? range.high : value <= range.low ? range.low : 0;
  }
  /// The parameter is the upper end.
  double unit(const LevelRange& range) const override { return range.high; }
  double decay(const LearnOptions& options) const override {
    return static_cast<const PactOptions&>(options).decay;
  }
};

}  // namespace

extern const PolicyKind learn_pact{
    .key = "learn",
    .name = "pact",
    .summary = "the ends of activations' ranges are learned with the network",
    .source = "Choi et al., 2018 (PACT, arXiv 1805.06085)",
    .options = make_options<PactOptions>,
    .bind = make_policy<Pact>};

}  // namespace numemu::policies
