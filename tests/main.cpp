// The runner of all test executables: Catch2's, with the options --list-groups (what ctest runs)
// and --progress (the name of each case before it runs), and a status for skipped cases.
#define CATCH_CONFIG_RUNNER
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/assertions.hpp"

namespace numemu::test {
namespace {

constexpr int kSkipped = 77;
const std::set<std::string> kSpeeds = {"fast", "slow", "exhaustive", "exhaustive-all"};
const std::set<std::string> kNeeds = {"shared", "silicon"};

bool progress = false, nothing_ran = false;
std::vector<std::string> skipped;  ///< "CASE: why", one per warning "skipped: why"

using Listener = Catch::TestEventListenerBase;

struct Watcher : Listener {
  using Listener::Listener;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    Listener::testCaseStarting(info);
    name_ = info.name;
    if (progress) std::printf("%s\n", name_.c_str());
    std::fflush(stdout);  // a case that hangs is killed with what is in the buffer
  }

  void sectionStarting(const Catch::SectionInfo& info) override {
    Listener::sectionStarting(info);
    assertions::forget_place();
  }

  void assertionStarting(const Catch::AssertionInfo& info) override {
    Listener::assertionStarting(info);
    assertions::forget_place();
  }

  /// Catch2 2 wants a value, Catch2 3 none.
  using Ended = decltype(std::declval<Listener&>().assertionEnded(
      std::declval<const Catch::AssertionStats&>()));
  Ended assertionEnded(const Catch::AssertionStats& stats) override {
    assertions::forget_place();
    const auto& result = stats.assertionResult;
    const std::string message(result.getMessage()), word = "skipped: ";
    if (result.getResultType() == Catch::ResultWas::Warning && message.rfind(word, 0) == 0)
      skipped.push_back(name_ + ": " + message.substr(word.size()));
    return Ended(true);
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    Listener::testRunEnded(stats);
    nothing_ran = stats.totals.testCases.total() == 0;
  }

 private:
  std::string name_;
};
CATCH_REGISTER_LISTENER(Watcher)

/// Prints the groups that ctest runs as "SOURCE LABEL...", one a line; 1 if a case has no speed or
/// no source, because it would never run.
int list_groups(const Catch::IConfig& config) {
  std::set<std::string> groups;
  int status = 0;
  const auto complain = [&](const Catch::TestCaseInfo& test, const char* what) {
    std::fprintf(stderr, "%s:%zu: %s: %s\n", test.lineInfo.file, test.lineInfo.line, what,
                 test.name.c_str());
    status = 1;
  };
  for (const auto& test_case : Catch::getAllTestCasesSorted(config)) {
    const Catch::TestCaseInfo& test = test_case.getTestCaseInfo();
    const std::string tags = test.tagsAsString(),
                      source = assertions::source_of(test.lineInfo.file);
    const auto tagged = [&](const std::string& tag) {
      return tags.find("[" + tag + "]") != std::string::npos;
    };
    std::string speeds, needs;
    for (const std::string& speed : kSpeeds)
      if (tagged(speed)) speeds += " " + speed;
    for (const std::string& need : kNeeds)
      if (tagged(need)) needs += " " + need;
    if (speeds.empty())
      complain(test, "tag this case [fast], [slow], [exhaustive] or [exhaustive-all]");
    if (!tagged(source)) complain(test, "only TEST_CASE tags a case with its source");
    groups.insert(source + speeds + needs);
  }
  for (const std::string& group : groups) std::printf("%s\n", group.c_str());
  return status;
}

/// Takes an option of this runner out of the arguments, which Catch2 reads next.
bool taken(std::vector<char*>& arguments, const std::string& option) {
  return std::erase_if(arguments, [&](const char* given) { return given == option; }) != 0;
}

int run(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  const bool list = taken(arguments, "--list-groups");
  progress = taken(arguments, "--progress");
  Catch::Session session;
  if (session.applyCommandLine(static_cast<int>(arguments.size()), arguments.data()) != 0) return 1;
  if (list) return list_groups(session.config());
  const int failed = session.run();
  for (const std::string& what : skipped) std::printf("skipped: %s\n", what.c_str());
  if (nothing_ran) std::printf("No test case ran.\n");
  // A failure beside a skipped case is a failure, and 77 failures are not a skipped case.
  return failed != 0 || nothing_ran ? 1 : skipped.empty() ? 0 : kSkipped;
}

}  // namespace
}  // namespace numemu::test

int main(int argc, char** argv) { return numemu::test::run(argc, argv); }
