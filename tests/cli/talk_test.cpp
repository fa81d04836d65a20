// Messages on stderr: short, without control characters; their failure does not stop the work.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace talk_test {

using namespace numemu::test;
using Catch::Contains;

TEST_CASE("a message is short and harmless whatever it quotes, and keeps its ends", "[fast]") {
  const Scratch s;
  const auto check_short = [](const Result& result, const std::string& start,
                              const std::string& end) {
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(result.err.size() <= 300);
    CHECK_THAT(result.err, Catch::StartsWith(start) && Catch::EndsWith(end + "\n"));
    CHECK(std::all_of(result.err.begin(), result.err.end() - 1,
                      [](char c) { return static_cast<unsigned char>(c) >= 0x20; }));
  };
  const std::string longest(5000, 'x');
  check_short(s.run("formats " + longest), "numemu: unknown format 'xxx",
              "xxx'; all: numemu formats");
  check_short(s.run("config --print " + longest + "/r.json"), "numemu: xxx",
              "x/r.json: cannot be opened for reading");
  check_short(s.run("experiment zap --set 'a b " + longest + "'"),
              "numemu: --set: expected key=value, not 'a b xxx", "xxx'");
  check_short(s.run("config --print '\x1b[31mr\xc2\x9b\x9b\xff.json'"),
              "numemu: ?[31mr???.json: cannot be opened", "for reading");
  s.file("r.json", "{\"numemu_recipe\": 1, \"\\u001b]0;x\\u0007\\u009b\": 1}");
  check_short(s.run("config --print r.json"),
              "numemu: r.json: unknown key '?]0;x?"
              "?'",
              "");
  // Quotes of other scripts are whole characters still.
  std::string greek;
  for (int i = 0; i < 400; ++i) greek += "\u03c0";
  const std::string err = s.run("formats " + greek).err;
  CHECK(err.size() <= 300);
  CHECK_THAT(err, Contains("\u03c0 ... \u03c0"));
}

TEST_CASE("what turns the direction of a line is shown, and left to scripts as it is", "[fast]") {
  const Scratch s;
  for (const char* control :
       {"\u200e", "\u200f", "\u2028", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff"}) {
    INFO(control);
    CHECK_THAT(s.run(std::string("config --print 'a") + control + "b.json'").err,
               Catch::StartsWith("numemu: a?b.json: "));
  }
  for (const char* letter : {"\u200d", "\u2027", "\u202f", "\u2065", "\u206a", "\ufefe"}) {
    CHECK_THAT(s.run(std::string("config --print 'a") + letter + "b.json'").err,
               Catch::StartsWith(std::string("numemu: a") + letter + "b.json: "));
  }
}

TEST_CASE("a file that may not grow leaves nothing behind", "[fast]") {
  const Scratch s;
  std::filesystem::remove_all(s.path + "/cache");  // only what the command makes counts
  std::string numbers;
  for (int i = 0; i < 20000; ++i) numbers += "1\n";
  s.file("x.txt", numbers);
  const std::string command = "encode --format float32 --text --in x.txt --out y.npy --quiet";
  const Result result = s.run(command, "ulimit -f 8;");
  check_refused(result, "y.npy: cannot write: File too large");
  CHECK(std::distance(std::filesystem::directory_iterator(s.path), {}) == 3);  // x, out, err
  CHECK(s.run(command).code == 0);
}

TEST_CASE("a reader that stops early ends the program in silence", "[fast]") {
  const Scratch s;
  const std::string command =
      "cd " + s.path + " && ( '" NUMEMU_PROGRAM "' units --json; echo $? >code ) 2>err.txt | true";
  std::system(command.c_str());
  CHECK(read_file(s.path + "/code") == "141\n");  // SIGPIPE
  CHECK(read_file(s.path + "/err.txt").empty());
}

}  // namespace talk_test
