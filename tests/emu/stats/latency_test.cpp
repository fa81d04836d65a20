// Laws of latencies: moments and quantiles against closed forms and sums, draws, files, refusals.
#include "emu/stats/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace latency_test {

using namespace numemu;
using namespace numemu::stats;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

namespace {

const char* const kLaws[] = {"constant(2)",      "normal(1,0.4)",  "normal(0.1,1)",
                             "lognormal(1,0.4)", "lognormal(3,6)", "exponential(0.5)",
                             "injected(1,1)",    "injected(2,0)",  "injected(0.5,3)"};

}  // namespace

TEST_CASE("latencies: mean and variance are the integrals of the tails", "[fast]") {
  // E[X] = int P(X > x), E[X^2] = int 2 x P(X > x), by trapezoids up to where 1e-13 is left.
  for (const char* const text : kLaws) {
    INFO(text);
    const LatencyLaw law = latency_law(text);
    CHECK(law.name == text);
    CHECK(law.identity == text);
    constexpr int kSteps = 4'000'000;
    const double step = law.quantile(1 - 1e-13) * 1.000001 / kSteps;
    double first = 0, second = 0;
    for (int i = 0; i < kSteps; ++i) {
      const double x = (i + 0.5) * step, above = 1 - law.probability(x);
      first += above * step;
      second += 2 * x * above * step;
    }
    CHECK(first == Approx(law.mean).epsilon(1e-5));
    CHECK(second - first * first == Approx(law.variance).epsilon(1e-4).margin(1e-4));
  }
}

TEST_CASE("latencies: the injected delays have the published moments", "[fast]") {
  // Multiplier l / E[l]: E[l] = 87.634, standard deviation 1.1619, largest 11.40
  // (specification distributed.md, DropCompute (b)).
  const LatencyLaw law = latency_law("injected(1,2)");
  CHECK(law.mean == Approx(2).epsilon(1e-13));
  CHECK(std::sqrt(law.variance) == Approx(1.1619).margin(5e-5));
  CHECK(law.quantile(1 - 1e-12) - 1 == Approx(11.40).margin(5e-3));
  CHECK(1 / (law.quantile(1e-12) - 1) == Approx(87.634).margin(5e-4));
}

TEST_CASE("latencies: quantiles invert probabilities", "[fast]") {
  for (const char* const text : kLaws) {
    INFO(text);
    const LatencyLaw law = latency_law(text);
    for (const double u : {1e-9, 0.001, 0.3, 0.5, 0.77, 0.999, 1 - 1e-9}) {
      const double x = law.quantile(u);
      CHECK(x >= 0);
      CHECK(law.probability(x) >= u * (1 - 1e-9));
      if (x > 0) CHECK(law.probability(x * (1 - 1e-7)) <= u);
    }
    CHECK(law.probability(-1) == 0);
  }
}

TEST_CASE("latencies: draws have the law's mean and their bits are pinned", "[fast]") {
  const RandomSource source = latency_source(7, "test", 3, "compute");
  CHECK(source.stream == Stream::latency);
  constexpr int kDraws = 40'000;
  for (const char* const text : kLaws) {
    INFO(text);
    const LatencyLaw law = latency_law(text);
    double sum = 0;
    for (int i = 0; i < kDraws; ++i) sum += law.draw(source, i);
    // 4.5 standard errors: 7e-6.
    CHECK(std::abs(sum / kDraws - law.mean) <=
          4.5 * std::sqrt(law.variance / kDraws) + 1e-12 * law.mean);
  }
  CHECK(latency_element(0, 5) == 5);
  CHECK(latency_element(1, 0) == 65536);
  const auto bits = [&](const char* text, std::uint64_t i) {
    return std::bit_cast<std::uint64_t>(latency_law(text).draw(source, i));
  };
  // Written down from this code: they may not change from one machine or compiler to another.
  CHECK(bits("normal(1,0.4)", 0) == 0x3ff2a6620d8990ea);
  CHECK(bits("lognormal(1,0.4)", 1) == 0x3fd61ac152871c10);
  CHECK(bits("exponential(0.5)", 2) == 0x3fd192f86ada4743);
  CHECK(bits("injected(1,1)", 3) == 0x3ff2483ef8163469);
}

TEST_CASE("latencies: files of measured ones", "[fast]") {
  const TemporaryFolder folder;
  const double numbers[] = {4, 1, 2, 1};
  write_npy(folder / "m.npy", ArrayType::float64, {2, 2}, numbers);
  write_file(folder / "m.txt", "4 1\n2\t1e0\r\n");
  const LatencyLaw law = latency_law("file(" + folder / "m.npy" + ")"),
                   same = latency_law("file( " + folder / "m.txt" + " )");
  CHECK(law.identity == same.identity);
  CHECK(law.name == "file(" + folder / "m.npy" + ")");
  CHECK(law.pinned == "file(" + folder / "m.npy" + "," + law.identity.substr(5, 16) + ")");
  CHECK(latency_law(law.pinned).pinned == law.pinned);
  CHECK_THAT(message_of([&] { latency_law("file(" + folder / "m.npy" + ",0123456789abcdef)"); }),
             Catch::Contains("m.npy: expected latencies with the digest 0123456789abcdef, found"));
  CHECK(law.mean == 2);
  CHECK(law.variance == 1.5);
  CHECK(law.probability(1) == 0.5);
  CHECK(law.probability(3.9) == 0.75);
  CHECK(law.quantile(0.5) == 1);
  CHECK(law.quantile(0.51) == 2);
  CHECK(law.of_bits(0xffffffff) == 4);
  CHECK(law.of_bits(0) == 1);
}

TEST_CASE("latencies: what is refused", "[fast]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text) {
    return message_of([&] { latency_law(text); });
  };
  CHECK(refused("norml(1,0.4)") == "unknown latency law 'norml'; did you mean 'normal'?");
  CHECK(refused("normal(1)") == "latency 'normal(1)': 1 argument, expected normal(MEAN,SIGMA)");
  CHECK_THAT(refused("normal(1,0)"),
             Catch::Contains("SIGMA is '0', not a number from 1e-12 to 1000000000000"));
  CHECK_THAT(refused("normal(nan,1)"), Catch::Contains("MEAN is 'nan'"));
  CHECK_THAT(refused("lognormal(1,1001)"), Catch::Contains("more than 1000 times MEAN"));
  CHECK_THAT(refused("injected(1,-1)"), Catch::Contains("FACTOR is '-1', not 0 or a number"));
  CHECK_THAT(refused(""), Catch::Contains("unknown latency law"));
  const auto file = [&](const std::string& bytes) {
    write_file(folder / "f", bytes);
    return refused("file(" + folder / "f" + ")");
  };
  CHECK_THAT(file(""), Catch::Contains("no numbers, expected at least one latency"));
  CHECK_THAT(file("1 2 -3"), Catch::Contains("latency 2 is -3, expected a number from 1e-12"));
  CHECK_THAT(file("1 nan"), Catch::Contains("latency 1 is nan"));
  CHECK_THAT(file("1 2;3"), Catch::Contains("byte 2: expected an .npy file or numbers"));
  CHECK_THAT(file("1e999"), Catch::Contains("byte 0"));
  CHECK_THAT(file("\x93NUMPY junk"), Catch::Contains("f: "));
  const std::int16_t codes[] = {1};
  write_npy(folder / "i.npy", ArrayType::int16, {1}, codes);
  CHECK_THAT(refused("file(" + folder / "i.npy" + ")"), Catch::Contains("dtype int16"));
  CHECK_THAT(refused("file(" + folder.path() + ")"), Catch::Contains("regular file"));
  write_file(folder / "large", std::string((std::size_t{64} << 20) + 1, ' '));
  CHECK_THAT(refused("file(" + folder / "large" + ")"), Catch::Contains("expected latencies in"));
}

}  // namespace latency_test
