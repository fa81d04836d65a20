// Batches have a fixed size and losses are summed by a fixed tree, so threads change no bit.
#include "emu/net/train/evaluate.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>

#include "emu/net/ops/cross_entropy.hpp"
#include "emu/stats/pairwise.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {
namespace {

struct SplitRow {
  Split split;
  const char* name;
  std::int64_t (*count)(const Dataset&);
  Tensor (Dataset::*batch)(std::int64_t first, std::int64_t count, Targets& targets) const;
};

const SplitRow& find_split(Split split) {
  static constexpr SplitRow kRows[] = {
      {Split::validation, "validation", [](const Dataset& d) { return d.validation_count(); },
       &Dataset::validation_batch},
      {Split::calibration, "calibration", [](const Dataset& d) { return d.calibration_count(); },
       &Dataset::calibration_batch},
      {Split::test, "test", [](const Dataset& d) { return d.test_count(); }, &Dataset::test_batch}};
  for (const SplitRow& row : kRows) {
    if (row.split == split) return row;
  }
  throw Error(
      "evaluation on the training split is not supported; use validation, calibration or test");
}

}  // namespace

Evaluation evaluate(const Graph& graph, const Dataset& data, Split split, std::int64_t count,
                    Numerics& numerics, std::int64_t batch) {
  const SplitRow& row = find_split(split);
  const std::int64_t available = row.count(data);
  if (count < 0 || count > available) {
    throw Error("evaluation: " + std::to_string(count) + " samples requested, the " + row.name +
                " split of " + data.name() + " has " + std::to_string(available));
  }
  if (data.target() != TargetKind::classes)
    throw Error("evaluation: expected a data set of classes, " + data.name() + " has none");
  const std::int64_t targets = data.targets_per_sample();
  Evaluation result;
  result.samples = count == 0 ? available : count;
  result.n = result.samples * targets;
  result.right.resize(static_cast<std::size_t>(result.n));
  std::vector<double> losses(result.right.size());
  const std::int64_t batches = (result.samples + batch - 1) / batch;
  std::vector<stats::FiniteCounts> outputs(static_cast<std::size_t>(batches));
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(batches));
  std::atomic<bool> failed = false;

  // Each thread holds the values of a batch.
  const int threads = static_cast<int>(std::clamp<std::int64_t>(batches, 1, omp_get_max_threads()));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t b = 0; b < batches; ++b) {
    if (failed) continue;
    try {
      const FloatGuard guard;
      const std::int64_t first = b * batch;
      const std::int64_t size = std::min(batch, result.samples - first);
      std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
      std::iota(samples.begin(), samples.end(), first);
      const Step step{Phase::inference, b, &samples};
      numerics.begin_step(step);
      Targets expected;
      const Tensor x = (data.*row.batch)(first, size, expected);
      const Tensor logits = forward(graph, x, numerics, step);
      outputs[b] = stats::count_finite(logits.data.data(), logits.size());
      const Classified seen = cross_entropy(logits, expected.classes);
      std::copy(seen.loss.begin(), seen.loss.end(), losses.begin() + first * targets);
      std::copy(seen.right.begin(), seen.right.end(), result.right.begin() + first * targets);
      numerics.end_step(step);
    } catch (...) {
      failures[b] = std::current_exception();
      failed = true;
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (const stats::FiniteCounts& of_batch : outputs) result.outputs += of_batch;
  result.correct = std::accumulate(result.right.begin(), result.right.end(), std::int64_t{0});
  if (result.n > 0) {
    result.loss = stats::pairwise_sum(result.n, [&](std::int64_t i) { return losses[i]; }) /
                  static_cast<double>(result.n);
  }
  return result;
}

}  // namespace numemu::net
