// Right and wrong answers as base64 and back.
#include "experiments/engine/answers.hpp"

#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::experiments;

TEST_CASE("answers: bits of samples in base64 and back", "[fast]") {
  // Bytes 0x09 0x80 0x01.
  std::vector<std::uint8_t> right(17);
  right[0] = right[3] = right[15] = right[16] = 1;
  CHECK(row_answers(right).n == 17);
  CHECK(row_answers(right).right == "CYAB");
  for (const std::size_t n : {0, 1, 8, 9, 16, 17, 24, 1000, 10000}) {
    INFO(n);
    std::vector<std::uint8_t> some(n);
    for (std::size_t i = 0; i < n; ++i) some[i] = i * i % 7 < 3;
    const RowAnswers answers = row_answers(some);
    CHECK(read_answers(answers) == some);
    CHECK(answers.right.size() <= 1668);
  }
  CHECK(row_answers(std::vector<std::uint8_t>(50000, 1)).n == kMostAnswers);
}

TEST_CASE("answers: what is none gives nothing", "[fast]") {
  for (const RowAnswers& bad : {RowAnswers{8, ""}, RowAnswers{8, "AA"}, RowAnswers{8, "A!=="},
                                RowAnswers{1000000000, "AA=="}})
    CHECK_FALSE(read_answers(bad));
}
