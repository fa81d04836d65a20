// A whole run on paper: the same bytes again, after a kill, with any number of threads; faults cost
// one answer.
#include "tests/oracle/cuda/ask/ask_all.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "emu/oracle/replay/record_judge.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/cuda/paper/respondent.hpp"

namespace numemu::oracle::recording::ask_all_test {
namespace {

AskAllOptions options_for(const std::string& out) {
  AskAllOptions options;
  options.out = out;
  options.only = "m16n8k8.f32.tf32";
  options.tiles = 320;
  options.patience_s = 60;
  return options;
}

using Files = std::map<std::string, std::string>;

Files files_of(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder)] = test::read_file(entry.path());
  return files;
}

void silent(const std::string&) {}

}  // namespace

TEST_CASE("a run writes its tables and records, the same for any number of threads", "[fast]") {
  const test::TemporaryFolder first, second;
  AskAllOptions options = options_for(first.path());
  std::vector<std::string> said;
  CHECK(ask_all(on_paper(), options, [&](const std::string& line) { said.push_back(line); }) == 0);
  REQUIRE(said.size() == 3);  // dense, sparse, the last line
  CHECK(said.front().find("[1/2] mma m16n8k8.f32.tf32.tf32.f32: 40960 dots") == 0);
  options.out = second.path();
  options.threads = 3;
  ask_all(on_paper(), options, silent);
  const Files files = files_of(first.path());
  CHECK(files == files_of(second.path()));
  for (const char* file : {"index.tsv", "probes.tsv", "steps.tsv", "hashes.tsv", "hashes.bin",
                           "layout.tsv", "records/mma__m16n8k8_f32_tf32_tf32_f32.bin"})
    CHECK(files.count(file) == 1);
  // Every dot of the large runs is that of the unit's fast path.
  int runs = 0;
  judge_hashes(first.path(), "", [&](const HashReplay& run) {
    ++runs;
    CHECK(run.differ == 0);
  });
  CHECK(runs == 2);
}

TEST_CASE("a killed run goes on to the same bytes", "[fast]") {
  const test::TemporaryFolder whole, killed;
  ask_all(on_paper(), options_for(whole.path()), silent);
  Respondent who = on_paper();
  const auto stop_after_one = [](const std::string&) { throw std::runtime_error("killed"); };
  CHECK_THROWS(ask_all(who, options_for(killed.path()), stop_after_one));
  who.machine = [made = false]() mutable {
    if (made) throw std::logic_error("asked twice");
    made = true;
    return std::make_unique<PaperMachine>("H100");
  };
  CHECK(ask_all(who, options_for(killed.path()), silent) == 0);
  CHECK(files_of(whole.path()) == files_of(killed.path()));
}

TEST_CASE("a machine that fails costs its answer and is told", "[fast]") {
  class Broken : public PaperMachine {
   public:
    Broken() : PaperMachine("H100") {}
    void run(Batch& batch) override {
      if (batch.instruction->sparsity != Sparsity::dense) throw std::runtime_error("no such thing");
      PaperMachine::run(batch);
    }
  };
  const test::TemporaryFolder folder;
  Respondent who = on_paper();
  who.machine = [] { return std::make_unique<Broken>(); };
  std::vector<std::string> said;
  CHECK(ask_all(who, options_for(folder.path()),
                [&](const std::string& line) { said.push_back(line); }) == 1);
  REQUIRE(said.size() == 3);
  CHECK(said[1].find("FAILED: no such thing") != std::string::npos);
  const Files files = files_of(folder.path());
  CHECK(files.count("records/mma__m16n8k8_f32_tf32_tf32_f32.bin") == 1);
  CHECK(files.at("layout.tsv").find("tf32.tf32.f32\tFAILED: no such thing\n") != std::string::npos);
}

TEST_CASE("of a wrong layout everything found is kept", "[fast]") {
  class Turned : public PaperMachine {
   public:
    Turned() : PaperMachine("H100") {}

   protected:
    void disturb(const Instruction& i, TileRegisters& held) const override {
      if (i.sparsity != Sparsity::dense) std::swap(held.metadata[0], held.metadata[4]);
    }
  };
  const test::TemporaryFolder folder;
  Respondent who = on_paper();
  who.machine = [] { return std::make_unique<Turned>(); };
  CHECK(ask_all(who, options_for(folder.path()), silent) == 1);
  const Files files = files_of(folder.path());
  const std::string faults = files.at("faults/mmasp__m16n8k8_f32_tf32_tf32_f32.txt");
  CHECK(faults.find("chooses the place of") != std::string::npos);
  CHECK(files.count("records/mmasp__m16n8k8_f32_tf32_tf32_f32.bin") == 0);
}

}  // namespace numemu::oracle::recording::ask_all_test
