// Drop rule threshold: a worker stops when its micro-batches have taken so long, each a draw of a
// law of latencies.
#include "emu/stats/latency.hpp"
#include "policies/drop/dropping.hpp"

namespace numemu::policies {
namespace {

constexpr double kLeast = 1e-12, kMost = 1e12;

// The canonical form of a file has the digest of its numbers.
constexpr TextKind kLaw{"law of latencies",
                        [](const std::string& text) { return stats::latency_law(text).pinned; }};

struct ThresholdDrop final : DropOptions {
  double threshold = 10;
  std::string latency = "normal(1,0.4)";
  std::vector<Option> list() override {
    return {
        {"threshold",
         "time at which a worker stops, in the unit of the latencies; what has not ended before "
         "is dropped",
         &threshold, kLeast, kMost},
        {"latency", "law of the time of a micro-batch", &latency, 0, 0, {}, &kLaw},
        divisor_option()};
  }
  DropRule rule() const override {
    return [threshold = threshold, law = stats::latency_law(latency)](
               const RandomSource& draws, std::int64_t worker, std::int64_t count) {
      double time = 0;
      for (std::int64_t m = 0; m < count; ++m) {
        time += law.draw(draws, stats::latency_element(worker, m));
        if (!(time < threshold)) return m;
      }
      return count;
    };
  }
};

}  // namespace

extern const PolicyKind drop_threshold{
    .key = "drop",
    .name = "threshold",
    .summary = "workers stop at a threshold of time and drop the rest of their micro-batches",
    .source = "Giladi et al., NeurIPS 2023 (arXiv 2306.10598)",
    .options = make_options<ThresholdDrop>,
    .bind = make_policy<Dropping>};

}  // namespace numemu::policies
