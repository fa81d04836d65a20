// Trials: each is run once, found again, and the file is the same bytes after any interruption.
#include "experiments/engine/trials.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "experiments/engine/row.hpp"
#include "formats/version.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace trials_test {

using namespace numemu::experiments;
using Catch::Contains;
using numemu::Json;
using numemu::test::message_of;

namespace {

ExperimentRun run_in(const std::string& folder, Existing existing = Existing::resume) {
  ExperimentRun run{
      .settings = Settings({}, Size::smoke, {}), .out = folder, .folders = {}, .hooks = {}};
  run.existing = existing;
  return run;
}

/// Trials "a", "b", ... whose results are their squares; `ran` gets what was computed.
std::vector<Trial> trials_of(const std::vector<int>& numbers, std::vector<int>& ran) {
  std::vector<Trial> trials;
  for (const int n : numbers) {
    trials.push_back({{{"n", n}, {"what", "square"}}, "square of " + std::to_string(n), [n, &ran] {
                        ran.push_back(n);
                        return Json{{"square", n * n}};
                      }});
  }
  return trials;
}

std::vector<int> squares(const std::vector<Json>& results) {
  std::vector<int> values;
  for (const Json& result : results) values.push_back(result["square"]);
  return values;
}

}  // namespace

TEST_CASE("trials run once each, in order, and are found again", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string path = folder.path() + "/trials.jsonl";
  std::vector<int> ran;
  CHECK(squares(run_trials(run_in(folder.path()), trials_of({3, 1, 3, 2}, ran))) ==
        std::vector{9, 1, 9, 4});
  CHECK(ran == std::vector{3, 1, 2});
  const std::string text = numemu::test::read_file(path);
  const Json first = Json::parse(text.substr(0, text.find('\n')));
  CHECK(first["key"] == row_key(first["point"]));
  CHECK(first["point"] == Json{{"n", 3}, {"what", "square"}});
  CHECK(first["result"]["square"] == 9);
  CHECK(first["version"] == numemu::kNumericsVersion);

  ran.clear();
  CHECK(squares(run_trials(run_in(folder.path()), trials_of({3, 1, 2}, ran))) ==
        std::vector{9, 1, 4});
  CHECK(ran.empty());
  CHECK(numemu::test::read_file(path) == text);
}

TEST_CASE("shards run their trials and go on once nothing is missing; the whole takes them over",
          "[fast]") {
  const std::vector<int> first = {3, 1, 3, 2, 5}, second = {7, 8, 9};
  std::vector<int> ran;
  const auto run_both = [&](const std::string& folder, const Shard& shard, bool at_once) {
    ExperimentRun run = run_in(folder);
    run.shard = shard;
    ran.clear();
    try {
      for (const std::vector<int>& numbers : {first, second}) {
        if (at_once) {
          omp_set_num_threads(1);
          run_trials_at_once(run, trials_of(numbers, ran));
        } else {
          run_trials(run, trials_of(numbers, ran));
        }
      }
    } catch (const OthersMissing&) {
      return false;
    }
    return true;
  };
  const int threads = omp_get_max_threads();
  for (const bool at_once : {false, true}) {
    const numemu::test::TemporaryFolder one, folder;
    CHECK(run_both(one.path(), {}, at_once));
    CHECK_FALSE(run_both(folder.path(), {0, 2}, at_once));
    CHECK(ran == std::vector{3, 2});  // a trial that repeats is no shard's
    CHECK_FALSE(run_both(folder.path(), {1, 2}, at_once));
    CHECK(ran == std::vector{1, 5, 8});
    CHECK(run_both(folder.path(), {0, 2}, at_once));
    CHECK(ran == std::vector{7, 9});
    CHECK(run_both(folder.path(), {}, at_once));
    CHECK(ran.empty());
    CHECK(numemu::test::read_file(folder / "trials.jsonl") ==
          numemu::test::read_file(one / "trials.jsonl"));
    CHECK_FALSE(std::filesystem::exists(folder / "trials.0.jsonl"));
  }
  omp_set_num_threads(threads);
}

TEST_CASE("trials cut anywhere resume to the same bytes", "[fast]") {
  const numemu::test::TemporaryFolder whole;
  std::vector<int> ran;
  run_trials(run_in(whole.path()), trials_of({1, 2, 3}, ran));
  const std::string expected = numemu::test::read_file(whole.path() + "/trials.jsonl");
  for (std::size_t cut = 0; cut <= expected.size(); cut += 1 + cut % 23) {
    const numemu::test::TemporaryFolder folder;
    numemu::test::write_file(folder.path() + "/trials.jsonl", expected.substr(0, cut));
    REQUIRE(squares(run_trials(run_in(folder.path()), trials_of({1, 2, 3}, ran))) ==
            std::vector{1, 4, 9});
    REQUIRE(numemu::test::read_file(folder.path() + "/trials.jsonl") == expected);
  }
}

TEST_CASE("an experiment that stops in the middle keeps what it computed", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  std::vector<int> ran;
  std::vector<Trial> trials = trials_of({1, 2, 3}, ran);
  trials[1].run = []() -> Json { throw std::runtime_error("killed"); };
  CHECK_THROWS_WITH(run_trials(run_in(folder.path()), trials), "killed");
  CHECK(ran == std::vector{1});
  run_trials(run_in(folder.path()), trials_of({1, 2, 3}, ran));
  CHECK(ran == std::vector{1, 2, 3});
}

TEST_CASE("several calls of one experiment share the file, to the same bytes", "[fast]") {
  const auto both = [](const ExperimentRun& run, std::vector<int>& ran) {
    run_trials(run, trials_of({1, 2}, ran));
    run_trials(run, trials_of({2, 3}, ran));
  };
  const numemu::test::TemporaryFolder folder;
  const std::string path = folder.path() + "/trials.jsonl";
  std::vector<int> ran;
  both(run_in(folder.path()), ran);
  CHECK(ran == std::vector{1, 2, 3});
  const std::string expected = numemu::test::read_file(path);
  both(run_in(folder.path()), ran);
  CHECK(ran.size() == 3);
  CHECK(numemu::test::read_file(path) == expected);
  // --fresh drops everything once, not what the first call of the same run computed.
  both(run_in(folder.path(), Existing::fresh), ran);
  CHECK(ran == std::vector{1, 2, 3, 1, 2, 3});
  CHECK(numemu::test::read_file(path) == expected);
}

TEST_CASE("numbers that are not finite are null, computed or found", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::vector<Trial> trials = {{{{"n", 1}}, "", [] {
                                        return Json{{"x", std::nan("")}, {"y", 0.1}};
                                      }}};
  for (int time = 0; time < 2; ++time) {
    const Json result = run_trials(run_in(folder.path()), trials)[0];
    CHECK(result["x"].is_null());
    CHECK(result["y"] == 0.1);
  }
}

TEST_CASE("trials that do not belong are refused by file and line", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string path = folder.path() + "/trials.jsonl";
  std::vector<int> ran;
  const auto refusal = [&](const std::string& text, Existing existing = Existing::resume) {
    numemu::test::write_file(path, text);
    return message_of([&] { run_trials(run_in(folder.path(), existing), trials_of({1}, ran)); });
  };
  const Json point = {{"n", 1}, {"what", "square"}};
  const auto row = [&](const char* version) {
    return Json{{"key", row_key(point)},
                {"point", point},
                {"result", {{"square", 1}}},
                {"version", version}};
  };
  const std::string good = row(numemu::kNumericsVersion).dump() + "\n";
  CHECK_THAT(refusal(good + "[]\n"), Contains("trials.jsonl: line 2: expected a row"));
  for (const char* missing : {"key", "point", "result", "version"}) {
    Json less = row(numemu::kNumericsVersion);
    less.erase(missing);
    CHECK_THAT(refusal(less.dump() + "\n"),
               Contains("line 1: expected a row with ") && Contains(missing));
  }
  const std::string old = row("0").dump() + "\n";
  CHECK_THAT(refusal(old), Contains("line 1: a row of numerics version 0") &&
                               Contains("--keep-old, --fresh or --out "));
  CHECK(ran.empty());
  CHECK(refusal(old, Existing::keep_old).empty());
  CHECK(ran == std::vector{1});
  const std::string digested = with_digest(row(numemu::kNumericsVersion).dump()) + "\n";
  const std::string old_digested = with_digest(row("0").dump()) + "\n";
  CHECK(numemu::test::read_file(path) == old_digested + digested);
  CHECK(refusal("garbage\n", Existing::fresh).empty());
  CHECK(numemu::test::read_file(path) == digested);
}

TEST_CASE("a damaged trial is said once and run again, to the same bytes", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string path = folder.path() + "/trials.jsonl";
  std::vector<int> ran;
  run_trials(run_in(folder.path()), trials_of({1, 2, 3}, ran));
  const std::string expected = numemu::test::read_file(path);
  std::string edited = expected;
  const std::string result = R"("square":4)";
  edited.replace(edited.find(result), result.size(), R"("square":5)");
  numemu::test::write_file(path, edited);
  ran.clear();
  ExperimentRun run = run_in(folder.path());
  std::vector<std::string> said;
  run.hooks.warn = [&](const std::string& what) { said.push_back(what); };
  CHECK(squares(run_trials(run, trials_of({1, 2, 3}, ran))) == std::vector{1, 4, 9});
  run_trials(run, trials_of({1, 2, 3}, ran));
  CHECK(ran == std::vector{2});
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("trials.jsonl: line 2: a damaged row (digest does not match)"));
  CHECK(numemu::test::read_file(path) == expected);
}

TEST_CASE("one process writes trials at a time and says how far it is", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  std::vector<int> ran;
  std::vector<Trial> nested = trials_of({1}, ran);
  nested[0].run = [&] {
    run_trials(run_in(folder.path()), trials_of({2}, ran));
    return Json();
  };
  CHECK_THAT(message_of([&] { run_trials(run_in(folder.path()), nested); }),
             Contains("trials.jsonl: another experiment is writing to it"));

  run_trials(run_in(folder.path()), trials_of({2}, ran));
  ExperimentRun run = run_in(folder.path());
  std::vector<std::string> told;
  run.hooks.on_trial = [&](std::size_t done, std::size_t kept, std::size_t total,
                           const std::string& label) {
    told.push_back(std::to_string(done) + " " + std::to_string(kept) + " " + std::to_string(total) +
                   " " + label);
  };
  run_trials(run, trials_of({2, 3}, ran));
  CHECK(told == std::vector<std::string>{"0 1 2 square of 2", "1 1 2 square of 3", "2 1 2 "});
}

TEST_CASE("trials that run at once give the file of those one after the other", "[fast]") {
  std::vector<Trial> trials;
  std::atomic<int> ran = 0;
  for (int n = 0; n < 40; ++n) {
    trials.push_back({{{"n", n % 30}}, std::to_string(n), [n, &ran] {
                        ++ran;
                        return Json{{"square", n * n}};
                      }});
  }
  const numemu::test::TemporaryFolder one, many;
  const std::vector<Json> expected = run_trials(run_in(one.path()), trials);
  CHECK(ran == 30);
  std::vector<std::string> labels;
  ExperimentRun run = run_in(many.path());
  run.hooks.on_trial = [&](std::size_t, std::size_t, std::size_t, const std::string& label) {
    labels.push_back(label);
  };
  CHECK(run_trials_at_once(run, trials) == expected);
  CHECK(ran == 60);
  REQUIRE(labels.size() == 41);
  for (int n = 0; n < 40; ++n) REQUIRE(labels[n] == std::to_string(n));
  const std::string text = numemu::test::read_file(one.path() + "/trials.jsonl");
  CHECK(numemu::test::read_file(many.path() + "/trials.jsonl") == text);

  // A failure keeps the rows before it, and none after it.
  const numemu::test::TemporaryFolder cut;
  const std::function<Json()> whole = trials[17].run;
  trials[17].run = []() -> Json { throw std::runtime_error("killed"); };
  CHECK_THROWS_WITH(run_trials_at_once(run_in(cut.path()), trials), "killed");
  const std::string part = numemu::test::read_file(cut.path() + "/trials.jsonl");
  CHECK(std::count(part.begin(), part.end(), '\n') == 17);
  trials[17].run = whole;
  CHECK(run_trials_at_once(run_in(cut.path()), trials) == expected);
  CHECK(numemu::test::read_file(cut.path() + "/trials.jsonl") == text);
}

TEST_CASE("a running mean and its error, typed cases", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const auto trial_of = [](int n) -> TypedTrial<MeanError> {
    return {{{"n", n}}, "", [n] {
              RunningMean mean;
              for (const int x : {n, n + 2}) mean.add(x);
              return mean.mean(1);
            }};
  };
  for (int found = 0; found < 2; ++found) {
    const std::vector<MeanError> means =
        run_cases<MeanError>(run_in(folder.path()), std::vector{1, 5}, trial_of, found == 1);
    REQUIRE(means.size() == 2);
    CHECK(means[1].mean == 6);
    CHECK(means[1].error == 1);
  }
  RunningMean mean;
  for (const double x : {1.0, 3.0}) mean.add(x);
  CHECK(mean.mean().error == Approx(std::sqrt(0.5)));
}

}  // namespace trials_test
