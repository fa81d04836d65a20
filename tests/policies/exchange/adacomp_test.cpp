// AdaComp: two steps by hand, short bins and bins of zeros, bins of matrices, bits.
#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/policies/exchange/one_matrix.hpp"

namespace numemu::adacomp_test {

using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

void check_near(const std::vector<float>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(i);
    CHECK(found[i] == Approx(expected[i]).margin(1e-6));  // a few roundings of numbers below 1
  }
}

}  // namespace

TEST_CASE("adacomp: two steps of bins of five are those by hand", "[fast]") {
  OneMatrix worker(R"j("adacomp(5)")j", 2, 5);
  check_near(worker.exchange(0, {{.9f, -.2f, .5f, .44f, -.1f, .05f, .3f, -.8f, .39f, .41f}}),
             {.85, 0, .85, 0, 0, 0, 0, -.85, 0, .85});
  CHECK(worker.bits.sent == 32 + 4 * 8);
  check_near(worker.kept("adacomp"), {.05, -.2, -.35, .44, -.1, .05, .3, .05, .39, -.44});
  check_near(worker.exchange(1, {std::vector<float>(10, .1f)}),
             {0, 0, 0, .515, 0, 0, .515, 0, .515, 0});
  check_near(worker.kept("adacomp"), {.15, -.1, -.25, .025, 0, .15, -.115, .15, -.025, -.34});
}

TEST_CASE("adacomp: the last bin is short, and a bin of zeros sends nothing", "[fast]") {
  OneMatrix worker(R"j("adacomp(4)")j", 1, 9);
  // Bins of 4, 4 and 1; the scale is the mean of 2, 0 and 1.
  CHECK(worker.exchange(0, {{2, 0, 0, 0.5f, 0, 0, 0, 0, -1}}) ==
        std::vector<float>{1, 0, 0, 0, 0, 0, 0, 0, -1});
  CHECK(worker.bits.sent == 32 + 2 * 8);
  CHECK(worker.kept("adacomp") == std::vector<float>{1, 0, 0, 0.5f, 0, 0, 0, 0, 0});
}

TEST_CASE("adacomp: matrices may have bins of their own, with longer codes", "[fast]") {
  OneMatrix worker(R"j({"rule": "adacomp", "bin": 4, "matrix": 100})j", 1, 9);
  // One bin: the scale is 2, and half of it is enough.
  CHECK(worker.exchange(0, {{2, 0, 0, 0.5f, 0, 0, 0, 0, -1}}) ==
        std::vector<float>{2, 0, 0, 0, 0, 0, 0, 0, -2});
  CHECK(worker.bits.sent == 32 + 2 * 16);
}

}  // namespace numemu::adacomp_test
