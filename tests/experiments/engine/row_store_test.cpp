// Rows on disk: any cut resumes to the same bytes; what does not belong is refused.
#include "experiments/engine/row_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "experiments/engine/row.hpp"
#include "experiments/predict/version.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/version.hpp"
#include "policies/canonical_json.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/json_path.hpp"

namespace row_store_test {

using namespace numemu::experiments;
using Catch::Contains;
using numemu::Json;

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
  return fmt::format(
      R"({{"key":"{}","point":{{"net":"n","data":"d","recipe":{{"roles":{{"weight":null,"activation":null}},"gemms":{{"fprop":{{"unit":"u"}}}}}}}},"bits":{{"weight":32,"activation":32}},"metrics":{{"top1":1,"n":2,"ci95":[0,1],"loss":null}},"predicted":{{"version":{},"tensors":[]}},"layers":[],"version":"{}"}})",
      key, numemu::experiments::kPredictionVersion, version);
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
  // A first and a last row: every append waits for the disk.
  const std::vector<std::string> keys = {"a", "b"};
  Folder whole;
  finish(whole.path, {}, keys);
  const std::string expected = content(whole.path + "/rows.jsonl");
  for (std::size_t cut = 0; cut <= expected.size(); ++cut) {
    Folder folder;
    put(folder.path + "/rows.jsonl", expected.substr(0, cut));
    finish(folder.path, {}, keys);
    REQUIRE(content(folder.path + "/rows.jsonl") == expected);
  }
}

TEST_CASE("a last row without a newline is a row, part of one is none", "[fast]") {
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl", first = line_of("a") + "\n",
                    last = line_of("b");
  put(path, first + last);
  CHECK(merge_rows(folder.path).size() == 2);
  CHECK(stored_keys(folder.path).size() == 2);
  CHECK(RowStore(folder.path, {}, kKeys, Existing::resume).kept() == 2);
  CHECK(content(path) == with_digest(line_of("a")) + "\n" + with_digest(last) + "\n");
  put(path, first + last.substr(0, last.size() - 1));
  CHECK(merge_rows(folder.path).size() == 1);
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
  CHECK(content(folder.path + "/rows.jsonl") == with_digest(line_of("a")) + "\n" +
                                                    with_digest(line_of("b")) + "\n" +
                                                    with_digest(line_of("c")) + "\n");
}

TEST_CASE("rows that do not belong are refused by file and line", "[fast]") {
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl";
  put(path, line_of("z") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("rows.jsonl: line 1: a row from another sweep; use --fresh or --out " +
                             folder.path + "-2"));
  put(path, line_of("a") + "\n" + line_of("b", "0") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("line 2: a row of numerics version 0") && Contains("--keep-old"));
  {
    RowStore store(folder.path, {}, kKeys, Existing::keep_old);
    CHECK(store.kept() == 1);
  }
  CHECK(content(path) == with_digest(line_of("b", "0")) + "\n" + with_digest(line_of("a")) + "\n");
  put(path, "[1]\n" + line_of("a") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("line 1: expected a row"));
  CHECK_NOTHROW(RowStore(folder.path, {}, kKeys, Existing::fresh));
  CHECK(content(path).empty());
}

TEST_CASE("predictions of different versions do not mix", "[fast]") {
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl", now = line_of("a");
  std::string before = line_of("b");
  const std::string version = fmt::format(R"("version":{},)", kPredictionVersion);
  before.erase(before.find(version), version.size());  // as rows of the first version are
  put(path, before + "\n");
  CHECK(merge_rows(folder.path).size() == 1);
  for (const Existing existing : {Existing::resume, Existing::keep_old}) {
    CHECK_THROWS_WITH(
        RowStore(folder.path, {}, kKeys, existing),
        Contains(fmt::format("rows.jsonl: line 1: a row whose predictions have version "
                             "1, this program's have {}; use --fresh or --out {}-2",
                             kPredictionVersion, folder.path)));
  }
  CHECK(content(path) == before + "\n");
  put(path, now + "\n" + before + "\n");
  CHECK_THROWS_WITH(merge_rows(folder.path),
                    Contains(fmt::format("line 2: a row whose predictions have version 1, beside "
                                         "rows with version {}",
                                         kPredictionVersion)));
}

TEST_CASE("a damaged row is dropped, said and computed again; a report refuses it", "[fast]") {
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl";
  finish(folder.path);
  const std::string expected = content(path);
  const std::string second = with_digest(line_of("b"));
  const auto damaged = [&](const std::string& line) {
    std::string text = expected;
    return text.replace(text.find(second), second.size(), line);
  };
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string line = second;
    return line.replace(line.find(from), from.size(), to);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {edited(R"("top1":1)", R"("top1":0.9)"), "digest does not match"},
      {edited(R"("n":2)", R"("m":2)"), "digest does not match"},
      {edited(R"("key":"b")", R"("key":"a")"), "digest does not match"},
      {edited(R"("digest":")", R"("digest":7,"was":")"), "digest does not match"},
      {edited(R"("n":2)", R"("n":3,"n":2)"), "duplicate key 'n'"},
      {line_of("b"), "digest missing"},
      {edited("]", "}"), "not valid JSON"},
      {"garbage", "not valid JSON"},
  };
  for (const auto& [line, how] : cases) {
    INFO(line);
    put(path, damaged(line));
    const std::string what = "rows.jsonl: line 2: a damaged row (" + how + ")";
    CHECK_THROWS_WITH(merge_rows(folder.path), Contains(what));
    {
      const RowStore store(folder.path, {}, kKeys, Existing::resume);
      CHECK(store.kept() == 3);
      CHECK_FALSE(store.has("b"));
      REQUIRE(store.damaged().size() == 1);
      CHECK_THAT(store.damaged()[0], Contains(what + "; dropped, will be computed again"));
    }
    finish(folder.path);
    CHECK(content(path) == expected);
  }
  // White space and the order of keys are no damage: another program may have written them.
  put(path, damaged(numemu::policies::canonical_json(Json::parse(second))));
  CHECK(merge_rows(folder.path).size() == 4);
  CHECK(RowStore(folder.path, {}, kKeys, Existing::resume).damaged().empty());
}

TEST_CASE("rows without a digest are read as long as every key is known", "[fast]") {
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl";
  put(path, line_of("a") + "\n");
  CHECK(merge_rows(folder.path).size() == 1);
  CHECK(RowStore(folder.path, {}, kKeys, Existing::resume).kept() == 1);
  CHECK(content(path) == with_digest(line_of("a")) + "\n");  // new rows will carry theirs
  const Json layer = {{"name", "fc"}, {"sqnr", 1}};
  for (const auto& [pointer, value, message] :
       std::vector<std::tuple<const char*, Json, const char*>>{
           {"/metrics/sqnr_bd", 1, "metrics: unknown key 'sqnr_bd'; did you mean 'sqnr_db'"},
           {"/layer", 1, "unknown key 'layer'; did you mean 'layers'"},
           {"/layers", Json::array({layer}), "layers[0]: unknown key 'sqnr'"},
           {"/predicted/tensors", Json::array({layer}), "tensors[0]: unknown key 'name'"}}) {
    Json row = Json::parse(line_of("a"));
    at_path(row, pointer) = value;
    put(path, row.dump() + "\n");
    CHECK_THROWS_WITH(merge_rows(folder.path),
                      Contains("rows.jsonl: line 1: ") && Contains(message));
    CHECK_THROWS(RowStore(folder.path, {}, kKeys, Existing::resume));
  }
}

TEST_CASE("a link in a lock's place is refused and what it leads to is kept", "[fast]") {
  Folder folder;
  put(folder.path + "/precious", "kept");
  std::filesystem::create_symlink("precious", folder.path + "/.rows.jsonl.lock");
  for (const Existing existing : {Existing::resume, Existing::fresh})
    CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, existing), Contains("a symbolic link"));
  CHECK(content(folder.path + "/precious") == "kept");
}

TEST_CASE("the whole has one writer at a time; a shard counts its rows and drops them with fresh",
          "[fast]") {
  Folder folder;
  {
    RowStore first(folder.path, {}, kKeys, Existing::resume);
    CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                      Contains("another sweep is writing"));
    first.append("a", line_of("a"));
  }
  {
    RowStore shard(folder.path, Shard{0, 2}, {"a", "c"}, Existing::resume);
    CHECK(shard.kept() == 1);
    CHECK(shard.line("a") == with_digest(line_of("a")));
    shard.append("c", line_of("c"));
  }
  CHECK(content(folder.path + "/rows.0.jsonl") == with_digest(line_of("c")) + "\n");
  CHECK_NOTHROW(RowStore(folder.path, Shard{0, 2}, {"a", "c"}, Existing::fresh));
  CHECK_FALSE(std::filesystem::exists(folder.path + "/rows.jsonl"));
}

TEST_CASE("the whole takes over the rows of shards, killed in between too", "[fast]") {
  Folder one, folder;
  finish(one.path);
  const std::string whole = content(one.path + "/rows.jsonl");
  finish(folder.path, {0, 2}, {"a", "c"});
  finish(folder.path, {1, 2}, {"b", "d"});
  const std::string shard = content(folder.path + "/rows.1.jsonl");
  put(folder.path + "/rows.1.jsonl", shard.substr(0, shard.size() - 20));  // lost its last row
  {
    RowStore store(folder.path, {}, kKeys, Existing::resume);
    CHECK(store.kept() == 3);
    CHECK_FALSE(std::filesystem::exists(folder.path + "/rows.0.jsonl"));
    CHECK_FALSE(std::filesystem::exists(folder.path + "/.rows.1.jsonl.lock"));
    store.append("d", line_of("d"));
  }
  CHECK(content(folder.path + "/rows.jsonl") == whole);
  // Killed after it wrote its own file, before it removed theirs; a report reads both.
  put(folder.path + "/rows.1.jsonl", shard);
  CHECK(merge_rows(folder.path).size() == 4);
  finish(folder.path);
  CHECK(content(folder.path + "/rows.jsonl") == whole);
  CHECK_FALSE(std::filesystem::exists(folder.path + "/rows.1.jsonl"));
  put(folder.path + "/rows.1.jsonl", line_of("x") + "\n");
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume),
                    Contains("rows.1.jsonl: line 1: a row from another sweep"));
}

TEST_CASE("two writers of a shard take no lock and lose nothing, whatever one damages", "[fast]") {
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(fmt::format("key{}", i));
  Folder one, folder;
  finish(one.path, {}, keys);
  const std::string whole = content(one.path + "/rows.jsonl");
  const Shard shard{0, 2};
  const std::string path = folder.path + "/rows.0.jsonl";
  for (int round = 0; round < 3; ++round) {
    pid_t writers[2];
    for (pid_t& writer : writers) {
      writer = fork();
      if (writer != 0) continue;
      RowStore store(folder.path, shard, keys, Existing::resume);
      for (const std::string& key : keys) {
        if (!store.has(key)) store.append(key, line_of(key));
      }
      store.finish();
      _exit(0);
    }
    if (round == 1) kill(writers[0], SIGKILL);
    for (const pid_t writer : writers) {
      int status = 0;
      REQUIRE(waitpid(writer, &status, 0) == writer);
      if (writer == writers[1]) CHECK(status == 0);
    }
    // A machine that did not see how long the file was by then wrote over half a row.
    std::string text = content(path);
    REQUIRE(text.size() > 1000);
    if (round < 2) put(path, text.replace(600, 40, std::string(40, '\0')));
  }
  RowStore store(folder.path, {}, keys, Existing::resume);
  CHECK(store.kept() == keys.size());
  CHECK(content(folder.path + "/rows.jsonl") == whole);
}

TEST_CASE("a shard writes again what a second writer's file lost", "[fast]") {
  Folder folder;
  RowStore store(folder.path, Shard{0, 2}, {"a", "c"}, Existing::resume);
  store.append("a", line_of("a"));
  store.append("c", line_of("c"));
  const std::string path = folder.path + "/rows.0.jsonl", text = content(path);
  put(path, with_digest(line_of("c")) + "\n");
  store.finish();
  CHECK(content(path) == with_digest(line_of("c")) + "\n" + with_digest(line_of("a")) + "\n");
  store.finish();
  CHECK(content(path).size() == text.size());
}

TEST_CASE("a lock that a dead machine left does not stop a shard", "[fast]") {
  Folder folder;
  put(folder.path + "/.rows.0.jsonl.lock", "");
  const int held = ::open((folder.path + "/.rows.0.jsonl.lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(held, LOCK_EX | LOCK_NB) == 0);
  finish(folder.path, {0, 2}, {"a", "c"});
  ::close(held);
}

TEST_CASE("different numbers of shards do not mix", "[fast]") {
  Folder folder;
  finish(folder.path, {0, 2}, {"a", "c"});
  CHECK_THROWS_WITH(
      RowStore(folder.path, Shard{1, 3}, {"b"}, Existing::resume),
      Contains("rows.0.jsonl: was written with another --shard; use --fresh or --out " +
               folder.path + "-2"));
  CHECK_THROWS_WITH(RowStore(folder.path, Shard{0, 3}, {"a", "d"}, Existing::resume),
                    Contains("rows.0.jsonl: was written with another --shard"));
  finish(folder.path, {1, 2}, {"b", "d"});
  CHECK_NOTHROW(RowStore(folder.path, Shard{0, 2}, {"a", "c"}, Existing::fresh));
  CHECK(std::filesystem::exists(folder.path + "/rows.1.jsonl"));  // of the same split
  CHECK_NOTHROW(RowStore(folder.path, Shard{0, 3}, {"a", "d"}, Existing::fresh));
  CHECK_FALSE(std::filesystem::exists(folder.path + "/rows.1.jsonl"));
  // Files copied without their locks: an index beyond the number tells.
  Folder copied;
  put(copied.path + "/rows.2.jsonl", line_of("c") + "\n");
  CHECK_THROWS_WITH(RowStore(copied.path, Shard{0, 2}, {"a", "c"}, Existing::resume),
                    Contains("rows.2.jsonl: was written with another --shard"));
  // Other files' names are left alone.
  put(folder.path + "/rows.backup.jsonl", "mine\n");
  CHECK_NOTHROW(RowStore(folder.path, {}, kKeys, Existing::fresh));
  CHECK(std::filesystem::exists(folder.path + "/rows.backup.jsonl"));
}

TEST_CASE("a row without a key that reports need is refused by that key", "[fast]") {
  const Json whole = Json::parse(line_of("a"));
  Folder folder;
  const std::string path = folder.path + "/rows.jsonl";
  const auto check_refused = [&](const Json& row, const std::string& key) {
    INFO(key);
    put(path, row.dump() + "\n");
    const auto message = Contains("rows.jsonl: line 1: expected a row with " + key + " (");
    CHECK_THROWS_WITH(merge_rows(folder.path), message);
    CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::resume), message);
  };
  for (const std::string key :
       {"key", "version", "point.net", "point.data", "point.recipe.roles.weight",
        "point.recipe.roles.activation", "point.recipe.gemms.fprop.unit", "bits.weight",
        "bits.activation", "metrics.top1", "metrics.n", "metrics.ci95", "metrics.loss",
        "predicted.tensors", "layers"}) {
    std::string pointer = "/" + key;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    const std::size_t slash = pointer.rfind('/');
    Json without = whole, wrong = whole;
    (slash == 0 ? without : at_path(without, pointer.substr(0, slash)))
        .erase(pointer.substr(slash + 1));
    at_path(wrong, pointer) = Json::array({1});
    check_refused(without, key);
    if (key != "predicted.tensors") check_refused(wrong, key);
  }
  Json row = whole;
  row["point"] = Json::array();
  check_refused(row, "point.net");
  row = whole;
  row["predicted"] = nullptr;
  check_refused(row, "predicted.tensors");
  row = whole;
  row["point"]["recipe"]["roles"]["weight"] = {{"format", "int8"}};
  check_refused(row, "point.recipe.roles.weight");
  put(path, "[1]\n");
  CHECK_THROWS_WITH(merge_rows(folder.path), Contains("line 1: expected a row (a JSON object)"));
  put(path, whole.dump() + "\n");
  CHECK(merge_rows(folder.path).size() == 1);
}

TEST_CASE("shards merge to the rows of one run; differing duplicates are refused", "[fast]") {
  Folder folder;
  finish(folder.path, {0, 2}, {"a", "c"});
  finish(folder.path, {1, 2}, {"b", "d"});
  std::string merged;
  for (const auto& row : merge_rows(folder.path)) merged += row.key;
  CHECK(merged == "abcd");
  put(folder.path + "/rows.1.jsonl", line_of("a") + " \n");
  CHECK_THROWS_WITH(merge_rows(folder.path),
                    Contains("rows.1.jsonl: line 1: differs from another row"));
  Folder empty;
  CHECK_THROWS_WITH(merge_rows(empty.path), Contains("expected rows.jsonl"));
  CHECK_THROWS_WITH(merge_rows("/nonexistent"), Contains("/nonexistent"));
}

TEST_CASE("shards are written i/n", "[fast]") {
  CHECK(parse_shard("1/3").index == 1);
  CHECK(parse_shard("1/3").count == 3);
  CHECK(parse_shard("0/1").whole());
  for (const char* wrong :
       {"3/3", "-1/2", "-0/2", "+0/2", "1", "1/0", "a/b", "1/2x", "", "/", "0/", "/2", " 0/2",
        "0/ 2", "0/2 ", "0/2/3", "0/4294967297", "4294967296/4294967297"})
    CHECK_THROWS_WITH(parse_shard(wrong), Contains("--shard"));
}

TEST_CASE("a file of another name has rows of its own kind and keeps those of other keys",
          "[fast]") {
  const RowFile file{"things", "thing", [](const Json& row) { return row.contains("x"); }, "x"};
  Folder folder;
  const std::string path = folder.path + "/things.jsonl";
  const auto line = [](const char* key) {
    return Json{{"key", key}, {"x", 1}, {"version", numemu::kNumericsVersion}}.dump();
  };
  put(path, line("z") + "\n" + line("b") + "\n");
  {
    RowStore store(file, folder.path, {"a", "b"}, Existing::resume);
    CHECK(store.kept() == 1);
    CHECK(store.line("b") == with_digest(line("b")));
    CHECK_THROWS_WITH(RowStore(file, folder.path, {}, Existing::resume),
                      Contains("another thing is writing"));
    CHECK_NOTHROW(RowStore(folder.path, {}, kKeys, Existing::resume));  // rows.jsonl is not locked
    store.append("a", line("a"));
  }
  CHECK(content(path) == with_digest(line("z")) + "\n" + with_digest(line("a")) + "\n" +
                             with_digest(line("b")) + "\n");
  put(path, line_of("a") + "\n");
  CHECK_THROWS_WITH(RowStore(file, folder.path, {"a"}, Existing::resume),
                    Contains("things.jsonl: line 1: expected a row with x"));
}

TEST_CASE("a conclusion from other rows does not stay beside new ones", "[fast]") {
  const char* const name =
      GENERATE("experiment.json", "report.html", "report.csv", "report.sqlite", "report.md");
  INFO(name);
  const Folder folder;
  const std::string conclusion = folder.path + "/" + name;
  const auto concluded = [&] {
    put(conclusion, "{}");
    return [&] { return std::filesystem::exists(conclusion); };
  };
  finish(folder.path);
  const auto stays = concluded();
  finish(folder.path);  // nothing is missing
  CHECK(stays());
  finish(folder.path, {}, {"d", "c", "b", "a"});  // nothing but the order changes
  CHECK(stays());
  {
    RowStore more(folder.path, {}, {"a", "b", "c", "d", "e"}, Existing::resume);
    CHECK(stays());  // its rows are all there still
    more.append("e", line_of("e"));
    CHECK_FALSE(stays());
  }
  concluded();
  RowStore(folder.path, {}, kKeys, Existing::fresh);
  CHECK_FALSE(stays());
  finish(folder.path);
  std::filesystem::create_directories(conclusion + "/x");  // a folder that is not empty
  CHECK_THROWS_WITH(RowStore(folder.path, {}, kKeys, Existing::fresh),
                    Contains(std::string(name) + ": cannot be removed ("));
}

}  // namespace row_store_test
