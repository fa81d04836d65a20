// The pages of the manual: every command and option, and nothing that mandoc objects to.
#include <algorithm>
#include <cstdlib>

#include "cli/groups.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace manual_test {

namespace {

using Catch::Contains;
using Catch::StartsWith;
using namespace numemu::test;

/// With blanks for ends of lines, which stand where a line is full.
std::string flowing(std::string page) {
  std::ranges::replace(page, '\n', ' ');
  return page;
}

}  // namespace

TEST_CASE("manual: a page for each command, which mandoc takes", "[fast]") {
  const Scratch s;
  const bool lint = std::system("mandoc -Tlint /dev/null >/dev/null 2>&1; test $? -ne 127") == 0;
  if (!lint) WARN("skipped: no mandoc to check the pages");
  std::vector<std::string> names = {""};
  for (const numemu::cli::CommandRow& row : numemu::cli::kCommands) {
    if (row.group != numemu::cli::Group::experiments) names.emplace_back(row.name);
  }
  for (const std::string& name : names) {
    INFO(name);
    const Result run = s.call("--manual=2026-01-31 " + name);
    CHECK(run.code == 0);
    CHECK_THAT(run.out, StartsWith(".TH NUMEMU"));
    CHECK_THAT(run.out, Contains(" 1 \"2026-01-31\" "));
    if (!lint) continue;
    const std::string page = s.file("page.1", run.out);
    const int status =
        std::system(("mandoc -Tlint " + page + " >" + s.path + "/lint.txt 2>&1").c_str());
    CHECK(read_file(s.path + "/lint.txt") == "");
    CHECK(status == 0);
  }
  check_refused(s.call("--manual= nothing"), "unknown command 'nothing'");
}

TEST_CASE("manual: a page shows options with limits, defaults and what they exclude", "[fast]") {
  const Scratch s;
  const std::string page = s.call("--manual= serve").out;
  CHECK_THAT(page, StartsWith(".TH NUMEMU\\-SERVE 1 \"\" "));
  CHECK_THAT(page, Contains(".SH SYNOPSIS\n\\fBnumemu serve\\fR [\\fIOPTION\\fR ...]\n"));
  CHECK_THAT(page, Contains(".TP\n\\fB\\-\\-k\\fR \\fIK\\fR\n"));
  CHECK_THAT(flowing(page), Contains("(INT in [1 \\- 1024])"));
  CHECK_THAT(flowing(s.call("--manual= train").out), Contains("default: lenet"));
  // By name, not by address.
  CHECK_THAT(flowing(s.call("--manual= sweep").out),
             Contains("(not with \\fB\\-\\-keep\\-old\\fR, \\fB\\-\\-resume\\fR)"));
  CHECK_THAT(flowing(s.call("sweep --help").out), Contains("Excludes: --keep-old --resume"));
  CHECK_THAT(s.call("--manual= report").out, Contains(".TP\n\\fB\\-o\\fR, \\fB\\-\\-out\\fR"));
  const std::string all = s.call("--manual=").out;
  for (const numemu::cli::CommandRow& row : numemu::cli::kCommands)
    CHECK_THAT(all, Contains(".TP\n\\fB" + std::string(row.name) + "\\fR\n"));
}

}  // namespace manual_test
