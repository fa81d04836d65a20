// Learned step size quantization: the scale of an operand follows its own gradient.
#include <cmath>

#include "policies/learn/base/learned_range.hpp"

namespace numemu::policies {
namespace {

struct LsqOptions final : LearnOptions {
  std::string operands = "both";
  std::vector<Option> list() override {
    return {
        {"operands", "whose scales are learned", &operands, 0, 0, {"both", "weight", "activation"}},
        rate_option(*this),
        method_option(*this)};
  }
};

class Lsq final : public LearnedRange {
 public:
  Lsq(Binding given, net::Numerics& inner)
      : LearnedRange(std::move(given), inner, "recipe/learn/lsq",
                     [](const LearnOptions& options, RolePart part) {
                       const std::string& chosen = static_cast<const LsqOptions&>(options).operands;
                       return chosen == "both" ||
                              chosen == (part == RolePart::weight ? "weight" : "activation");
                     }) {}

 protected:
  double slope(double value, double level, const LevelRange& range) const override {
    return value >= range.low && value <= range.high ? level - value : level;
  }
  double gradient_factor(std::int64_t elements, const LevelRange& range) const override {
    return 1 / std::sqrt(static_cast<double>(elements) * range.high);
  }
};

}  // namespace

extern const PolicyKind learn_lsq{
    .key = "learn",
    .name = "lsq",
    .summary = "scales of weights and activations are learned with the network",
    .source = "Esser et al., ICLR 2020 (LSQ, arXiv 1902.08153)",
    .options = make_options<LsqOptions>,
    .bind = make_policy<Lsq>};

}  // namespace numemu::policies
