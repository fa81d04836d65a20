// A search's request as that of its experiment.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/studies.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace api_search_test {

using namespace numemu;

TEST_CASE("a search is its experiment with the settings that are given", "[fast]") {
  const api::ExperimentRequest of_net =
      api::experiment_of({.settings = {{"net", {"lenet"}},
                                       {"data", {"glyphs"}},
                                       {"bits", {"6"}},
                                       {"max_loss", {"0.5"}},
                                       {"blocks", {"16", "32"}},
                                       {"units", {"neutral.mac.e8m7", "f32.sequential"}}}});
  CHECK(of_net.name == "search");
  CHECK(of_net.settings == std::vector<std::string>{"net=lenet", "data=glyphs", "bits=6",
                                                    "max_loss=0.5", "blocks=16,32",
                                                    "units=neutral.mac.e8m7,f32.sequential"});
  CHECK(of_net.out == "out/search-lenet-6-loss-0.5");
  const api::ExperimentRequest of_laws =
      api::experiment_of({.settings = {{"dist", {"normal", "lognormal:1.5"}}}, .seed = 3});
  CHECK(of_laws.settings == std::vector<std::string>{"dist=normal,lognormal:1.5"});
  CHECK(of_laws.out == "out/search-normal");
  CHECK(of_laws.seed == 3);
  CHECK_NOTHROW(experiments::settings_of(experiments::find_experiment("search"),
                                         experiments::Size::standard, of_net.settings));
}

TEST_CASE("a search has a network or laws, and what belongs to them", "[fast]") {
  using Settings = std::map<std::string, std::vector<std::string>>;
  const auto asked = [](Settings settings) {
    return api::experiment_of({.settings = std::move(settings)});
  };
  CHECK_THROWS_WITH(asked({}), Catch::Contains("--net NAME or --dist LAW"));
  CHECK_THROWS_WITH(asked({{"net", {"lenet"}}, {"data", {"glyphs"}}, {"dist", {"normal"}}}),
                    Catch::Contains("one of them"));
  CHECK_THROWS_WITH(asked({{"net", {"lenet"}}}), Catch::Contains("--data"));
  CHECK_THROWS_WITH(asked({{"dist", {"normal"}}, {"max_loss", {"1"}}}),
                    Catch::Contains("--max-loss"));
  CHECK_THROWS_WITH(asked({{"net", {"lenet"}}, {"data", {"glyphs"}}, {"tune", {"light"}}}),
                    Catch::Contains("--max-loss"));
  CHECK_THROWS_WITH(asked({{"dist", {"normal"}}, {"units", {"neutral.exact"}}}),
                    Catch::Contains("--units"));
}

}  // namespace api_search_test
