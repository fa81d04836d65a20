// A file is replaced whole or not at all.
#include "formats/storage/atomic_file.hpp"

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
        (folder / "no/x") +
            ": cannot create a temporary file beside it: No such file or directory");
}

TEST_CASE("devices, folders and links are not replaced", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "");
  std::filesystem::create_symlink(folder / "file", folder / "link");
  require_replaceable(folder / "file");
  require_replaceable(folder / "new");
  for (const std::string& path : {folder / "link", folder.path(), std::string("/dev/null")}) {
    CHECK(test::message_of([&] { require_replaceable(path); }) ==
          path + ": expected a regular file or a new name");
  }
}

}  // namespace
}  // namespace numemu
