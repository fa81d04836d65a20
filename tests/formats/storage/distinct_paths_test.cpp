// Two names of one file are detected, in any spelling.
#include <filesystem>

#include "formats/storage/output_files.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::distinct_paths_test {
namespace {

std::string message(const std::vector<NamedPath>& outputs,
                    const std::vector<NamedPath>& inputs = {}) {
  return test::message_of([&] { require_distinct_paths(outputs, inputs); });
}

TEST_CASE("different files pass, and so do options that were not given", "[fast]") {
  CHECK(message({{"--out", "a.npy"}, {"--flags", "b.npy"}}, {{"--in", "c.npy"}}).empty());
  CHECK(message({{"--out", ""}, {"--flags", ""}}, {{"--in", ""}}).empty());
  CHECK(message({{"--out", "-"}}, {{"--in", "-"}}).empty());
  CHECK(message({{"--out", "a.npy"}}, {{"--in", "a.npy", true, true}}).empty());
  CHECK(message({}, {{"--codes", "a.npy"}, {"--scales", "a.npy"}}).empty());
}

TEST_CASE("one file under two options", "[fast]") {
  CHECK(message({{"--out", "a.npy"}, {"--flags", "a.npy"}}) ==
        "--out and --flags: expected two files, found a.npy twice");
  CHECK(message({{"--out", "a.npy"}, {"--flags", "b/.././a.npy"}}) ==
        "--out and --flags: expected two files, found b/.././a.npy twice");
  CHECK(message({{"--out", "a.npy"}, {"--flags", "b.npy"}}, {{"--in", "b.npy"}}) ==
        "--flags and --in: expected two files, found b.npy twice");
  CHECK(message({{"--out", "a.npy"}}, {{"--in", "a.npy"}}) ==
        "--out and --in: expected two files, found a.npy twice");
  CHECK(message({{"--flags", "a.npy"}}, {{"--in", "a.npy", true, true}}) ==
        "--flags and --in: expected two files, found a.npy twice");
  CHECK(message({{"--out", "a.npy"}}, {{"--scales", "a.npy"}}) ==
        "--out and --scales: expected two files, found a.npy twice");
  const std::string absolute = std::filesystem::absolute("a.npy").string();
  CHECK(message({{"--out", "a.npy"}, {"--flags", absolute}}) ==
        "--out and --flags: expected two files, found " + absolute + " twice");
}

TEST_CASE("sidecars", "[fast]") {
  CHECK(message({{"--out", "a.npy"}, {"--flags", "a.npy.json"}}) ==
        "--flags and --out: expected two files, found a.npy.json, the sidecar of a.npy");
  CHECK(message({{"--out", "a.npy.json"}, {"--flags", "a.npy"}}) ==
        "--out and --flags: expected two files, found a.npy.json, the sidecar of a.npy");
  CHECK(message({{"--out", "a.npy.json"}}, {{"--in", "a.npy"}}) ==
        "--out and --in: expected two files, found a.npy.json, the sidecar of a.npy");
  CHECK(message({{"--out", "a.npy"}}, {{"--in", "a.npy.json"}}) ==
        "--in and --out: expected two files, found a.npy.json, the sidecar of a.npy");
  CHECK(message({{"--out", "a.npy.json"}}, {{"--in", "a.npy", false}}).empty());
}

TEST_CASE("links, soft and hard", "[fast]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.npy", "");
  std::filesystem::create_symlink("a.npy", folder / "soft.npy");
  std::filesystem::create_hard_link(folder / "a.npy", folder / "hard.npy");
  std::filesystem::create_directory_symlink(folder.path(), folder / "again");
  for (const std::string name : {"soft.npy", "hard.npy", "again/a.npy"}) {
    CHECK(message({{"--out", folder / "a.npy"}, {"--flags", folder / name}}) ==
          "--out and --flags: expected two files, found " + (folder / name) + " twice");
  }
  CHECK_FALSE(message({{"--out", folder / "new"}, {"--flags", folder / "again/new"}}).empty());
}

}  // namespace
}  // namespace numemu::distinct_paths_test
