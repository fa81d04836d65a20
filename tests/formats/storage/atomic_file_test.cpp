// A file is replaced whole or not at all.
#include "formats/storage/atomic_file.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu {
namespace {

std::int64_t entries(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

TEST_CASE("parts are joined, an old file is replaced, nothing else stays", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_atomically(path, {"old and longer"});
  write_atomically(path, {"a", "", "bc"});
  CHECK(test::read_file(path) == "abc");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a failure names the file and leaves nothing behind", "[fast]") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "x");
  test::write_file(folder / "x/keep", "");
  CHECK_THAT(test::message_of([&] { write_atomically(folder / "x", {"abc"}); }),
             Catch::StartsWith((folder / "x") + ": cannot write: "));
  CHECK(entries(folder.path()) == 1);
  CHECK(test::message_of([&] { write_atomically(folder / "no/x", {"abc"}); }) ==
        (folder / "no") + ": no such folder");
}

TEST_CASE("a pending file stands beside the old one until it is committed", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  write_atomically(path, {"old"});
  {
    PendingFile first(path, {"first"}), second(path, {"second"});
    CHECK(test::read_file(path) == "old");
    CHECK(entries(folder.path()) == 3);
    second.commit();
    CHECK(test::read_file(path) == "second");
  }
  CHECK(test::read_file(path) == "second");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("the next run takes what a killed one left", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  const pid_t child = fork();
  if (child == 0) {
    const PendingFile killed(path, {"much longer than what comes after"});
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(entries(folder.path()) == 1);
  REQUIRE_FALSE(std::filesystem::exists(path));
  write_atomically(path, {"new"});
  CHECK(test::read_file(path) == "new");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a link under the temporary name is not written through", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "precious", "kept");
  std::filesystem::create_symlink("precious", folder / "x.numemu-tmp0");
  write_atomically(folder / "x", {"new"});
  CHECK(test::read_file(folder / "precious") == "kept");
  CHECK(test::read_file(folder / "x") == "new");
}

TEST_CASE("links to files are followed", "[fast]") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "store");
  test::write_file(folder / "store/file", "old");
  std::filesystem::create_symlink("store/file", folder / "link");
  require_replaceable(folder / "link");
  write_atomically(folder / "link", {"new"});
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(test::read_file(folder / "store/file") == "new");
  CHECK(entries(folder / "store") == 1);
  CHECK(linked_file(folder / "link") == std::filesystem::canonical(folder / "store/file").string());
  CHECK(linked_file("new") == "new");
}

TEST_CASE("devices, folders and links to them or to nothing are not replaced", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "");
  std::filesystem::create_symlink(folder / "nothing", folder / "link");
  std::filesystem::create_symlink("/dev/null", folder / "device");
  require_replaceable(folder / "file");
  require_replaceable(folder / "new");
  for (const std::string& path :
       {folder / "link", folder / "device", folder.path(), std::string("/dev/null")}) {
    CHECK(test::message_of([&] { require_replaceable(path); }) ==
          path + ": expected a regular file or a new name");
  }
  const auto refusal = [](const std::string& path) {
    return test::message_of([&] { require_replaceable(path); });
  };
  CHECK(refusal(folder / "no/new") == (folder / "no") + ": no such folder");
  CHECK(refusal(folder / "file/new") == (folder / "file") + " is not a folder");
  CHECK(entries(folder.path()) == 3);
}

}  // namespace
}  // namespace numemu
