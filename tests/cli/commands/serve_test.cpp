// numemu serve from outside: a client that waits for each answer, the device of identify, a wrong
// line.
#include <chrono>

#include "api/oracle.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace serve_test {

namespace {

using Catch::Contains;
using namespace numemu::test;
using numemu::Json;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

TEST_CASE("serve: a client gets its answer before it asks again", "[fast]") {
  constexpr double kPatience = 20;  // seconds, on a loaded machine
  const auto device = numemu::api::QuestionDevice::of_command(
      "'" NUMEMU_PROGRAM "' serve --op mul --format float16 --flags", kPatience, now);
  char answer[64];
  const auto ask = [&](const char* question) {
    device->write(question);
    return std::string(answer, device->read(answer, sizeof answer));
  };
  CHECK(ask("3C00 4000\n") == "4000 00\n");
  CHECK(ask("# no question\n7BFF 7BFF\n# none either\n") == "7C00 05\n");
  CHECK(ask("3555 3555\n") == "2F1C 01\n");
}

TEST_CASE("serve: identify finds the unit that is served", "[fast]") {
  const Scratch s;
  for (const std::string unit : {"h100.wgmma.e4m3.f32", "emr.vpdpbusds", "a100.mma.f16.f32.sp24"}) {
    INFO(unit);
    const Result run =
        s.run("identify --like " + unit + " --device \"'" NUMEMU_PROGRAM "' serve --unit " + unit +
              "\" --confirm 200 --json");
    CHECK(run.code == 0);
    CHECK(run.err.empty());
    const Json json = Json::parse(run.out);
    CHECK(json.at("fits").get<bool>());
    bool named = false;
    for (const Json& preset : json.at("presets"))
      named = named || preset.get<std::string>().find(unit) != std::string::npos;
    CHECK(named);
  }
}

TEST_CASE("serve: a wrong line ends it with one line on stderr", "[fast]") {
  const Scratch s;
  const Result run = s.run("serve --op add --format bfloat16", "printf '3F80 3F80\\n3F80\\n' |");
  CHECK(run.code == 2);
  CHECK(run.out == "4000\n");
  CHECK(run.err == "numemu: standard input: line 2: expected 2 words (a, b), found 1\n");
  // Nobody reads the answers, or the questions cannot be read.
  const std::string serve = "serve --op mul --format float16";
  const std::string ask = "echo 3C00 4000 |";
  const Result full = s.run(serve, ask, "err.txt >/dev/full");
  CHECK(full.code == 2);
  CHECK_THAT(full.err, Contains("cannot write to standard output: No space left on device"));
  const Result closed = s.run(serve, ask, "err.txt >&-");
  CHECK(closed.code == 2);
  CHECK_THAT(closed.err, Contains("cannot write to standard output: Bad file descriptor"));
  const Result folder = s.run(serve + " < /");
  CHECK(folder.code == 2);
  CHECK_THAT(folder.err, Contains("standard input: cannot read: Is a directory"));
  check_refusals(s, {{"serve", "expected --unit or --op"},
                     {"serve --unit f32.sequential --op mul", "expected one of them"},
                     {"serve --unit emr.vpdpbusds --flags", "--flags: "}});
}

}  // namespace serve_test
