// Sections: self times add up, nothing is kept without a profile.
#include "emu/net/profile.hpp"

#include "emu/net/run_context.hpp"
#include "tests/catch.hpp"

namespace numemu::net::profile_test {
namespace {

double now = 0;  // a clock that moves only by hand
double read_clock() { return now; }

TEST_CASE("a section's time leaves out the sections inside it", "[fast]") {
  RunContext run;
  run.profile.emplace(&read_clock);
  const RunScope scope(run);
  now = 0;
  {
    const Section outer(SectionKind::forward, "conv1", "conv2d");
    now += 1;
    {
      const Section inner(SectionKind::gemm, "conv1", "fprop", 100);
      now += 5;
    }
    now += 2;
  }
  const std::vector<ProfileRow> rows = run.profile->rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].kind == SectionKind::gemm);
  CHECK(rows[0].seconds == 5);
  CHECK(rows[0].macs == 100);
  CHECK(rows[1].what == "conv2d");
  CHECK(rows[1].seconds == 3);
  CHECK(rows[1].calls == 1);
}

TEST_CASE("a section belongs to the run of its thread alone", "[fast]") {
  RunContext run, other;
  run.profile.emplace(&read_clock);
  other.profile.emplace(&read_clock);
  { const Section section(SectionKind::data, "", "without a run"); }
  {
    const RunScope scope(run);
    const Section section(SectionKind::data, "", "batch");
    const RunScope inner(other);
    { const Section of_other(SectionKind::data, "", "other"); }
  }
  REQUIRE(run.profile->rows().size() == 1);
  CHECK(run.profile->rows()[0].what == "batch");
  REQUIRE(other.profile->rows().size() == 1);
  CHECK(other.profile->rows()[0].what == "other");
}

TEST_CASE("sections of several threads are merged", "[fast]") {
  RunContext run;
  run.profile.emplace(&read_clock);
#pragma omp parallel for num_threads(3)
  for (int i = 0; i < 30; ++i) {
    const RunScope scope(run);
    const Section section(SectionKind::update, "", "sgd", 2);
  }
  const std::vector<ProfileRow> rows = run.profile->rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].calls == 30);
  CHECK(rows[0].macs == 60);
  CHECK(to_string(rows[0].kind) == "update");
}

}  // namespace
}  // namespace numemu::net::profile_test
