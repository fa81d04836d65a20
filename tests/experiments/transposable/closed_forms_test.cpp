// Closed forms against published values, against each other and against drawn numbers.
#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/transposable/patterns.hpp"
#include "formats/analysis/distribution.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("transposable: losses of normal groups", "[fast]") {
  CHECK(group_loss(1, 2) == Approx(1 - 1 / std::sqrt(2.0)).epsilon(1e-9));
  CHECK(group_loss(3, 3) == 0);
  CHECK(half_loss() == Approx(0.20345).margin(5e-6));  // as printed
  // Larger groups lose less, down to a group without end.
  double last = group_loss(1, 2), excess = 0, last_excess = 0;
  for (const int kept : {2, 4, 8, 32, 128}) {
    const double loss = group_loss(kept, 2 * kept);
    CHECK(loss < last);
    CHECK(loss > half_loss());
    last = loss;
    last_excess = excess;
    excess = loss - half_loss();
  }
  // As 1 / M: groups of four times the size lose a quarter of the rest, but for terms in 1 / M^2.
  CHECK(excess / last_excess == Approx(0.25).epsilon(0.01));
  CHECK(group_loss(2, 4) == Approx(0.2554).margin(0.0005));  // drawn, as printed
}

TEST_CASE("transposable: losses of drawn numbers", "[fast]") {
  const Distribution normal = Distribution::parse("normal", false);
  const RandomSource random{.seed = 4, .stream = Stream::vectors};
  constexpr int kTiles = 40'000;
  const double of_diagonals = diagonal_loss(), of_groups = group_loss(3, 4);
  double diagonal = 0, groups = 0, total = 0, diagonal_squares = 0, groups_squares = 0;
  for (std::uint64_t t = 0; t < kTiles; ++t) {
    std::vector<double> x(4);
    for (std::uint64_t i = 0; i < 4; ++i) x[i] = std::fabs(normal.draw(random, 4 * t + i));
    const double sum = x[0] + x[1] + x[2] + x[3];
    const double lost = std::min(x[0] + x[3], x[1] + x[2]) - of_diagonals * sum;
    std::sort(x.begin(), x.end());
    const double smaller = x[0] - of_groups * sum;
    total += sum;
    diagonal += lost;
    diagonal_squares += lost * lost;
    groups += smaller;
    groups_squares += smaller * smaller;
  }
  // Both have mean zero: 4 standard errors.
  CHECK(std::fabs(diagonal) < 4 * std::sqrt(diagonal_squares));
  CHECK(std::fabs(groups) < 4 * std::sqrt(groups_squares));
  CHECK(std::sqrt(diagonal_squares) < 0.002 * total);  // sharp enough to tell
}

TEST_CASE("transposable: from unstructured zeros to N:M", "[fast]") {
  struct Row {
    double zeros, broken24, broken48, extra24, extra48;
  };
  // As printed in the specification; half of the last digit.
  for (const Row& row :
       {Row{.5, .3125, .363281, .09375, .068359}, Row{.6, .1792, .173670, .0512, .029082},
        Row{.7, .0837, .057968, .02295, .008827}, Row{.8, .0272, .010406, .0072, .001466},
        Row{.9, .0037, .000432, .00095, .000057}}) {
    CHECK(violation_share(2, 4, row.zeros) == Approx(row.broken24).margin(5.1e-7));
    CHECK(violation_share(4, 8, row.zeros) == Approx(row.broken48).margin(5.1e-7));
    CHECK(extra_share(2, 4, row.zeros) == Approx(row.extra24).margin(5.1e-7));
    CHECK(extra_share(4, 8, row.zeros) == Approx(row.extra48).margin(5.1e-7));
  }
}
