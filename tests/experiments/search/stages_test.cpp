// Which of the refined configurations are measured.
#include "experiments/search/stages.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catch.hpp"

namespace search_stages_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

SearchEntry entry(const char* name, double bits, double mac, double db, bool random = false) {
  SearchEntry out;
  out.name = name;
  out.configured.bits = bits;
  out.configured.mac = mac;
  out.refined.db = db;
  out.random = random;
  return out;
}

std::vector<std::string> names(const std::vector<SearchEntry>& entries) {
  std::vector<std::string> out;
  for (const SearchEntry& e : entries) out.push_back(e.name);
  return out;
}

}  // namespace

TEST_CASE("search: on several units half of what is measured lies along the front", "[fast]") {
  std::vector<SearchEntry> refined = {
      entry("best", 6, 0.08, 40),         entry("second", 6, 0.08, 39),
      entry("third", 6, 0.08, 38),        entry("cheaper", 6, 0.06, 30),
      entry("undercut", 6, 0.07, 29),     entry("drawn", 5, 0.05, 28, true),
      entry("cheap", 6, 0.03, 20),        entry("cheap and worse", 6, 0.03, 19),
      entry("nothing left", 6, 0.01, -3), entry("no figure", 4, 0.01, NAN),
  };
  REQUIRE(std::ranges::is_sorted(refined, quieter));
  using Names = std::vector<std::string>;
  CHECK(names(to_measure(refined, 4, 2)) == Names{"best", "second", "cheaper", "drawn", "cheap"});
  CHECK(names(to_measure(refined, 3, 2)) == Names{"best", "second", "drawn", "cheap"});
  CHECK(names(to_measure(refined, 4, 1)) == Names{"best", "second", "third", "cheaper", "drawn"});
  CHECK(names(to_measure(refined, 0, 2)) == Names{"drawn"});
  // Where the front is short the best follow.
  CHECK(names(to_measure(refined, 6, 2)) ==
        Names{"best", "second", "third", "cheaper", "undercut", "drawn", "cheap"});
  // Along the front alone, on one unit as well.
  CHECK(names(to_measure(refined, 3, 1, Along::front)) ==
        Names{"best", "cheaper", "drawn", "cheap"});
}

}  // namespace search_stages_test
