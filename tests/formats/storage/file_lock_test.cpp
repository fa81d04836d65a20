// A lock keeps others out and touches nothing that is not its own.
#include "formats/storage/file_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::file_lock_test {
namespace {

using test::message_of;

TEST_CASE("one holder at a time, until it ends or is killed", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "lock";
  {
    const FileLock held(path, "");
    CHECK(message_of([&] { FileLock(path, "it is busy"); }) == "it is busy");
  }
  const pid_t child = fork();
  if (child == 0) {
    const FileLock killed(path, "");
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(message_of([&] { FileLock(path, "it is busy"); }).empty());
}

TEST_CASE("a number is noted and read again", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "lock";
  CHECK(noted_number(path) == 0);
  for (const int number : {3, 2147483647, 12, 1}) {
    const FileLock held(path, "");  // a note needs no lock
    note_number(path, number);
    CHECK(noted_number(path) == number);
  }
  CHECK(std::filesystem::file_size(path) == 12);
  test::write_file(path, "4\n");  // as earlier programs wrote it
  CHECK(noted_number(path) == 4);
  note_number(path, 2);
  CHECK(noted_number(path) == 2);
}

TEST_CASE("locks are trusted on file systems of one machine alone", "[fast]") {
  const test::TemporaryFolder folder;
  const auto hold = [](const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool held = locks_hold(file);
    close(file);
    return held;
  };
  CHECK(hold(folder / "."));
  CHECK_FALSE(hold("/proc"));  // one that is not known, as those that machines share
  CHECK_FALSE(locks_hold(-1));
}

TEST_CASE("links, other files and what they hold stay as they are", "[fast]") {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& why) {
    CHECK(message_of([&] { FileLock(folder / name, "busy"); }) == (folder / name) + why);
    CHECK(message_of([&] { note_number(folder / name, 7); }) == (folder / name) + why);
    CHECK(noted_number(folder / name) == 0);
  };
  const std::string no_lock =
      ": expected a lock file, which is empty or holds a number; move it away";
  test::write_file(folder / "precious", "1\n");
  std::filesystem::create_symlink("precious", folder / "link");
  std::filesystem::create_symlink("new", folder / "dangling");
  for (const char* link : {"link", "dangling"})
    refused(link, ": expected a lock file, found a symbolic link; remove it");
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
  std::filesystem::create_hard_link(folder / "precious", folder / "second name");
  refused("second name", no_lock);
  CHECK(test::read_file(folder / "precious") == "1\n");
  for (const char* text : {"a thesis of years", "x", "-1", "0x10", "1 2", "\n"}) {
    test::write_file(folder / "text", text);
    refused("text", no_lock);
    CHECK(test::read_file(folder / "text") == text);
  }
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  refused("pipe", no_lock);
  std::filesystem::create_directory(folder / "folder");
  refused("folder", ": cannot be opened for writing (Is a directory)");
}

}  // namespace
}  // namespace numemu::file_lock_test
