// The generated chain: pinned bytes, four followers of each two characters, the entropy rate.
#include "emu/net/data/chain.hpp"

#include <cmath>
#include <map>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"

namespace chain_test {

using namespace numemu;
using namespace numemu::net;

TEST_CASE("chain: the text is pinned", "[fast]") {
  const std::vector<std::uint8_t> text = chain::generate();
  CHECK(std::string(text.begin(), text.begin() + 32) == "oelipuzmxlaojgxcsxojgvexuwwwwwww");
  const Dataset data = load_dataset("chain", "unused");
  CHECK(data.digest() == "b28618c65dcb2a95");
  CHECK(data.kind() == DataKind::text);
  CHECK(data.classes() == 27);
  CHECK(data.train_count() == 14'745);
  CHECK(data.test_count() == 819);
}

TEST_CASE("chain: followers have the stated probabilities and their entropy", "[fast]") {
  const std::vector<std::uint8_t> text = chain::generate();
  std::map<std::string, std::map<char, double>> counts;
  for (std::size_t t = 2; t < text.size(); ++t)
    counts[{static_cast<char>(text[t - 2]), static_cast<char>(text[t - 1])}]
          [static_cast<char>(text[t])] += 1;
  double bits = 0, n = 0;
  for (const auto& [pair, after] : counts) {
    CHECK(after.size() <= 4);
    double all = 0;
    for (const auto& [letter, count] : after) all += count;
    for (const auto& [letter, count] : after) bits -= count * std::log2(count / all);
    n += all;
  }
  CHECK(counts.size() > 500);
  // The information of a character, 1, 2 or 3 bits, has the variance 3.75 - 1.75^2. Counts in place
  // of probabilities take 3 / (2 ln 2) bits off each pair.
  const double error = std::sqrt((3.75 - 1.75 * 1.75) / n);
  const double counted = 1.5 / std::log(2.0) * static_cast<double>(counts.size()) / n;
  CHECK(std::fabs(bits / n + counted - chain::kEntropyRate) < 4 * error);
}

}  // namespace chain_test
