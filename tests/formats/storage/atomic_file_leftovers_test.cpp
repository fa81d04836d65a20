// What a killed writer leaves is removed; what a living one writes is not.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "formats/storage/atomic_file.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace atomic_file_leftovers_test {

using namespace numemu;

TEST_CASE("temporary files of killed writers go, all others stay", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "result.txt", "kept");
  const pid_t child = fork();
  if (child == 0) {
    const PendingFile killed(folder / "killed.txt", {"half"});
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(std::filesystem::exists(folder / "killed.txt.numemu-tmp0"));
  {
    PendingFile living(folder / "living.txt", {"new"});
    remove_leftovers(folder.path());
    CHECK_FALSE(std::filesystem::exists(folder / "killed.txt.numemu-tmp0"));
    living.commit();
  }
  CHECK(test::read_file(folder / "living.txt") == "new");
  CHECK(test::read_file(folder / "result.txt") == "kept");
  remove_leftovers(folder / "nothing here");
}

}  // namespace atomic_file_leftovers_test
