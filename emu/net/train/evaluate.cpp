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

/// The batches of one evaluation. What a batch gives has a place of its own, so that threads share
/// nothing.
class BatchEvaluation {
 public:
  BatchEvaluation(const Graph& graph, const Graph& reference_graph, const Dataset& data,
                  const SplitRow& row, std::int64_t samples, Numerics& numerics,
                  const std::vector<OutputScore>& scores, std::int64_t batch)
      : graph_(graph),
        reference_graph_(reference_graph),
        data_(data),
        row_(row),
        numerics_(numerics),
        scores_(scores),
        batch_(batch),
        of_graph_(values_of(graph, data)),
        of_reference_(values_of(reference_graph, data)),
        classes_(data.target() == TargetKind::classes),
        values_(data.target() == TargetKind::values),
        compares_(
            std::ranges::any_of(scores, [](const OutputScore& score) { return score->reference; })),
        targets_(classes_ ? data.targets_per_sample() : 0) {
    for (std::size_t o = 0; o < data.outputs(); ++o) seen_at_.push_back(at_output(data, o));
    result_.samples = samples;
    result_.n = samples * targets_;
    result_.right.resize(static_cast<std::size_t>(result_.n));
    result_.answers.resize(result_.right.size());
    for (const OutputScore& score : scores) {
      const std::int64_t columns = score->columns(seen_at_.at(score.output));
      result_.tables.push_back(
          {columns, std::vector<double>(static_cast<std::size_t>(columns * samples), 0)});
    }
    losses_.resize(values_ ? static_cast<std::size_t>(samples) : result_.right.size());
    outputs_.resize(static_cast<std::size_t>(batches()));
    counted_.resize(static_cast<std::size_t>(batches()), 0);
  }

  std::int64_t batches() const { return (result_.samples + batch_ - 1) / batch_; }

  /// Throws Error where the passes do not fit into the memory.
  void require_room() const {
    const PlannedPass passes[] = {evaluation_pass(graph_, result_.samples, 0, batch_),
                                  evaluation_pass(reference_graph_, result_.samples, 0, batch_)};
    require_memory(std::span(passes, compares_ ? 2 : 1));
  }

  void run(std::int64_t b) {
    const std::int64_t first = b * batch_, size = std::min(batch_, result_.samples - first);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(size));
    std::iota(samples.begin(), samples.end(), first);
    const Step step{Phase::inference, b, &samples};
    numerics_.begin_step(step);
    Targets expected;
    Tensor x = (data_.*row_.batch)(first, size, expected);
    std::vector<Tensor> references(of_graph_.size());
    if (compares_) {
      Numerics float32;
      references = outputs_of(reference_graph_, data_, x, of_reference_, float32, step);
    }
    const std::vector<Tensor> made =
        outputs_of(graph_, data_, std::move(x), of_graph_, numerics_, step);
    outputs_[b] = stats::count_finite(made[0].data.data(), made[0].size());
    const Classified seen = take_first(b, made[0], expected);
    add_scores({made[0], references[0], expected, seen, first}, scores_, result_.tables);
    for (std::size_t o = 1; o < made.size(); ++o) {
      const Targets& own = expected.further[o - 1];
      const Classified classified = compare(made[o], own, seen_at_[o]);
      add_scores({made[o], references[o], own, classified, first, o}, scores_, result_.tables);
    }
    numerics_.end_step(step);
  }

  /// Once every batch ran.
  Evaluation finish() {
    for (const stats::FiniteCounts& of_batch : outputs_) result_.outputs += of_batch;
    result_.correct = std::accumulate(result_.right.begin(), result_.right.end(), std::int64_t{0});
    result_.n = classes_ ? std::accumulate(counted_.begin(), counted_.end(), std::int64_t{0})
                         : result_.samples;
    if (!classes_ && !values_) {
      result_.loss = std::numeric_limits<double>::quiet_NaN();
    } else if (result_.n > 0) {
      result_.loss = pairwise_sum(static_cast<std::int64_t>(losses_.size()),
                                  [&](std::int64_t i) { return losses_[i]; }) /
                     static_cast<double>(result_.n);
    }
    return std::move(result_);
  }

 private:
  /// Classes against scores; of values only the shape is checked.
  static Classified compare(const Tensor& output, const Targets& expected, const Dataset& data) {
    if (data.target() == TargetKind::classes) {
      require_classes(output, data);
      return cross_entropy(output, expected.classes);
    }
    if (data.target() == TargetKind::values) require_values(output, expected, data);
    return {};
  }

  /// Losses and answers of the first output.
  Classified take_first(std::int64_t b, const Tensor& output, const Targets& expected) {
    const std::int64_t first = b * batch_;
    Classified seen = compare(output, expected, data_);
    if (classes_) {
      const std::int64_t at = first * targets_;
      std::copy(seen.loss.begin(), seen.loss.end(), losses_.begin() + at);
      std::copy(seen.right.begin(), seen.right.end(), result_.right.begin() + at);
      std::copy(seen.answers.begin(), seen.answers.end(), result_.answers.begin() + at);
      counted_[b] = seen.counted;
    } else if (values_) {
      const std::int64_t size = output.dim(0);
      for (std::int64_t i = 0; i < size; ++i)
        losses_[first + i] =
            mean_squared_error(part(output.data, i, size), part(expected.values, i, size));
    }
    return seen;
  }

  const Graph &graph_, &reference_graph_;
  const Dataset& data_;
  const SplitRow& row_;
  Numerics& numerics_;
  const std::vector<OutputScore>& scores_;
  const std::int64_t batch_;
  const std::vector<int> of_graph_, of_reference_;
  const bool classes_, values_, compares_;
  const std::int64_t targets_;    ///< of a sample that are classes
  std::vector<Dataset> seen_at_;  ///< by output
  std::vector<double> losses_;
  std::vector<stats::FiniteCounts> outputs_;  ///< by batch, as is counted_
  std::vector<std::int64_t> counted_;
  Evaluation result_;
};

}  // namespace

PlannedPass evaluation_pass(const Graph& graph, std::int64_t samples, std::int64_t beside,
                            std::int64_t batch) {
  const std::int64_t batches = (samples + batch - 1) / batch;
  return {
      .graph = graph,
      .inputs = batch_shapes(graph, std::clamp<std::int64_t>(samples, 1, batch)),
      .at_once = std::clamp<std::int64_t>(batches, 1, unit::threads_here()) * omp_get_num_threads(),
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
  BatchEvaluation evaluation(graph, reference_graph, data, row, count == 0 ? available : count,
                             numerics, scores, batch);
  evaluation.require_room();
  const std::int64_t batches = evaluation.batches();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(batches));
  std::atomic<bool> failed = false;
  // Each thread holds the values of a batch.
  const int threads = static_cast<int>(std::clamp<std::int64_t>(batches, 1, unit::threads_here()));
  RunContext& run_context = RunScope::current();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t b = 0; b < batches; ++b) {
    if (failed) continue;
    const RunScope scope(run_context);
    try {
      const FloatGuard guard;
      evaluation.run(b);
    } catch (...) {
      failures[b] = std::current_exception();
      failed = true;
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return evaluation.finish();
}

}  // namespace numemu::net
