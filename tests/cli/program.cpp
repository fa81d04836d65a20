// Runs the program by the shell.
#include "tests/cli/program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::test {

Scratch::Scratch() {
  char name[] = "/tmp/numemu-cli-XXXXXX";
  path = ::mkdtemp(name);
}

Scratch::~Scratch() { std::filesystem::remove_all(path); }

std::string Scratch::file(const std::string& name, const std::string& text) const {
  write_file(path + "/" + name, text);
  return path + "/" + name;
}

Result Scratch::run(const std::string& arguments, const std::string& before,
                    const std::string& err) const {
  const std::string command = "cd " + path + " && export NUMEMU_CACHE=" + path + "/cache; " +
                              before + " '" NUMEMU_PROGRAM "' " + arguments + " >out.txt 2>" + err;
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(path + "/out.txt"),
          read_file(path + "/err.txt")};
}

void check_refused(const Result& result, const std::string& text) {
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, Catch::Contains(text));
}

}  // namespace numemu::test
