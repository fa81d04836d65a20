// Means and sums by axis_sums(), all others line by line.
#include "emu/net/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "emu/net/ops/broadcast.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/sums.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

using Over = ReduceRule::Over;
using Then = ReduceRule::Then;

constexpr ReduceRule kReduceRules[] = {
    {"reduce_sum", "ReduceSum", "the sum", Over::sum},
    {"reduce_mean", "ReduceMean", "the mean", Over::mean},
    {"reduce_max", "ReduceMax", "the largest", Over::most, Then::nothing, Use::index},
    {"reduce_min", "ReduceMin", "the smallest", Over::least, Then::nothing, Use::index},
    {"reduce_prod", "ReduceProd", "the product", Over::product, Then::nothing, Use::statistic},
    {"reduce_l1", "ReduceL1", "the sum of the magnitudes", Over::magnitude, Then::nothing,
     Use::sign},
    {"reduce_l2", "ReduceL2", "the square root of the sum of x^2", Over::square, Then::root,
     Use::statistic},
    {"reduce_sum_square", "ReduceSumSquare", "the sum of x^2", Over::square, Then::nothing,
     Use::linear},
    {"reduce_log_sum", "ReduceLogSum", "ln of the sum", Over::sum, Then::logarithm, Use::statistic},
    {"reduce_log_sum_exp", "ReduceLogSumExp", "ln of the sum of e^x", Over::exponential,
     Then::logarithm, Use::statistic},
};

const ReduceRule& find_reduction(std::string_view kind) {
  return find_named("reduction", kind, kReduceRules, &ReduceRule::kind);
}

// The elements that one result is computed from, as a line.
class Lines {
 public:
  Lines(const Shape& shape, const std::vector<bool>& reduced) : places_{0} {
    const Strides strides = row_major(shape);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!reduced[i]) {
        kept_.push_back({shape[i], strides.steps[i]});
        continue;
      }
      std::vector<std::int64_t> next;
      next.reserve(places_.size() * static_cast<std::size_t>(shape[i]));
      for (const std::int64_t place : places_) {
        for (std::int64_t k = 0; k < shape[i]; ++k) next.push_back(place + k * strides.steps[i]);
      }
      places_ = std::move(next);
    }
  }
  std::int64_t length() const { return static_cast<std::int64_t>(places_.size()); }
  std::int64_t start(std::int64_t result) const {
    std::int64_t place = 0;
    for (std::size_t i = kept_.size(); i-- > 0; result /= kept_[i].extent)
      place += result % kept_[i].extent * kept_[i].step;
    return place;
  }
  const std::int64_t* places() const { return places_.data(); }

 private:
  struct Axis {
    std::int64_t extent, step;
  };
  std::vector<Axis> kept_;
  std::vector<std::int64_t> places_;  // of the elements of a line, from its start
};

// x[place] for the places of a line.
struct Line {
  const float* x;
  const std::int64_t* places;
  std::int64_t n;
  float operator[](std::int64_t i) const { return x[places[i]]; }
};

float extreme(const Line& x, bool largest) {
  float found = x[0];
  for (std::int64_t i = 1; i < x.n && found == found; ++i)
    found = (largest ? x[i] > found : x[i] < found) || x[i] != x[i] ? x[i] : found;
  return found;
}

// The total before what follows it; of exponentials, less the largest element.
double total(Over over, const Line& x, float largest) {
  switch (over) {
    case Over::product: {
      double product = 1;
      for (std::int64_t i = 0; i < x.n; ++i) product *= x[i];
      return product;
    }
    case Over::most:
      return extreme(x, true);
    case Over::least:
      return extreme(x, false);
    case Over::magnitude:
      return pairwise_sum(x.n, [&](std::int64_t i) { return std::fabs(double{x[i]}); });
    case Over::square:
      return pairwise_sum(x.n, [&](std::int64_t i) { return double{x[i]} * x[i]; });
    case Over::exponential:
      return pairwise_sum(x.n, [&](std::int64_t i) { return core::exp(double{x[i]} - largest); });
    case Over::sum:
    case Over::mean:
      break;
  }
  return pairwise_sum(x.n, [&](std::int64_t i) { return double{x[i]}; });
}

double line_result(const ReduceRule& rule, const Line& x) {
  const float largest = rule.over == Over::exponential ? extreme(x, true) : 0;
  if (!std::isfinite(largest)) return largest;
  const double sum = total(rule.over, x, largest);
  if (rule.then == Then::root) return std::sqrt(sum);
  return rule.then == Then::logarithm ? core::log(sum) + largest : sum;
}

// The product of all elements of a line but element i.
double product_of_others(const Line& x, std::int64_t i) {
  double product = 1;
  for (std::int64_t k = 0; k < x.n; ++k) product *= k == i ? 1 : x[k];
  return product;
}

// dx of one line, given the gradient of its result.
void line_gradient(const ReduceRule& rule, const Line& x, double g, float* dx) {
  const auto put = [&](std::int64_t i, double value) {
    dx[x.places[i]] = neutral(static_cast<float>(value));
  };
  const auto each = [&](const auto& slope) {
    for (std::int64_t i = 0; i < x.n; ++i) put(i, g * slope(double{x[i]}));
  };
  const float largest = rule.over == Over::exponential ? extreme(x, true) : 0;
  const double sum = total(rule.over, x, largest);
  switch (rule.over) {
    case Over::sum:  // of a logarithm
      return each([&](double) { return 1 / sum; });
    case Over::exponential:
      return each([&](double v) { return core::exp(v - largest) / sum; });
    case Over::magnitude:
      return each([](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : v; });
    case Over::square: {
      const double root = std::sqrt(sum);
      if (rule.then == Then::root) return each([&](double v) { return sum == 0 ? 0 : v / root; });
      return each([](double v) { return 2 * v; });
    }
    case Over::product: {
      std::int64_t zeros = 0;
      for (std::int64_t i = 0; i < x.n; ++i) zeros += x[i] == 0;
      for (std::int64_t i = 0; i < x.n; ++i) {
        const double others = zeros == 0                ? sum / x[i]
                              : zeros == 1 && x[i] == 0 ? product_of_others(x, i)
                                                        : 0;
        put(i, g * others);
      }
      return;
    }
    case Over::most:
    case Over::least: {
      std::int64_t equal = 0;
      for (std::int64_t i = 0; i < x.n; ++i) equal += x[i] == sum;
      return each([&](double v) { return v == sum ? 1 / static_cast<double>(equal) : 0; });
    }
    case Over::mean:
      break;
  }
}

}  // namespace

std::span<const ReduceRule> reduce_rules() { return kReduceRules; }

Reduce::Reduce(std::string_view kind, std::vector<std::int64_t> axes, bool keep)
    : Op({.kind = find_reduction(kind).kind, .inputs = every_input(find_reduction(kind).use)}),
      rule_(find_reduction(kind)),
      axes_(std::move(axes)),
      keep_(keep) {}

std::vector<bool> Reduce::reduced(const Shape& x) const {
  const auto rank = static_cast<std::int64_t>(x.size());
  std::vector<bool> marks(x.size(), axes_.empty());
  for (const std::int64_t axis : axes_) {
    const std::int64_t i = axis < 0 ? axis + rank : axis;
    if (i < 0 || i >= rank || marks[i]) {
      throw Error(std::string(kind()) + ": expected different axes of " + to_string(x) +
                  ", got axis " + std::to_string(axis));
    }
    marks[i] = true;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (marks[i] && x[i] == 0) {
      throw Error(std::string(kind()) + ": expected elements along every axis it reduces, got " +
                  to_string(x));
    }
  }
  return marks;
}

Shape Reduce::output_shape(Shapes inputs) const {
  if (inputs.size() != 1) {
    throw Error(std::string(kind()) + ": expected one input, got " + std::to_string(inputs.size()));
  }
  const std::vector<bool> marks = reduced(inputs[0]);
  Shape shape;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!marks[i]) shape.push_back(inputs[0][i]);
    if (marks[i] && keep_) shape.push_back(1);
  }
  return shape;
}

void Reduce::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const Tensor& x = *inputs[0];
  if (output.empty()) return;
  if (!rule_.use) {
    const auto count = rule_.over == Over::mean ? static_cast<double>(x.size() / output.size()) : 1;
    const std::vector<double> sums = axis_sums(x.data.data(), x.shape, reduced(x.shape));
    for (std::size_t i = 0; i < sums.size(); ++i)
      output.data[i] = neutral(static_cast<float>(sums[i] / count));
    return;
  }
  const Lines lines(x.shape, reduced(x.shape));
  float* const y = output.data.data();
  for_each_row(output.size(), lines.length(), [&](std::int64_t i) {
    const Line line{x.data.data() + lines.start(i), lines.places(), lines.length()};
    y[i] = neutral(static_cast<float>(line_result(rule_, line)));
  });
}

void Reduce::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs || back.grad_inputs[0].empty()) return;
  Tensor& dx = back.grad_inputs[0];
  float* const out = dx.data.data();
  const std::vector<bool> marks = reduced(dx.shape);
  if (rule_.use) {
    const Lines lines(dx.shape, marks);
    for_each_row(back.grad_output.size(), lines.length(), [&](std::int64_t i) {
      const std::int64_t start = lines.start(i);
      const Line line{back.inputs[0]->data.data() + start, lines.places(), lines.length()};
      line_gradient(rule_, line, back.grad_output.data[i], out + start);
    });
    return;
  }
  Shape kept = dx.shape;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = marks[i] ? 1 : kept[i];
  const auto count =
      rule_.over == Over::mean ? static_cast<float>(dx.size() / back.grad_output.size()) : 1;
  Tensor share = back.grad_output;
  for (float& g : share.data) g = neutral(g / count);
  const std::array<Shape, 2> shapes{kept, dx.shape};
  const std::array<const float*, 2> data{share.data.data(), nullptr};
  Broadcast(kind(), shapes)
      .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        std::copy_n(runs[0], n, out + first);
      });
}

namespace {

void run(const CumulativeSumOptions& options, const Tensor& x, Tensor& y) {
  const auto axis =
      static_cast<std::size_t>(checked_axis("cumulative_sum", options.axis, x.shape.size()));
  const std::int64_t n = x.shape[axis], step = row_major(x.shape).steps[axis];
  if (x.empty()) return;
  const float* const from = x.data.data();
  float* const to = y.data.data();
  for_each_row(x.size() / n, n, [=](std::int64_t line) {
    const std::int64_t start = line / step * step * n + line % step;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = start + (options.reverse ? n - 1 - i : i) * step;
      const double before = sum;
      sum += from[at];
      to[at] = neutral(static_cast<float>(options.exclusive ? before : sum));
    }
  });
}

}  // namespace

Shape CumulativeSum::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("cumulative_sum: expected one input, got " + std::to_string(inputs.size()));
  checked_axis("cumulative_sum", options_.axis, inputs[0].size());
  return inputs[0];
}

void CumulativeSum::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  run(options_, *inputs[0], output);
}

void CumulativeSum::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  CumulativeSumOptions other = options_;
  other.reverse = !options_.reverse;
  run(other, back.grad_output, back.grad_inputs[0]);
}

TopK::TopK(const TopKOptions& options)
    : Op({.kind = options.places ? "top_k_places" : "top_k",
          .inputs = every_input(options.places ? std::nullopt : std::optional(Use::index))}),
      options_(options) {
  if (options.k < 1 || (!options.keep && options.k != 1))
    throw Error("top_k: expected at least one element, and one where the axis is dropped, got " +
                std::to_string(options.k));
}

Shape TopK::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error("top_k: expected one input, got " + std::to_string(inputs.size()));
  Shape shape = inputs[0];
  const auto axis = checked_axis("top_k", options_.axis, shape.size());
  if (shape[axis] < options_.k) {
    throw Error("top_k: expected at least " + std::to_string(options_.k) + " elements on axis " +
                std::to_string(axis) + " of " + to_string(shape));
  }
  shape[axis] = options_.k;
  if (!options_.keep) shape.erase(shape.begin() + axis);
  return shape;
}

template <class Visit>
void TopK::for_each_chosen(const Tensor& x, const Visit& visit) const {
  const std::int64_t axis = checked_axis("top_k", options_.axis, x.shape.size());
  const std::int64_t n = x.shape[axis], step = row_major(x.shape).steps[axis], k = options_.k;
  const float* const data = x.data.data();
  const TopKOptions options = options_;
  for_each_row(x.size() / n, n, [&, options](std::int64_t line) {
    const std::int64_t outer = line / step, inner = line % step;
    const float* const from = data + outer * n * step + inner;
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const auto above = [=](float a, float b) { return a > b || (a != a && b == b); };
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [&](std::int64_t i, std::int64_t j) {
                        const float a = from[i * step], b = from[j * step];
                        const bool first = options.largest ? above(a, b) : above(b, a);
                        const bool second = options.largest ? above(b, a) : above(a, b);
                        if (first || second) return first;
                        return options.last_first ? i > j : i < j;
                      });
    for (std::int64_t c = 0; c < k; ++c)
      visit((outer * k + c) * step + inner, outer * n * step + inner + order[c] * step, order[c]);
  });
}

void TopK::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const float* const x = inputs[0]->data.data();
  float* const y = output.data.data();
  for_each_chosen(*inputs[0], [&](std::int64_t to, std::int64_t from, std::int64_t place) {
    y[to] = options_.places ? static_cast<float>(place) : neutral(x[from]);
  });
}

void TopK::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs || options_.places) return;
  const float* const g = back.grad_output.data.data();
  float* const dx = back.grad_inputs[0].data.data();  // zero on entry
  for_each_chosen(*back.inputs[0], [&](std::int64_t to, std::int64_t from, std::int64_t) {
    dx[from] = neutral(g[to]);
  });
}

}  // namespace numemu::net
