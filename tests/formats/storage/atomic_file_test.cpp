#include "formats/storage/atomic_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::atomic_file_test {
namespace {

constexpr const char* kRefusal = ": expected a regular file or a new name";

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
  CHECK(test::message_of([&] { write_atomically(folder / "x", {"abc"}); }) ==
        (folder / "x") + kRefusal);
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

TEST_CASE("nothing but regular files is replaced, removed or added to", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "");
  std::filesystem::create_directory(folder / "folder");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::vector<std::string> others = {folder / "folder", folder / "pipe"};
  if (mknod((folder / "device").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    others.push_back(folder / "device");
  } else {
    WARN("skipped: the device, which only root makes");
  }
  others.insert(others.end(), {"/dev/null", "/dev/full", "/dev/zero"});
  for (const char* name : {"/dev/stdout", "/proc/self/fd/0"}) {
    std::error_code error;
    if (std::filesystem::is_symlink(name, error)) others.push_back(name);
  }
  // Links to each, links to these, to nothing and to themselves.
  for (const std::string& other : std::vector<std::string>(others)) {
    const std::string link = folder / fmt::format("to{}", others.size());
    std::filesystem::create_symlink(other, link);
    std::filesystem::create_symlink(std::filesystem::path(link).filename(), link + "-again");
    others.insert(others.end(), {link, link + "-again"});
  }
  std::filesystem::create_symlink("nothing", folder / "dangling");
  std::filesystem::create_symlink("round", folder / "round");
  others.insert(others.end(), {folder / "dangling", folder / "round"});
  const std::int64_t before = entries(folder.path());
  const auto type = [](const std::string& path) {
    return std::filesystem::symlink_status(path).type();
  };
  for (const std::string& path : others) {
    CAPTURE(path);
    const auto was = type(path);
    CHECK(test::message_of([&] { require_replaceable(path); }) == path + kRefusal);
    CHECK(test::message_of([&] { write_atomically(path, {"abc"}); }) == path + kRefusal);
    CHECK(type(path) == was);
  }
  for (const std::string& path : {folder / "folder", folder / "pipe", std::string("/dev/full")})
    CHECK_FALSE(test::message_of([&] { append_text(path, "abc"); }).empty());
  CHECK(entries(folder.path()) == before);
  require_replaceable(folder / "file");
  require_replaceable(folder / "new");
  const auto refusal = [](const std::string& path) {
    return test::message_of([&] { require_replaceable(path); });
  };
  CHECK(refusal(folder / "no/new") == (folder / "no") + ": no such folder");
  CHECK(refusal(folder / "file/new") == (folder / "file") + " is not a folder");
}

TEST_CASE("what takes a file's name while another is written is not replaced", "[fast]") {
  const test::TemporaryFolder folder;
  PendingFile pending(folder / "x", {"new"});
  REQUIRE(mkfifo((folder / "x").c_str(), 0600) == 0);
  CHECK(test::message_of([&] { pending.take_place(); }) == (folder / "x") + kRefusal);
  CHECK(test::message_of([&] { pending.remove_old(); }) == (folder / "x") + kRefusal);
  CHECK(std::filesystem::is_fifo(folder / "x"));
}

TEST_CASE("a file goes to the folder that it was meant for", "[fast]") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  PendingFile pending(folder / "a/x", {"new"});
  std::filesystem::rename(folder / "a", folder / "moved");
  std::filesystem::create_directory_symlink("b", folder / "a");
  pending.take_place();
  CHECK(test::read_file(folder / "moved/x") == "new");
  CHECK(entries(folder / "b") == 0);
}

TEST_CASE("text is added to the end of a file", "[fast]") {
  const test::TemporaryFolder folder;
  append_text(folder / "x", "a");
  append_text(folder / "x", "bc", true);
  CHECK(test::read_file(folder / "x") == "abc");
}

}  // namespace

}  // namespace numemu::atomic_file_test
