// Rows of the table of elementwise operators, for the files that hold parts of it.
#pragma once
#include <span>
#include <type_traits>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/pointwise.hpp"

namespace numemu::net {

/// The second part of pointwise_rules().
std::span<const PointwiseRule> pointwise_functions();

namespace pointwise {

/// `function` of the arguments, and of the numbers if it has any.
template <class Function, class... Arguments>
[[gnu::always_inline]] inline float element(PointwiseNumbers numbers, Arguments... arguments) {
  if constexpr (std::is_invocable_v<Function, Arguments...>) {
    return neutral(static_cast<float>(Function{}(arguments...)));
  } else {
    return neutral(static_cast<float>(Function{}(arguments..., numbers)));
  }
}

/// The rule with its loops: F is f of x, D is g times the derivative, of g and what it reads; the
/// numbers come last in each.
template <class F, class D>
constexpr PointwiseRule row(PointwiseRule rule, F, D) {
  rule.values = [](std::int64_t n, const float* x, float* y, PointwiseNumbers numbers) {
    for_each_element(n, [=](std::int64_t i) { y[i] = element<F>(numbers, x[i]); });
  };
  rule.gradients = [](std::int64_t n, const float* seen, const float* g, float* dx,
                      PointwiseNumbers numbers) {
    for_each_element(n, [=](std::int64_t i) {
      if constexpr (std::is_invocable_v<D, float>) {
        dx[i] = element<D>(numbers, g[i]);
      } else {
        dx[i] = element<D>(numbers, g[i], seen[i]);
      }
    });
  };
  return rule;
}

}  // namespace pointwise

}  // namespace numemu::net
