// Hadamard matrices in integers.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/net/ops/hadamard_classifier.hpp"
#include "experiments/hadamard_classifier/parts.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::hadamard {
namespace {

std::int32_t element(std::int64_t row, std::int64_t column) {
  return static_cast<std::int32_t>(net::hadamard_element(row, column));
}

}  // namespace

std::vector<std::int32_t> fast_transform(std::vector<std::int32_t> x) {
  for (std::size_t half = 1; half < x.size(); half *= 2) {
    for (std::size_t first = 0; first < x.size(); first += 2 * half) {
      for (std::size_t i = first; i < first + half; ++i) {
        const std::int32_t sum = x[i] + x[i + half], difference = x[i] - x[i + half];
        x[i] = sum;
        x[i + half] = difference;
      }
    }
  }
  return x;
}

double worst_cosine(std::int64_t rows, std::int64_t columns) {
  std::int64_t worst = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      std::int64_t dot = 0;
      for (std::int64_t c = 0; c < columns; ++c) dot += element(i, c) * element(j, c);
      worst = std::max(worst, std::abs(dot));
    }
  }
  return static_cast<double>(worst) / static_cast<double>(columns);
}

void add_matrices(const ExperimentRun& run, Conclusion& conclusion) {
  for (const std::int64_t n : run.settings.whole_numbers("sizes", 2, 4096)) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(n)))
      throw Error(fmt::format("--set: sizes: expected powers of two, not {}", n));
    // Row i of H times H^T is the fast transform of row i: n at i, else 0. It is also the product.
    const RandomSource random{run.seed, Stream::vectors, static_cast<std::uint32_t>(n)};
    std::vector<std::int32_t> x;
    for (std::int64_t c = 0; c < n; ++c)
      x.push_back(static_cast<std::int32_t>(random.bits(static_cast<std::uint64_t>(c), 16)) -
                  32768);
    const std::vector<std::int32_t> transformed = fast_transform(x);
    std::int64_t products = 0, differ = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<std::int32_t> row;
      std::int32_t sum = 0;
      for (std::int64_t c = 0; c < n; ++c) {
        row.push_back(element(i, c));
        sum += row.back() * x[c];
      }
      differ += sum != transformed[i];
      const std::vector<std::int32_t> with_all = fast_transform(row);
      for (std::int64_t j = 0; j < n; ++j) products += with_all[j] != (i == j ? n : 0);
    }
    conclusion.findings.push_back(
        exact_finding(fmt::format("elements of H H^T that differ from {} I, of {}", n, n * n), 0,
                      static_cast<double>(products), products == 0));
    conclusion.findings.push_back(
        exact_finding(fmt::format("sums of H x that differ from the fast transform, of {}", n), 0,
                      static_cast<double>(differ), differ == 0));
  }
  conclusion.about("orthogonal");
}

}  // namespace numemu::experiments::hadamard
