// Other programs: what they print, how they end, those that are not there.
#include "experiments/programs/program.hpp"

#include <filesystem>

#include "tests/catch.hpp"

namespace program_test {

using namespace numemu::experiments;

TEST_CASE("programs: output, status and signals", "[fast]") {
  const EndedProgram fine =
      run_program({"sh", "-c", "echo one; echo two >&2"}, ProgramOutput::kept);
  CHECK(fine.fine());
  CHECK(fine.out == "one\ntwo\n");
  CHECK(fine.first_line() == "one");
  CHECK(run_program({"sh", "-c", "exit 3"}, ProgramOutput::kept).status == 3);
  CHECK(run_program({"sh", "-c", "kill -9 $$"}, ProgramOutput::kept).status == 128 + 9);
  CHECK_FALSE(run_program({"false"}, ProgramOutput::kept).fine());
}

TEST_CASE("programs: one that is not there", "[fast]") {
  const EndedProgram none = run_program({"numemu-no-such-program"}, ProgramOutput::kept);
  CHECK(none.missing());
  CHECK_FALSE(none.fine());
}

TEST_CASE("programs: their folder goes with its contents", "[fast]") {
  std::string path;
  {
    const WorkFolder work;
    path = work / "";
    CHECK(std::filesystem::is_directory(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace program_test
