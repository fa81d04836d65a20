// Batches have a fixed size and losses are summed by a fixed tree, so threads change no bit.
#include "emu/net/train/evaluate.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <numeric>
#include <span>

#include "emu/net/data/dataset.hpp"
#include "emu/net/data/view.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/ops/losses.hpp"
#include "emu/net/run_context.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"

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

/// One output of a batch as its samples' scores see it.
struct EvaluatedBatch {
  const Tensor& output;
  const Tensor& reference;
  const Targets& targets;
  const Classified& seen;
  std::int64_t first = 0;  ///< number of its first sample
  std::size_t number = 0;  ///< of the output
};

/// The numbers of the values that a data set has targets for.
std::vector<int> values_of(const Graph& graph, const Dataset& data) {
  std::vector<int> values;
  const int last = static_cast<int>(graph.value_count()) - 1;
  for (std::size_t o = 0; o < data.outputs(); ++o) {
    const std::string& name = data.targets_of(o).output;
    const auto found = std::ranges::find(graph.outputs, name, &GraphOutput::name);
    if (!name.empty() && found == graph.outputs.end())
      throw Error("evaluation: network " + graph.name + ": expected an output " + name +
                  ", of which data set " + data.name() + " has targets");
    values.push_back(name.empty() ? last : found->value);
  }
  return values;
}

/// These values for a packed batch.
std::vector<Tensor> outputs_of(const Graph& graph, const Dataset& data, Tensor x,
                               const std::vector<int>& values, Numerics& numerics,
                               const Step& step) {
  std::vector<Tensor> outputs(values.size());
  const auto keep = [&](int value, const Tensor& made) {
    for (std::size_t o = 0; o < values.size(); ++o)
      if (values[o] == value) outputs[o] = made;
  };
  const std::int64_t samples = x.dim(0);
  const std::vector<Tensor> inputs = data.inputs_of(std::move(x));
  const int last = static_cast<int>(graph.value_count()) - 1;
  if (values.size() == 1 && values[0] == last)
    outputs[0] = forward(graph, inputs, numerics, step);
  else
    forward_values(graph, inputs, numerics, step, keep);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].shape.empty() || outputs[o].dim(0) != samples)
      throw Error("evaluation: output " + data.targets_of(o).output +
                  ": expected samples along its first axis, found " + to_string(outputs[o].shape));
  }
  return outputs;
}

template <class All>
auto part(const All& all, std::int64_t i, std::int64_t samples) {
  const std::size_t each = all.size() / static_cast<std::size_t>(samples);
  return std::span(all).subspan(static_cast<std::size_t>(i) * each, each);
}

double mean_squared_error(std::span<const float> output, std::span<const float> target) {
  double sum = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const double error = double{output[i]} - double{target[i]};
    sum += error * error;
  }
  return sum / static_cast<double>(output.size());
}

void add_scores(const EvaluatedBatch& batch, const std::vector<OutputScore>& scores,
                std::vector<ScoreTable>& tables) {
  const std::int64_t samples = batch.output.dim(0);
  for (std::int64_t i = 0; i < samples; ++i) {
    const Outcome outcome{.output = part(batch.output.data, i, samples),
                          .reference = part(batch.reference.data, i, samples),
                          .classes = part(batch.targets.classes, i, samples),
                          .values = part(batch.targets.values, i, samples),
                          .loss = part(batch.seen.loss, i, samples),
                          .width = batch.output.dim(-1)};
    for (std::size_t s = 0; s < scores.size(); ++s) {
      if (scores[s].output != batch.number) continue;
      ScoreTable& table = tables[s];
      scores[s]->add(outcome, table.sums.data() + (batch.first + i) * table.columns);
    }
  }
}

/// Scores and classes are of one width.
void require_classes(const Tensor& output, const Dataset& data) {
  if (output.dim(-1) == data.classes()) return;
  std::string way;
  constexpr std::int64_t kOneHot = 2;  // zeros and ones, as many as the network has outputs
  if (data.classes() <= kOneHot && data.targets_per_sample() == output.dim(-1)) {
    way = "; if the targets are one-hot, give the number of the class of each sample";
  } else if (output.dim(-1) > data.classes()) {
    way = fmt::format("; if some classes have no sample, state their number with the data: {}={}",
                      data.kind() == DataKind::text ? "vocabulary" : "classes", output.dim(-1));
  } else if (data.targets_per_sample() > 1 && data.kind() != DataKind::text) {
    way = fmt::format("; if a class marks places without a label, leave it out: ignore={}",
                      data.classes() - 1);
  }
  throw Error(fmt::format(
      "evaluation: expected a network of {} outputs, one for each class of data set {}, found {}{}",
      data.classes(), data.name(), output.dim(-1), way));
}

void require_values(const Tensor& output, const Targets& targets, const Dataset& data) {
  Shape expected = data.target_shape();
  expected.insert(expected.begin(), output.dim(0));
  // [samples] and [samples, 1] are the same numbers.
  const auto trimmed = [](Shape shape) {
    while (shape.size() > 1 && shape.back() == 1) shape.pop_back();
    return shape;
  };
  if (output.data.size() == targets.values.size() && trimmed(output.shape) == trimmed(expected))
    return;
  const bool labels = trimmed(expected).size() == 1 && trimmed(output.shape).size() == 2;
  throw Error("evaluation: expected outputs of shape " + to_string(expected) +
              ", the targets of data set " + data.name() + ", found " + to_string(output.shape) +
              (labels ? "; if the targets are classes, give them as integers" : ""));
}

}  // namespace

PlannedPass evaluation_pass(const Graph& graph, std::int64_t samples, std::int64_t beside,
                            std::int64_t batch) {
  const std::int64_t batches = (samples + batch - 1) / batch;
  return {.graph = graph,
          .inputs = batch_shapes(graph, std::clamp<std::int64_t>(samples, 1, batch)),
          .at_once =
              std::clamp<std::int64_t>(batches, 1, unit::threads_here()) * omp_get_num_threads(),
          .beside = beside};
}

Evaluation evaluate(const Graph& graph, const Dataset& data, Split split, std::int64_t count,
                    Numerics& numerics, const std::vector<OutputScore>& scores,
                    std::int64_t batch) {
  return evaluate_against(graph, graph, data, split, count, numerics, scores, batch);
}

Evaluation evaluate_against(const Graph& graph, const Graph& reference_graph, const Dataset& data,
                            Split split, std::int64_t count, Numerics& numerics,
                            const std::vector<OutputScore>& scores, std::int64_t batch) {
  const SplitRow& row = find_split(split);
  const std::int64_t available = row.count(data);
  if (count < 0 || count > available) {
    throw Error("evaluation: " + std::to_string(count) + " samples requested, the " + row.name +
                " split of " + data.name() + " has " + std::to_string(available));
  }
  std::vector<Dataset> seen_at;  // by output
  for (std::size_t o = 0; o < data.outputs(); ++o) seen_at.push_back(at_output(data, o));
  const std::vector<int> of_graph = values_of(graph, data),
                         of_reference = values_of(reference_graph, data);
  const bool classes = data.target() == TargetKind::classes;
  const std::int64_t targets = classes ? data.targets_per_sample() : 0;
  Evaluation result;
  result.samples = count == 0 ? available : count;
  result.n = result.samples * targets;
  result.right.resize(static_cast<std::size_t>(result.n));
  result.answers.resize(result.right.size());
  for (const OutputScore& score : scores) {
    const std::int64_t columns = score->columns(seen_at.at(score.output));
    result.tables.push_back(
        {columns, std::vector<double>(static_cast<std::size_t>(columns * result.samples), 0)});
  }
  const bool compares = std::any_of(scores.begin(), scores.end(),
                                    [](const OutputScore& score) { return score->reference; });
  const bool values = data.target() == TargetKind::values;
  std::vector<double> losses(values ? static_cast<std::size_t>(result.samples)
                                    : result.right.size());
  const std::int64_t batches = (result.samples + batch - 1) / batch;
  std::vector<stats::FiniteCounts> outputs(static_cast<std::size_t>(batches));
  std::vector<std::int64_t> counted(static_cast<std::size_t>(batches), 0);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(batches));
  std::atomic<bool> failed = false;

  const PlannedPass passes[] = {evaluation_pass(graph, result.samples, 0, batch),
                                evaluation_pass(reference_graph, result.samples, 0, batch)};
  require_memory(std::span(passes, compares ? 2 : 1));
  // Each thread holds the values of a batch.
  const int threads = static_cast<int>(std::clamp<std::int64_t>(batches, 1, unit::threads_here()));
  RunContext& run_context = RunScope::current();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t b = 0; b < batches; ++b) {
    if (failed) continue;
    const RunScope scope(run_context);
    try {
      const FloatGuard guard;
      const std::int64_t first = b * batch;
      const std::int64_t size = std::min(batch, result.samples - first);
      std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
      std::iota(samples.begin(), samples.end(), first);
      const Step step{Phase::inference, b, &samples};
      numerics.begin_step(step);
      Targets expected;
      Tensor x = (data.*row.batch)(first, size, expected);
      std::vector<Tensor> references;
      if (compares) {
        Numerics float32;
        references = outputs_of(reference_graph, data, x, of_reference, float32, step);
      } else {
        references.resize(of_graph.size());
      }
      const std::vector<Tensor> made =
          outputs_of(graph, data, std::move(x), of_graph, numerics, step);
      const Tensor& logits = made[0];
      outputs[b] = stats::count_finite(logits.data.data(), logits.size());
      Classified seen;
      if (classes) {
        require_classes(logits, data);
        seen = cross_entropy(logits, expected.classes);
        std::copy(seen.loss.begin(), seen.loss.end(), losses.begin() + first * targets);
        std::copy(seen.right.begin(), seen.right.end(), result.right.begin() + first * targets);
        std::copy(seen.answers.begin(), seen.answers.end(),
                  result.answers.begin() + first * targets);
        counted[b] = seen.counted;
      } else if (values) {
        require_values(logits, expected, data);
        for (std::int64_t i = 0; i < size; ++i)
          losses[first + i] =
              mean_squared_error(part(logits.data, i, size), part(expected.values, i, size));
      }
      add_scores({logits, references[0], expected, seen, first}, scores, result.tables);
      for (std::size_t o = 1; o < made.size(); ++o) {
        const Targets& own = expected.further[o - 1];
        Classified classified;
        if (seen_at[o].target() == TargetKind::classes) {
          require_classes(made[o], seen_at[o]);
          classified = cross_entropy(made[o], own.classes);
        } else if (seen_at[o].target() == TargetKind::values) {
          require_values(made[o], own, seen_at[o]);
        }
        add_scores({made[o], references[o], own, classified, first, o}, scores, result.tables);
      }
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
  result.n =
      classes ? std::accumulate(counted.begin(), counted.end(), std::int64_t{0}) : result.samples;
  if (!classes && !values) {
    result.loss = std::numeric_limits<double>::quiet_NaN();
  } else if (result.n > 0) {
    result.loss = pairwise_sum(static_cast<std::int64_t>(losses.size()),
                               [&](std::int64_t i) { return losses[i]; }) /
                  static_cast<double>(result.n);
  }
  return result;
}

}  // namespace numemu::net
