// Large runs computed again: a machine that follows the rule agrees in every hash, one that does
// not is found.
#include "tests/oracle/cuda/replay/hash_check.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/cuda/ask/ask.hpp"
#include "tests/oracle/cuda/paper/paper_machine.hpp"

namespace numemu::oracle::recording::replay {
namespace {

/// Runs one instruction on a paper H100 that follows rule number `rule`; returns the report of the
/// check.
std::string checked(const char* instruction, std::size_t rule, int& wrong) {
  const test::TemporaryFolder folder;
  PaperMachine machine("H100", rule);
  AskOptions options;
  options.unit = "H100";
  options.source = "paper";
  options.tiles = 320;
  ask(machine, find_instruction("mma", instruction), options, folder.path());
  std::FILE* out = std::tmpfile();
  wrong = check_hashes(folder.path(), "mma", 2, out);
  std::rewind(out);
  std::string text;
  for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) text += static_cast<char>(c);
  std::fclose(out);
  return text;
}

/// The place of the rule among those of the instruction.
std::size_t place_of(const char* instruction, const std::string& name) {
  const Instruction& i =
      instructions()[static_cast<std::size_t>(find_instruction("mma", instruction))];
  const std::vector<Rule> all = rules("H100", i);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].name == name) return r;
  FAIL("no rule " << name);
  return 0;
}

}  // namespace

TEST_CASE("a machine that follows its rule agrees in every hash", "[fast]") {
  int wrong = 1;
  const std::string text = checked("m16n8k8.f32.tf32.tf32.f32", 0, wrong);
  CHECK(wrong == 0);
  CHECK(text == "mma m16n8k8.f32.tf32.tf32.f32: G=8 F=25: 10 of 10 hashes agree\n");
}

TEST_CASE("a machine that keeps one bit less is found by its hashes", "[fast]") {
  const char* instruction = "m16n8k8.f32.tf32.tf32.f32";
  int wrong = 0;
  const std::string text = checked(instruction, place_of(instruction, "F=24"), wrong);
  CHECK(wrong == 1);
  CHECK(text.find("0 of 10 hashes agree, the first that differs covers tiles 0 to 31") !=
        std::string::npos);
}

}  // namespace numemu::oracle::recording::replay
