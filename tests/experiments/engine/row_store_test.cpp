// Rows on disk: any cut resumes to the same bytes; what does not belong is refused.
#include "experiments/engine/row_store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/error.hpp"
#include "formats/version.hpp"
#include "tests/catch.hpp"

using namespace numemu::experiments;
using Catch::Contains;

namespace {

/// A fresh folder, removed at the end.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/numemu-rows-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string line_of(const std::string& key, const std::string& version = numemu::kNumericsVersion) {
  return fmt::format(R"({{"key":"{}","point":{{}},"version":"{}"}})", key, version);
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

const std::vector<std::string> kKeys = {"a", "b", "c", "d"};

void finish(const std::string& folder, const Shard& shard = {},
            const std::vector<std::string>& keys = kKeys) {
  RowStore store(folder, shard, keys, Existing::resume);
  for (const std::string& key : keys) {
    if (!store.has(key)) store.append(key, line_of(key));
  }
}

}  // namespace

TEST_CASE("a file cut at any byte resumes to the same bytes", "[fast]") {
  Folder whole;
  finish(whole.path);
  const std::string expected = content(whole.path + "/rows.jsonl");
  for (std::size_t cut = 0; cut <= expected.size(); ++cut) {
    Folder folder;
    put(folder.path + "/rows.jsonl", expected.substr(0, cut));
    finish(folder.path);
    REQUIRE(content(folder.path + "/rows.jsonl") == expected);
  }
}

TEST_CASE("points added in front keep known rows through a kill", "[fast]") {
  Folder folder;
  finish(folder.path, {}, {"b", "c"});
  {
    RowStore store(folder.path, {}, {"a", "b", "c"}, Existing::resume);
    CHECK(store.kept() == 2);
    CHECK(content(folder.path + "/rows.jsonl").find("\"c\"") != std::string::npos);
  }
  finish(folder.path, {}, {"a", "b", "c"});
  CHECK(content(folder.path + "/rows.jsonl") ==
        line_of("a") + "\n" + line_of("b") + "\n" + line_of("c") + "\n");
}

TEST_CASE("rows that do not belong are refused by file and line", "[fast]") {
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl";
  put(path, line_of("z") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("rows.jsonl: line 1: a row of another sweep"));
  put(path, line_of("a") + "\n" + line_of("b", "0") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("line 2: a row of numerics version 0") && Contains("--keep-old"));
  {
    RowStore store(folder.path, {}, kKeys, Existing::keep_old);
    CHECK(store.kept() == 1);
  }
  CHECK(content(path) == line_of("b", "0") + "\n" + line_of("a") + "\n");
  put(path, "garbage\n" + line_of("a") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("line 1: expected a row"));
  CHECK_NOTHROW(RowStore(folder.path, {}, kKeys, Existing::fresh));
  CHECK(content(path).empty());
}

TEST_CASE("one writer at a time, one split at a time", "[fast]") {
  Folder folder;
  {
    RowStore first(folder.path, {}, kKeys, Existing::resume);
    CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                      Contains("another sweep is writing"));
  }
  CHECK_THROWS_WITH(RowStore(folder.path, Shard{0, 2}, {"a", "c"}, Existing::resume),
                    Contains("another --shard"));
  CHECK_NOTHROW(RowStore(folder.path, Shard{0, 2}, {"a", "c"}, Existing::fresh));
  CHECK_FALSE(std::filesystem::exists(folder.path + "/rows.jsonl"));
}

TEST_CASE("shards merge to the rows of one run; differing duplicates are refused", "[fast]") {
  Folder folder;
  finish(folder.path, {0, 2}, {"a", "c"});
  finish(folder.path, {1, 2}, {"b", "d"});
  std::string merged;
  for (const auto& row : merge_rows(folder.path)) merged += row["key"].get<std::string>();
  CHECK(merged == "abcd");
  put(folder.path + "/rows.1.jsonl", R"({"key":"a","point":{"x":1},"version":"1"})"
                                     "\n");
  CHECK_THROWS_WITH(merge_rows(folder.path),
                    Contains("rows.1.jsonl: line 1: differs from another row"));
  Folder empty;
  CHECK_THROWS_WITH(merge_rows(empty.path), Contains("expected rows.jsonl"));
  CHECK_THROWS_WITH(merge_rows("/nonexistent"), Contains("/nonexistent"));
}

TEST_CASE("shards are written i/n", "[fast]") {
  CHECK(parse_shard("1/3").rows_file() == "rows.1.jsonl");
  CHECK(parse_shard("0/1").rows_file() == "rows.jsonl");
  for (const char* wrong : {"3/3", "-1/2", "1", "1/0", "a/b", "1/2x", ""})
    CHECK_THROWS_WITH(parse_shard(wrong), Contains("--shard"));
}
