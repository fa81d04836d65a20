// Zeros shared between layers: equal cosines, the optimum, and floors.
#include <cmath>
#include <vector>

#include "experiments/stochastic_pruning/pruning_effect.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

using namespace numemu::experiments::stochastic_pruning;
using namespace numemu;

namespace {

const std::vector<LayerMagnitudes> kLayers = {{{ThresholdLaw::normal, 1, 0, 1}, 1000},
                                              {{ThresholdLaw::lognormal, 0.1, 2, 0.8}, 4000},
                                              {{ThresholdLaw::lognormal, 3, 1, 0.5}, 500}};

/// Bisection ends at the last bit of its parameter.
constexpr double kExact = 1e-9;

std::vector<LayerMagnitudes> relative(std::vector<LayerMagnitudes> layers) {
  for (LayerMagnitudes& layer : layers) layer.weight = 1 / second_moment(layer.law);
  return layers;
}

}  // namespace

TEST_CASE("totals are sums over layers", "[fast]") {
  const std::vector<double> thresholds = {1, 0.2, 0};
  const TotalEffect total = total_effect(Pruning::stochastic, kLayers, thresholds);
  double zeros = 0, error = 0, squares = 0;
  for (std::size_t l = 0; l < 3; ++l) {
    const PruningEffect e = effect(Pruning::stochastic, kLayers[l].law, thresholds[l]);
    zeros += kLayers[l].elements * e.zeros;
    const double power = kLayers[l].elements * second_moment(kLayers[l].law);
    error += e.error * power;
    squares += power;
  }
  CHECK(total.zeros == Approx(zeros / 5500));
  CHECK(total.error == Approx(error / squares));
  CHECK(effect(Pruning::stochastic, kLayers[2].law, 0).zeros == 0.5);
  CHECK_THAT(numemu::test::message_of(
                 [] { total_effect(Pruning::hard, kLayers, std::vector<double>{1}); }),
             Catch::Contains("one threshold per layer"));
}

TEST_CASE("the same cosine everywhere", "[fast]") {
  for (const Pruning pruning : {Pruning::stochastic, Pruning::hard}) {
    for (const double zeros : {0.4, 0.7, 0.9}) {
      const std::vector<double> thresholds = thresholds_of_equal_cosine(pruning, kLayers, zeros);
      CHECK(total_effect(pruning, kLayers, thresholds).zeros == Approx(zeros).epsilon(kExact));
      const double cosine = effect(pruning, kLayers[0].law, thresholds[0]).cosine;
      for (std::size_t l = 1; l < 3; ++l)
        CHECK(effect(pruning, kLayers[l].law, thresholds[l]).cosine == Approx(cosine));
      CHECK(thresholds_at_cosine(pruning, kLayers, cosine)[1] == Approx(thresholds[1]));
    }
  }
}

TEST_CASE("the same zeros everywhere", "[fast]") {
  const std::vector<double> thresholds =
      thresholds_of_equal_zeros(Pruning::stochastic, kLayers, 0.7);
  for (std::size_t l = 0; l < 3; ++l)
    CHECK(effect(Pruning::stochastic, kLayers[l].law, thresholds[l]).zeros == Approx(0.7));
  CHECK(thresholds_of_equal_zeros(Pruning::stochastic, kLayers, 0.4)[2] == 0);
}

TEST_CASE("nothing beats the optimum at equal zeros", "[fast]") {
  for (const bool of_each : {false, true}) {
    const std::vector<LayerMagnitudes> layers = of_each ? relative(kLayers) : kLayers;
    for (const Pruning pruning : {Pruning::stochastic, Pruning::hard}) {
      for (const double zeros : {0.4, 0.7, 0.9}) {
        const std::vector<double> best = thresholds_of_least_error(pruning, layers, zeros);
        const TotalEffect least = total_effect(pruning, layers, best);
        CHECK(least.zeros == Approx(zeros).epsilon(kExact));
        if (!of_each) CHECK(best[0] == best[2]);
        const auto costs_more = [&](const std::vector<double>& other) {
          CHECK(total_effect(pruning, layers, other).error >= least.error * (1 - kExact));
        };
        costs_more(thresholds_of_equal_cosine(pruning, layers, zeros));
        costs_more(thresholds_of_equal_zeros(pruning, layers, zeros));
        // One layer moved, another one makes up for it.
        for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
          for (std::size_t moved = 0; moved < 3; ++moved) {
            const std::size_t other = (moved + 1) % 3;
            std::vector<double> thresholds = best;
            thresholds[moved] *= factor;
            double low = 1e-12, high = 1e12;
            for (int i = 0; i < 200; ++i) {
              thresholds[other] = std::sqrt(low * high);
              const bool over = total_effect(pruning, layers, thresholds).zeros > zeros;
              (over ? high : low) = thresholds[other];
            }
            if (std::fabs(total_effect(pruning, layers, thresholds).zeros - zeros) > 1e-9) continue;
            CHECK(total_effect(pruning, layers, thresholds).error > least.error);
          }
        }
      }
    }
  }
  std::vector<LayerMagnitudes> unweighted = kLayers;
  unweighted[1].weight = 0;
  CHECK_THAT(
      numemu::test::message_of([&] { thresholds_of_least_error(Pruning::hard, unweighted, 0.5); }),
      Catch::Contains("weights above 0"));
}

TEST_CASE("layers with a cosine floor prune less, the others make up for it", "[fast]") {
  constexpr double kZeros = 0.6, kFloor = 0.98;
  const std::vector<double> thresholds =
      thresholds_with_floors(Pruning::stochastic, kLayers, kZeros, {kFloor, 0, 0});
  const auto of = [&](std::size_t l) {
    return effect(Pruning::stochastic, kLayers[l].law, thresholds[l]);
  };
  CHECK(of(0).cosine == Approx(kFloor));
  CHECK(of(0).zeros < kZeros);
  CHECK(of(1).zeros == Approx(of(2).zeros));
  CHECK(of(1).zeros > kZeros);
  CHECK(total_effect(Pruning::stochastic, kLayers, thresholds).zeros == Approx(kZeros));
  // A floor that the target satisfies changes nothing; a cap bounds what is made up.
  const std::vector<double> free =
      thresholds_with_floors(Pruning::stochastic, kLayers, kZeros, {0.01, 0.01, 0.01});
  CHECK(free == thresholds_of_equal_zeros(Pruning::stochastic, kLayers, kZeros));
  const std::vector<double> capped =
      thresholds_with_floors(Pruning::stochastic, kLayers, 0.85, {kFloor, kFloor, 0}, 0.9);
  CHECK(effect(Pruning::stochastic, kLayers[2].law, capped[2]).zeros == Approx(0.9));
  CHECK_THAT(numemu::test::message_of(
                 [] { thresholds_with_floors(Pruning::stochastic, kLayers, 0.5, {0.9}); }),
             Catch::Contains("one cosine floor per layer"));
}
