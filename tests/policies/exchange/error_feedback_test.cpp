// Rules with error feedback: what is sent and what is kept is what there was, over random states;
// what is kept survives a restart.
#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::error_feedback_test {

using namespace numemu::policies::test;

namespace {

constexpr double kHalfUlp = 0x1p-24;  // relative, of float32

struct Rule {
  const char *text, *name;
  bool exact;         ///< an element is sent whole or not at all
  double filter = 1;  ///< of the residual
};
constexpr Rule kRules[] = {{R"j("topk(0.1)")j", "topk", true},
                           {R"j("randomk(0.1)")j", "randomk", true},
                           {R"j("adacomp(7)")j", "adacomp", false},
                           {R"("sign")", "sign", false},
                           {R"j("learned(0.1,3,20)")j", "learned/residual", false},
                           {R"j({"rule": "learned", "share": 0.2, "dense": 3, "training": 20,
                                 "order": "server"})j",
                            "learned/residual", false},
                           {R"j("scalecom(0.1)")j", "scalecom", true},
                           {R"j("scalecom(0.1,0.125)")j", "scalecom", true, 0.125}};

}  // namespace

TEST_CASE("error feedback: sent and kept are residual and gradient", "[fast]") {
  for (const Rule& rule : kRules) {
    INFO(rule.text);
    OneMatrix worker(rule.text, 6, 10);
    for (int step = 0; step < 100; ++step) {
      const std::vector<float> before = worker.kept(rule.name);
      std::vector<std::vector<float>> gradients = noisy_gradients(1, 60, step);
      // From steps of nothing to large ones: residuals of all sizes.
      for (float& value : gradients[0]) value = std::ldexp(value, step % 5 * 7 - 14);
      const std::vector<float> sent = worker.exchange(step, gradients),
                               after = worker.kept(rule.name);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < 60; ++i) {
        const double fed = double{before[i]} + double{gradients[0][i]};
        const auto x = static_cast<float>(fed);
        if (rule.filter == 1 && rule.exact) {
          wrong += sent[i] + after[i] != x || (sent[i] != 0 && after[i] != 0);
        } else if (rule.filter == 1) {  // x and x - sent are rounded
          wrong += std::fabs(double{sent[i]} + after[i] - fed) >
                   kHalfUlp * (std::fabs(fed) + std::fabs(double{x} - sent[i]));
        } else {  // both products, their sum, x
          const double kept = (1 - rule.filter) * before[i], rest = rule.filter * (fed - sent[i]);
          wrong += std::fabs(after[i] - (kept + rest)) >
                   3 * kHalfUlp * (std::fabs(kept) + std::fabs(rule.filter * fed));
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("error feedback: what is kept survives a restart", "[fast]") {
  for (const Rule& rule : kRules) {
    INFO(rule.text);
    OneMatrix whole(rule.text, 6, 10), resumed(rule.text, 6, 10);
    for (int step = 0; step < 3; ++step) whole.exchange(step, noisy_gradients(3, 60, step));
    resumed.load(whole.state());
    const auto next = noisy_gradients(3, 60, 3);
    CHECK(resumed.exchange(3, next) == whole.exchange(3, next));
    CHECK(resumed.state() == whole.state());
  }
}

TEST_CASE("error feedback: a NaN is not kept", "[fast]") {
  for (const Rule& rule : kRules) {
    INFO(rule.text);
    OneMatrix worker(rule.text, 6, 10);
    auto gradients = noisy_gradients(1, 60, 0);
    gradients[0][17] = NAN;
    worker.exchange(0, gradients);
    for (const float value : worker.kept(rule.name)) CHECK_FALSE(std::isnan(value));
  }
}

}  // namespace numemu::error_feedback_test
