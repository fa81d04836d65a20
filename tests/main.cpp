// The runner of all test executables: Catch2's, with the source file as a tag, the groups that
// ctest runs, and a status for skipped cases.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "tests/assertions.hpp"

namespace numemu::test {
namespace {

constexpr int kSkipped = 77;
const std::set<std::string> kSpeeds = {"fast", "slow", "exhaustive", "exhaustive-all"};
const std::set<std::string> kNeeds = {"shared", "silicon"};

bool progress = false;
std::vector<std::string> skipped;  ///< "CASE: why", one per warning "skipped: why"

struct Watcher : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    name_ = info.name;
    if (progress) std::printf("%s\n", name_.c_str());
    std::fflush(stdout);  // a case that hangs is killed with what is in the buffer
  }

  void sectionStarting(const Catch::SectionInfo& info) override {
    TestEventListenerBase::sectionStarting(info);
    assertions::forget_place();
  }

  void assertionStarting(const Catch::AssertionInfo& info) override {
    TestEventListenerBase::assertionStarting(info);
    assertions::forget_place();
  }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    assertions::forget_place();
    const auto& result = stats.assertionResult;
    const std::string message = result.getMessage(), word = "skipped: ";
    if (result.getResultType() == Catch::ResultWas::Warning && message.rfind(word, 0) == 0)
      skipped.push_back(name_ + ": " + message.substr(word.size()));
    return true;
  }

 private:
  std::string name_;
};
CATCH_REGISTER_LISTENER(Watcher)

/// A case, with an exception that leaves it reported where it arose.
class Guarded : public Catch::ITestInvoker {
 public:
  explicit Guarded(const Catch::TestCase& test) : test_(test) {}

  void invoke() const override {
    try {
      test_.invoke();
    } catch (const Catch::TestFailureException&) {
      throw;  // an assertion has stopped the case
    } catch (...) {
      assertions::report_exception();
    }
  }

 private:
  Catch::TestCase test_;
};

/// Path of a case's source below tests/, without _test.cpp.
std::string source_of(const Catch::TestCase& test) {
  const std::string root = NUMEMU_SOURCE "/tests/";
  std::string path = test.lineInfo.file;
  if (path.rfind(root, 0) == 0) path.erase(0, root.size());
  return path.substr(0, path.rfind("_test.cpp"));
}

/// Tags every case with its source, so that the specification "[#formats/codec]" selects a file;
/// reports its exceptions.
void prepare(const std::vector<Catch::TestCase>& tests) {
  for (const Catch::TestCase& test : tests) {
    std::vector<std::string> tags = test.tags;
    tags.push_back("#" + source_of(test));
    Catch::TestCase prepared(new Guarded(test), Catch::TestCaseInfo(test));
    setTags(prepared, tags);
    const_cast<Catch::TestCase&>(test) = prepared;
  }
}

/// Prints the groups that ctest runs as "SOURCE LABEL...", one a line; 1 if a case has no speed,
/// because it would never run.
int list_groups(const std::vector<Catch::TestCase>& tests) {
  std::set<std::string> groups;
  int status = 0;
  for (const Catch::TestCase& test : tests) {
    std::string speeds, needs;
    for (const std::string& tag : test.lcaseTags) {
      if (kSpeeds.count(tag) != 0) speeds += " " + tag;
      if (kNeeds.count(tag) != 0) needs += " " + tag;
    }
    if (speeds.empty()) {
      std::fprintf(stderr,
                   "%s:%zu: tag this case [fast], [slow], [exhaustive] or [exhaustive-all]: %s\n",
                   test.lineInfo.file, test.lineInfo.line, test.name.c_str());
      status = 1;
    }
    groups.insert(source_of(test) + speeds + needs);
  }
  for (const std::string& group : groups) std::printf("%s\n", group.c_str());
  return status;
}

int run(int argc, char** argv) {
  bool list = false;
  Catch::Session session;
  session.cli(
      session.cli() |
      Catch::clara::Opt(list)["--list-groups"]("list source and labels of what ctest runs") |
      Catch::clara::Opt(progress)["--progress"]("print the name of each case before it runs"));
  if (session.applyCommandLine(argc, argv) != 0) return 1;
  const std::vector<Catch::TestCase>& tests = Catch::getAllTestCasesSorted(session.config());
  if (list) return list_groups(tests);
  prepare(tests);
  const int failed = session.run();
  for (const std::string& what : skipped) std::printf("skipped: %s\n", what.c_str());
  // A failure beside a skipped case is a failure, and 77 failures are not a skipped case.
  return failed != 0 ? 1 : skipped.empty() ? 0 : kSkipped;
}

}  // namespace
}  // namespace numemu::test

int main(int argc, char** argv) { return numemu::test::run(argc, argv); }
