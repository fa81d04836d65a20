// The folder of a run: parts that are done stay, others begin again, and another run's are refused.
#include "tests/oracle/cuda/ask/parts.hpp"

#include <filesystem>
#include <stdexcept>

#include "emu/oracle/recording/whole_file.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording::parts_test {

TEST_CASE("parts that are done are put together in the order of tasks", "[fast]") {
  const test::TemporaryFolder folder;
  const TaskParts parts(folder.path(), "a GPU, seed 1");
  for (const int task : {2, 0, 1}) {
    const std::string part = parts.open(task);
    const std::string digit = std::to_string(task);
    write_whole_file(part + "/index.tsv", "file\tcount\n" + digit + "\t7\n");
    write_whole_file(part + "/records/" + digit + ".bin", digit);
    if (task != 1) parts.mark_done(task);
  }
  parts.mark_failed(1, "instruction\tanswer\nb\tFAILED\n");
  write_whole_file(parts.open(2) + "/layout.tsv", "instruction\tanswer\nc\tdone\n");
  write_whole_file(parts.open(2) + "/faults/c.txt", "all");
  parts.gather(3);
  CHECK(read_whole_file(folder / "index.tsv") == "file\tcount\n0\t7\n2\t7\n");
  CHECK(read_whole_file(folder / "records/2.bin") == "2");
  CHECK_FALSE(std::filesystem::exists(folder / "records/1.bin"));
  CHECK(read_whole_file(folder / "layout.tsv") == "instruction\tanswer\nb\tFAILED\nc\tdone\n");
  CHECK(read_whole_file(folder / "faults/c.txt") == "all");
  CHECK_FALSE(std::filesystem::exists(folder / "parts"));
  CHECK_THROWS_AS(TaskParts(folder.path(), "a GPU, seed 1"), std::runtime_error);
}

TEST_CASE("two runs do not work in one folder at a time", "[fast]") {
  const test::TemporaryFolder folder;
  const TaskParts parts(folder.path(), "a GPU, seed 1");
  CHECK_THROWS_WITH(TaskParts(folder.path(), "a GPU, seed 1"), Catch::Contains("another run"));
}

TEST_CASE("a run that was killed goes on, another run does not", "[fast]") {
  const test::TemporaryFolder folder;
  {
    const TaskParts parts(folder.path(), "a GPU, seed 1");
    write_whole_file(parts.open(0) + "/index.tsv", "whole");
    parts.mark_done(0);
    write_whole_file(parts.open(1) + "/index.tsv", "half");
  }
  const TaskParts again(folder.path(), "a GPU, seed 1");
  CHECK(again.done(0));
  CHECK_FALSE(again.done(1));
  CHECK(read_whole_file(again.open(0) + "/index.tsv") == "whole");
  CHECK_FALSE(std::filesystem::exists(again.open(1) + "/index.tsv"));
  CHECK_THROWS_WITH(TaskParts(folder.path(), "a GPU, seed 2"),
                    Catch::Contains("holds answers of a GPU, seed 1; expected a GPU, seed 2"));
}

}  // namespace numemu::oracle::recording::parts_test
