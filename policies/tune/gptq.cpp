// Step gptq: weights rounded column after column, each one's error made up for by those that
// follow.
#include "policies/tune/base/gptq.hpp"

#include <fmt/format.h>

#include "policies/tune/base/weight_rounding.hpp"

namespace numemu::policies {
namespace {

struct GptqStepOptions final : RoundingOptions {
  GptqOptions gptq;
  std::string order = "natural", groups = "current";
  std::vector<Option> list() override {
    std::vector<Option> all = {
        {"damping", "added to the diagonal of X^T X, in units of its mean", &gptq.damping, 0, 10},
        {"order",
         "natural: columns from the first on; greedy: by falling diagonal of X^T X (act_order)",
         &order,
         0,
         0,
         {"natural", "greedy"}},
        {"groups",
         "scales of blocks: current: chosen when the block's first column is rounded; static: "
         "before all",
         &groups,
         0,
         0,
         {"current", "static"}}};
    return with_inputs(std::move(all));
  }
};

class Gptq final : public RoundingStep {
 public:
  explicit Gptq(const GptqStepOptions& options)
      : RoundingStep("gptq", options), options_(options) {}

 private:
  net::Tensor round(const RolePolicy& role, const net::Tensor& weight,
                    const LayerHessians& hessians) const override {
    GptqOptions how = options_.gptq;
    how.greedy = options_.order == "greedy";
    how.current_groups = options_.groups == "current";
    return gptq(role, weight, hessians.matrices, how);
  }
  const GptqStepOptions& options_;
};

}  // namespace

extern const TuneStepKind tune_gptq{
    .name = "gptq",
    .summary = "weights rounded column by column, each error made up for by those that follow",
    .source = "Frantar et al., ICLR 2023 (arXiv 2210.17323)",
    .options = make_options<GptqStepOptions>,
    .make = make_step<Gptq, GptqStepOptions>};

}  // namespace numemu::policies
