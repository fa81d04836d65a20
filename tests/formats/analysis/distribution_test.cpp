// The named laws: what they are called, what they draw, what is refused.
#include "formats/analysis/distribution.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace distribution_test {

using namespace numemu;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const RandomSource kSource{.seed = 7, .stream = Stream::data};

}  // namespace

TEST_CASE("draws follow the density of the same law", "[fast]") {
  constexpr int kDraws = 20000;
  // Kolmogorov's distance exceeds 2.2 / sqrt(n) with probability 1.3e-4.
  const double most = 2.2 / std::sqrt(kDraws);
  for (const bool folded : {false, true}) {
    for (const char* name : {"normal", "laplace", "uniform", "lognormal:0.5", "lognormal:3:log2"}) {
      const Distribution d = Distribution::parse(name, folded);
      std::vector<double> x;
      for (int i = 0; i < kDraws; ++i) x.push_back(d.draw(kSource, i));
      std::sort(x.begin(), x.end());
      double distance = 0;
      for (int i = 0; i < kDraws; ++i)
        distance = std::max(distance, std::abs(d.density().cdf(x[i]) - (i + 0.5) / kDraws));
      INFO(d.name());
      CHECK(distance < most);
      CHECK((!folded || x.front() >= 0));
      CHECK(d.density().moments(-kInfinity, kInfinity).p0 == Approx(1).epsilon(1e-13));
    }
  }
}

TEST_CASE("the bits of draws are pinned", "[fast]") {
  const auto bits = [](const char* name, std::uint64_t i) {
    return std::bit_cast<std::uint64_t>(Distribution::parse(name, false).draw(kSource, i));
  };
  // Written down from this code: they may not change from one machine or compiler to another.
  CHECK(bits("normal", 0) == 0xbfe09cf2a8dec07b);
  CHECK(bits("normal", 1) == 0xbfec4a5365fcfb0c);
  CHECK(bits("normal", 12345) == 0xbfe7784a54fb9d1f);
  CHECK(bits("laplace", 0) == 0xbfe026ffa1a3071b);
  CHECK(bits("laplace", 1) == 0xbfef3ed6cfcd3db1);
  CHECK(bits("laplace", 12345) == 0xbfe89edfb51ae0e5);
  CHECK(bits("uniform", 0) == 0xbfd95dcc00ea3c76);
  CHECK(bits("uniform", 1) == 0xbfe3f26d63dbeb23);
  CHECK(bits("uniform", 12345) == 0xbfe12cb2654db179);
  CHECK(bits("lognormal:2", 0) == 0x3fd6a8c1000db5cf);
  CHECK(bits("lognormal:2", 1) == 0xbfc5d7d450810878);
  CHECK(bits("lognormal:2", 12345) == 0x3fcd85d58d45a6ac);
}

TEST_CASE("names of distributions, and S in the unit it is given in", "[fast]") {
  CHECK(Distribution::parse("normal", false).name() == "normal");
  CHECK(Distribution::parse("laplace", true).name() == "|laplace|");
  CHECK(Distribution::parse("student-t:5.0", false).name() == "student-t:5");
  CHECK(Distribution::parse("lognormal:1.50", true).name() == "|lognormal:1.5|");
  CHECK(Distribution::parse("lognormal:3.00:log2", false).name() == "lognormal:3:log2");
  // log2|x| with sigma 1 is ln|x| with sigma ln 2.
  const auto second = [](const char* name) {
    return Distribution::parse(name, false).density().moments(-kInfinity, kInfinity).p2;
  };
  CHECK(second("lognormal:1:log2") == Approx(std::exp(2 * 0.480453013918201424)).epsilon(1e-13));
  CHECK(second("lognormal:1") == Approx(std::exp(2.0)).epsilon(1e-13));
}

TEST_CASE("what is no distribution is refused with what was expected", "[fast]") {
  using Catch::Contains;
  const auto parse = [](const char* text) { return Distribution::parse(text, false); };
  CHECK_THROWS_WITH(parse("norml"), Contains("did you mean 'normal'"));
  CHECK_THROWS_WITH(parse("cauchy"), Contains("uniform"));
  CHECK_THROWS_WITH(parse(""), Contains("unknown distribution"));
  for (const char* text : {"lognormal", "lognormal:", "lognormal:x", "lognormal:1:log3",
                           "lognormal:1e", "lognormal:1:", "lognormal:1:log2:"})
    CHECK_THROWS_WITH(parse(text), Contains("expected lognormal:S"));
  for (const char* text : {"lognormal:0", "lognormal:-1", "lognormal:nan", "lognormal:inf",
                           "lognormal:11", "lognormal:15:log2"})
    CHECK_THROWS_WITH(parse(text), Contains("S is") && Contains("expected 0.00"));
}

}  // namespace distribution_test
