// Unwritable folders are found before the work; a free name is offered.
#include <unistd.h>

#include <filesystem>

#include "formats/storage/output_files.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::output_folder_test {
namespace {

TEST_CASE("a folder that cannot be written is named, and none is made", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "");
  std::filesystem::create_symlink("nothing", folder / "link");
  for (const std::string& good : {folder.path(), folder / "new", folder / "new/deep/er/",
                                  std::string("."), std::string("new")})
    CHECK(test::message_of([&] { require_writable_folder(good); }).empty());
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
  const auto message = [](const std::string& path) {
    return test::message_of([&] { require_writable_folder(path); });
  };
  CHECK(message(folder / "file") == (folder / "file") + ": expected a folder");
  CHECK(message(folder / "file/x/y") ==
        (folder / "file/x/y") + ": cannot be created (" + (folder / "file") + " is not a folder)");
  CHECK_THAT(message(folder / "link/x"), Catch::Contains("link/x: cannot be written ("));
  if (geteuid() == 0) return;  // root may write anywhere
  std::filesystem::permissions(
      folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  CHECK(message(folder / "new") == (folder / "new") + ": cannot be written (Permission denied)");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

TEST_CASE("the first free name is offered", "[fast]") {
  const test::TemporaryFolder folder;
  CHECK(fresh_folder(folder / "sweep") == folder / "sweep-2");
  CHECK(fresh_folder(folder / "sweep//") == folder / "sweep-2");
  std::filesystem::create_directory(folder / "sweep-2");
  std::filesystem::create_symlink("nothing", folder / "sweep-3");
  CHECK(fresh_folder(folder / "sweep") == folder / "sweep-4");
  CHECK(fresh_folder((folder / "sweep-2") + "/.") == (folder / "sweep-2") + "-2");
}

}  // namespace
}  // namespace numemu::output_folder_test
