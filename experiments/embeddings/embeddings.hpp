// Ways to quantize the rows of embedding tables, and closed forms of the loss that uniform codes
// leave on rows of standard normal numbers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "policies/table/base/table_rule.hpp"

namespace numemu::experiments::embeddings {

/// A way to quantize tables.
struct Method {
  const char *name, *rule;  ///< the rule as a recipe has it under `table`
  bool published = false;   ///< one of those that the paper proposes
};

inline constexpr Method kSymmetric{"SYM", "range(symmetric)"};
inline constexpr Method kAsymmetric{"ASYM", "range"};
inline constexpr Method kGreedy{"GREEDY(200, 0.16)", "range(greedy)", true};
inline constexpr Method kGreedySeen{"GREEDY, best seen", "range(greedy,4,row,200,0.16,true)"};
inline constexpr Method kGreedyFine{"GREEDY(1000, 0.5)", "range(greedy,4,row,1000,0.5)"};
inline constexpr Method kKmeans{"KMEANS", "kmeans", true};
inline constexpr Method kTwoTier{"KMEANS-CLS, 4 clusters", "kmeans(4,4)", true};
inline constexpr Method kTable{"TABLE", "range(asymmetric,4,table)"};

/// The rule of a method; throws Error for a text that is none.
std::shared_ptr<const policies::TableRule> rule_of(const Method&);

/// Rows of normal numbers: losses by dimension beside the published procedure's table and closed
/// forms, the order of the methods, the fallback of the greedy search, sizes (settings dimensions,
/// tables).
void add_rows(const ExperimentRun&, Conclusion&);

/// DLRM-like networks trained on clicks: area under the curve with each method's tables (settings
/// widths, epochs, train_samples, eval_samples, seeds).
void add_clicks(const ExperimentRun&, Conclusion&);

// Closed forms of the loss that uniform codes leave on rows of standard normal numbers.

/// E[(max - min)^2] of n standard normal numbers: the double integral of 2 P(min <= s, max >= t)
/// over s < t.
double squared_range(std::int64_t n);
/// E[max |x|^2] of n of them.
double squared_largest(std::int64_t n);

/// ||X - Q(X)|| / ||X|| with levels from end to end of a range of mean square `square`, in which
/// `exact` of n elements lie on a level and the error of all others is uniform on a step: (1 -
/// exact / n) square / (levels - 1)^2 / 12, under the root.
double uniform_loss(double square, std::int64_t n, std::int64_t exact, int levels = 16);

}  // namespace numemu::experiments::embeddings
