// The program as a user runs it: in a scratch folder, with its exit code and both streams.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::test {

struct Result {
  int code = -1;
  std::string out, err;
};

/// A scratch folder that is also the program's cache.
struct Scratch {
  std::string path;
  Scratch() {
    char name[] = "/tmp/numemu-cli-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    write_file(path + "/" + name, text);
    return path + "/" + name;
  }
  /// `before` stands in front of the program ("ulimit -f 8;"), `err` is where its stderr goes.
  Result run(const std::string& arguments, const std::string& before = "",
             const std::string& err = "err.txt") const {
    const std::string command = "cd " + path + " && export NUMEMU_CACHE=" + path + "/cache; " +
                                before + " '" NUMEMU_PROGRAM "' " + arguments + " >out.txt 2>" +
                                err;
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(path + "/out.txt"),
            read_file(path + "/err.txt")};
  }
};

/// Exit code 2, nothing on stdout, one line on stderr that holds the text.
inline void check_refused(const Result& result, const std::string& text) {
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, Catch::Contains(text));
}

}  // namespace numemu::test
