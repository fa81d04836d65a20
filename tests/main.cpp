// Catch2's runner with a status for ctest: 77 if a case has warned "skipped: why" and nothing
// failed, because Catch2 2 has no SKIP. A run without cases fails.
#define CATCH_CONFIG_RUNNER
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

/// In place of libc's: no test loses the power, and all processes see what is written at once. For
/// a file it waits for no disk and succeeds; of anything else it says what the system says.
extern "C" int fsync(int handle) {
  struct stat about {};
  if (fstat(handle, &about) == 0 && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))) return 0;
  return static_cast<int>(syscall(SYS_fsync, handle));
}

namespace {

constexpr int kSkipped = 77;

bool nothing_ran = false;
std::vector<std::string> skipped;  ///< "CASE: why"

struct Watcher : Catch::TestEventListenerBase {
  using Base = Catch::TestEventListenerBase;
  using Base::Base;

  /// Catch2 2 wants a value, Catch2 3 none.
  using Ended =
      decltype(std::declval<Base&>().assertionEnded(std::declval<const Catch::AssertionStats&>()));
  Ended assertionEnded(const Catch::AssertionStats& stats) override {
    const auto& result = stats.assertionResult;
    const std::string message(result.getMessage()), word = "skipped: ";
    if (result.getResultType() == Catch::ResultWas::Warning && message.rfind(word, 0) == 0)
      skipped.push_back(std::string(currentTestCaseInfo->name) + ": " +
                        message.substr(word.size()));
    return Ended(true);
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    Base::testRunEnded(stats);
    nothing_ran = stats.totals.testCases.total() == 0;
  }
};
CATCH_REGISTER_LISTENER(Watcher)

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  if (session.applyCommandLine(argc, argv) != 0) return 1;
  const int failed = session.run();
  for (const std::string& what : skipped) std::printf("skipped: %s\n", what.c_str());
  if (nothing_ran) std::printf("No test case ran.\n");
  // A failure beside a skipped case is a failure, and 77 failures are not a skipped case.
  return failed != 0 || nothing_ran ? 1 : skipped.empty() ? 0 : kSkipped;
}
