// Commands of several programs: each program answers for all of them, and says what builds one that
// is not there.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace run_test {

using namespace numemu::test;
using Catch::Contains;

namespace {

const std::vector<std::string> kPrograms = {"",          "-numbers", "-vectors",
                                            "-networks", "-tuning",  "-experiments"};

/// A command of each group, and a word of its own help.
const std::vector<std::pair<std::string, std::string>> kCommands = {{"encode", "--format"},
                                                                    {"identify", "--device"},
                                                                    {"sweep", "--shard"},
                                                                    {"tune", "--steps"},
                                                                    {"experiment", "--size"}};

Result run_program(const Scratch& s, const std::string& program, const std::string& arguments) {
  const std::string command = "cd " + s.path + " && '" + program + "' " + arguments;
  const int status = std::system((command + " >out.txt 2>err.txt").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(s.path + "/out.txt"),
          read_file(s.path + "/err.txt")};
}

}  // namespace

TEST_CASE("every program has the same help and runs the commands of all", "[fast]") {
  const Scratch s;
  const std::string help = s.run("--help").out;
  for (const std::string& suffix : kPrograms) {
    INFO(suffix);
    const std::string program = NUMEMU_PROGRAM + suffix;
    CHECK(run_program(s, program, "--help").out == help);
    check_refused(run_program(s, program, "sweeep"),
                  "unknown command 'sweeep'; did you mean 'sweep'?");
    for (const auto& [command, word] : kCommands) {
      const Result result = run_program(s, program, command + " --help");
      CHECK(result.code == 0);
      CHECK_THAT(result.out, Contains(word));
    }
  }
  // An option may stand before the command.
  CHECK_THAT(s.run("--help sweep").out, Contains("--shard"));
}

TEST_CASE("a command whose program is not built names what builds it", "[fast]") {
  const Scratch s;
  std::filesystem::copy_file(NUMEMU_PROGRAM, s.path + "/numemu");
  check_refused(run_program(s, "./numemu", "tune --help"),
                "numemu: command 'tune' is not built yet; './numemu tune' builds and runs it\n");
  check_refused(run_program(s, "./numemu", "--help"), "no command is built yet");
  // Found beside the file that a link leads to, not beside the link.
  std::filesystem::create_symlink(NUMEMU_PROGRAM, s.path + "/link");
  CHECK(run_program(s, "./link", "decode --help").code == 0);
  s.file("numemu-tuning", "no program");
  check_refused(run_program(s, "./numemu", "tune --help"),
                "numemu: numemu-tuning: Permission denied");
  // Without a command, too: some program is there.
  check_refused(run_program(s, "./numemu", "--help"), "numemu: numemu-tuning: Permission denied");
  s.file("numemu-tuning", "#!/no/such/interpreter\n");
  std::filesystem::permissions(s.path + "/numemu-tuning", std::filesystem::perms::owner_all);
  for (const char* arguments : {"tune --help", "--help"})
    check_refused(run_program(s, "./numemu", arguments),
                  "numemu: numemu-tuning: what it needs to run is missing: its interpreter");
  std::filesystem::remove(s.path + "/numemu-tuning");
  std::filesystem::create_symlink("nowhere", s.path + "/numemu-tuning");
  check_refused(run_program(s, "./numemu", "--help"), "or the file it links to");
}

}  // namespace run_test
