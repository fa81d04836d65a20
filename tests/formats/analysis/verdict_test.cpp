// Verdicts: their names, and counts of them.
#include "formats/analysis/verdict.hpp"

#include <string>

#include "tests/catch.hpp"

namespace verdict_test {

using namespace numemu;

TEST_CASE("every verdict is read back from its name, other texts are none", "[fast]") {
  for (const Verdict verdict : {Verdict::holds, Verdict::fails, Verdict::undecided, Verdict::none,
                                Verdict::refused, Verdict::withheld})
    CHECK(parse_verdict(to_string(verdict)) == verdict);
  CHECK(to_string(Verdict::none) == std::string());
  for (const char* text : {"", "Holds", "holds ", "hold", "not tested"})
    CHECK(parse_verdict(text) == Verdict::none);
}

TEST_CASE("counts of verdicts: one that is not judged does not count", "[fast]") {
  VerdictCounts counts;
  CHECK(counts.verdict() == Verdict::none);
  counts.add(Verdict::refused);
  counts.add(Verdict::withheld);
  counts.add(Verdict::none);
  CHECK(counts.compared() == 0);
  counts.add(Verdict::holds);
  CHECK(counts.verdict() == Verdict::holds);
  counts.add(Verdict::undecided);
  CHECK(counts.verdict() == Verdict::undecided);
  counts.add(Verdict::fails);
  CHECK(counts.verdict() == Verdict::fails);
  CHECK(counts.compared() == 3);
  CHECK_FALSE(is_judged(Verdict::refused));
}

}  // namespace verdict_test
