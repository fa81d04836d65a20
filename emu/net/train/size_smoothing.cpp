#include "emu/net/train/size_smoothing.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/train/gradient_norm.hpp"
#include "emu/net/train/objective.hpp"
#include "formats/error.hpp"

namespace numemu::net {

namespace {

constexpr double kSmoothingKept = 0.9;  // of a weight, at each measurement (published)
constexpr std::string_view kSmoothingState = "image_sizes/smoothing/";

double gradient_norm_of(const Graph& graph, const Tensor& x, const Targets& targets,
                        const StepInput& input, const TrainOptions& options) {
  Numerics float32;
  const Step step{Phase::training, input.index};
  Tape tape = forward_training(graph, x, float32, step, options.seed);
  Tensor grad_output;
  find_objective(options.objectives.at(0)).evaluate(tape.output, targets, &grad_output, 1);
  return global_norm(backward(graph, std::move(tape), std::move(grad_output), float32));
}

template <class All>
auto rows_of_copy(const All& all, std::int64_t rows, std::int64_t copy, std::int64_t copies) {
  const std::int64_t each = static_cast<std::int64_t>(all.size()) / rows;
  std::vector<typename All::value_type> own;
  for (std::int64_t row = copy; row < rows; row += copies)
    own.insert(own.end(), all.begin() + row * each, all.begin() + (row + 1) * each);
  return own;
}

}  // namespace

CopyNorms copy_norms(const Graph& graph, const StepInput& input, std::int64_t copies,
                     const TrainOptions& options) {
  const std::int64_t rows = input.x.dim(0);
  CopyNorms norms{.all = gradient_norm_of(graph, input.x, input.targets, input, options)};
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    Tensor x;
    x.shape = input.x.shape;
    x.shape[0] = rows / copies;
    x.data = rows_of_copy(input.x.data, rows, copy, copies);
    Targets targets;
    targets.classes = rows_of_copy(input.targets.classes, rows, copy, copies);
    targets.values = rows_of_copy(input.targets.values, rows, copy, copies);
    norms.one += gradient_norm_of(graph, x, targets, input, options) / static_cast<double>(copies);
  }
  return norms;
}

double SizeSmoothing::weight(const Graph& graph, const StepInput& input,
                             const PlannedStep& planned) {
  const std::int64_t every = options_->sizes.smoothing;
  if (every == 0 || planned.copies == 1) return 1;
  const auto known = weights_.find(planned.image);
  if (known != weights_.end() && input.index % every != 0) return known->second;
  const CopyNorms norms = copy_norms(graph, input, planned.copies, *options_);
  const double ratio = norms.one / norms.all;
  if (!std::isfinite(ratio) || ratio == 0) return known == weights_.end() ? 1 : known->second;
  const double weight = known == weights_.end()
                            ? ratio
                            : kSmoothingKept * known->second + (1 - kSmoothingKept) * ratio;
  weights_[planned.image] = weight;
  return weight;
}

void SizeSmoothing::save_state(NamedState& state) const {
  for (const auto& [size, weight] : weights_) {
    std::string bytes(sizeof weight, '\0');
    std::memcpy(bytes.data(), &weight, sizeof weight);
    state.emplace_back(fmt::format("{}{}", kSmoothingState, size), std::move(bytes));
  }
  Forwarding::save_state(state);
}

void SizeSmoothing::load_state(const NamedState& state) {
  NamedState others;
  std::map<std::int64_t, double> weights;
  for (const auto& [name, bytes] : state) {
    if (!name.starts_with(kSmoothingState)) {
      others.emplace_back(name, bytes);
      continue;
    }
    const char *const first = name.data() + kSmoothingState.size(), *const end =
                                                                        name.data() + name.size();
    std::int64_t size = 0;
    double weight = 0;
    const bool number = std::from_chars(first, end, size).ptr == end && first != end;
    if (number && bytes.size() == sizeof weight) std::memcpy(&weight, bytes.data(), sizeof weight);
    if (!(std::isfinite(weight) && weight > 0))
      throw Error(fmt::format("state {}: expected the 8 bytes of a number above 0", name));
    weights[size] = weight;
  }
  Forwarding::load_state(others);
  weights_ = std::move(weights);
}

}  // namespace numemu::net
