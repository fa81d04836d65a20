// Right and wrong answers as base64 and back.
#include "experiments/engine/answers.hpp"

#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("answers: bits of samples in base64 and back", "[fast]") {
  // Bytes 0x09 0x80 0x01.
  std::vector<std::uint8_t> right(17);
  right[0] = right[3] = right[15] = right[16] = 1;
  CHECK(answers_json(right) == Json{{"n", 17}, {"right", "CYAB"}});
  for (const std::size_t n : {0, 1, 8, 9, 16, 17, 24, 1000, 10000}) {
    INFO(n);
    std::vector<std::uint8_t> some(n);
    for (std::size_t i = 0; i < n; ++i) some[i] = i * i % 7 < 3;
    const Json json = answers_json(some);
    CHECK(read_answers(json) == some);
    CHECK(json["right"].get<std::string>().size() <= 1668);
  }
  CHECK(answers_json(std::vector<std::uint8_t>(50000, 1))["n"] == kMostAnswers);
}

TEST_CASE("answers: what is none gives nothing", "[fast]") {
  for (const Json& bad :
       {Json(), Json{{"n", 8}}, Json{{"n", 8}, {"right", "AA"}}, Json{{"n", 8}, {"right", "A!=="}},
        Json{{"n", 1000000000}, {"right", "AA=="}}, Json{{"n", -1}, {"right", ""}}})
    CHECK_FALSE(read_answers(bad));
}
