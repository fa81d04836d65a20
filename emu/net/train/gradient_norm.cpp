#include "emu/net/train/gradient_norm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {

namespace {

constexpr std::int64_t kBlock = 4096, kLanes = 8;

double block_sum(const float* x, std::int64_t n) {
  std::array<double, kLanes> lanes{};
  for (std::int64_t i = 0; i < n; ++i) lanes[i % kLanes] += double{x[i]} * double{x[i]};
  return pairwise_sum(kLanes, [&](std::int64_t lane) { return lanes[lane]; });
}

double sum_of_squares(const Tensor& tensor) {
  const std::int64_t blocks = (tensor.size() + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  const float* const x = tensor.data.data();
  double* const out = sums.data();
  for_each_row(blocks, kBlock, [=, n = tensor.size()](std::int64_t b) {
    out[b] = block_sum(x + b * kBlock, std::min(kBlock, n - b * kBlock));
  });
  return pairwise_sum(blocks, [&](std::int64_t b) { return sums[b]; });
}

}  // namespace

double global_norm(std::span<const Tensor> tensors) {
  std::vector<double> sums;
  for (const Tensor& tensor : tensors) sums.push_back(sum_of_squares(tensor));
  return std::sqrt(pairwise_sum(static_cast<std::int64_t>(sums.size()),
                                [&](std::int64_t t) { return sums[t]; }));
}

void clip_to_norm(std::span<Tensor> tensors, double norm, double limit) {
  if (!(norm > limit)) return;
  const float factor = static_cast<float>(limit / norm);
  for (Tensor& tensor : tensors) {
    float* const x = tensor.data.data();
    for_each_element(tensor.size(), [=](std::int64_t i) { x[i] = neutral(x[i] * factor); });
  }
}

}  // namespace numemu::net
