// Objectives are found by name, and every one is a loss per target with its gradient.
#include "emu/net/train/objective.hpp"

#include <algorithm>

#include "emu/net/ops/losses.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::objective_test {
namespace {

TEST_CASE("objectives are found by name", "[fast]") {
  const std::vector<std::string> names = objective_names();
  for (const char* name : {"complement", "cross_entropy", "label_smoothing"})
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  CHECK_THROWS_WITH(find_objective("cross-entropy"), Catch::Contains("'cross_entropy'"));
}

TEST_CASE("an objective's options are arguments of its name", "[fast]") {
  CHECK(find_objective("label_smoothing(0.2)").name == "label_smoothing");
  CHECK(canonical_objective("label_smoothing(share=0.1)") == "label_smoothing");
  CHECK(canonical_objective("label_smoothing( 0.20 )") == "label_smoothing(0.2)");
  CHECK_THROWS_WITH(find_objective("label_smoothing(2)"),
                    "objective label_smoothing: share: expected a number from 0 to 1");
  CHECK_THROWS_WITH(find_objective("complement(2)"),
                    "objective complement: expected no options, found '2'");
}

TEST_CASE("every objective answers per target, checks its labels and agrees with the prediction",
          "[fast]") {
  const Tensor logits = test::random_tensor({2, 3, 5}, 2);
  const std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 0};
  const std::vector<std::uint8_t> right = cross_entropy(logits, labels).right;
  for (const std::string& name : objective_names()) {
    INFO(name);
    const Objective objective = find_objective(name);
    if (objective.target != TargetKind::classes) continue;  // of numbers: tests of their own
    Tensor gradient, twice;
    const Classified seen = objective.evaluate(logits, {labels, {}}, &gradient, 1);
    CHECK(seen.loss.size() == labels.size());
    CHECK(seen.right == right);
    CHECK(gradient.shape == logits.shape);
    CHECK(objective.evaluate(logits, {labels, {}}, nullptr, 1).loss == seen.loss);
    objective.evaluate(logits, {labels, {}}, &twice, 2);
    for (std::size_t i = 0; i < gradient.data.size(); ++i)
      CHECK(twice.data[i] == 2 * gradient.data[i]);
    CHECK_THROWS_WITH(objective.evaluate(logits, {{0}, {}}, nullptr, 1),
                      Catch::Contains(name + ": expected logits of 1 targets"));
    CHECK_THROWS_WITH(objective.evaluate(logits, {{0, 0, 0, 5, 0, 0}, {}}, nullptr, 1),
                      Catch::Contains(name + ": label 5 of sample 3"));
  }
}

}  // namespace
}  // namespace numemu::net::objective_test
