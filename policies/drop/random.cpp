// Drop rule random: each micro-batch is dropped with the same probability.
#include "policies/drop/dropping.hpp"

namespace numemu::policies {
namespace {

constexpr double kMostDropped = 0.99;

struct RandomDrop final : DropOptions {
  double share = 0.1;
  std::vector<Option> list() override {
    return {{"share", "probability of each micro-batch to be dropped", &share, 0, kMostDropped},
            divisor_option()};
  }
  /// Which ones does not matter, as samples come in a random order: the last ones are dropped.
  DropRule rule() const override {
    return [share = share](const RandomSource& draws, std::int64_t worker, std::int64_t count) {
      std::int64_t kept = 0;
      for (std::int64_t m = 0; m < count; ++m)
        kept += draws.uniform(stats::latency_element(worker, m)) >= share;
      return kept;
    };
  }
};

}  // namespace

extern const PolicyKind drop_random{.key = "drop",
                                    .name = "random",
                                    .summary = "workers drop micro-batches at random",
                                    .source = "Giladi et al., NeurIPS 2023 (arXiv 2306.10598)",
                                    .options = make_options<RandomDrop>,
                                    .bind = make_policy<Dropping>};

}  // namespace numemu::policies
