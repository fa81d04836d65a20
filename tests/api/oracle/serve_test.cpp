// Lines of operands answered: as vectors have the results, whatever the pieces, and up to a wrong
// line.
#include <algorithm>

#include "api/oracle.hpp"
#include "emu/oracle/identify/protocol.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace serve_test {

using namespace numemu;

namespace {

using Catch::Contains;

/// Operands and results of vectors, line by line.
struct Session {
  std::string questions, answers;
};

Session session_of(const api::VectorOptions& options, bool flags) {
  const api::Vectors vectors(options);
  oracle::Records records(vectors.layout(), vectors.size());
  vectors.fill(0, records);
  Session session;
  for (std::int64_t i = 0; i < vectors.size(); ++i) {
    std::string question, answer;
    for (std::size_t f = 0; f < vectors.layout().size(); ++f) {
      const oracle::Field& field = vectors.layout()[f];
      if (field.name == "flags" && !flags) continue;
      std::string& line = field.result ? answer : question;
      if (!line.empty()) line += ' ';
      append_words(field, records, static_cast<int>(f), i, line);
    }
    session.questions += question + "\n";
    session.answers += answer + "\n";
  }
  return session;
}

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

/// The answers to `questions`, given in pieces of `piece` bytes. No line waits while more are
/// asked for.
std::string answers(const api::VectorOptions& options, bool flags, const std::string& questions,
                    std::size_t piece) {
  std::string text;
  std::size_t given = 0;
  const auto read = [&](char* to, std::size_t most) {
    CHECK(lines(text) == lines(questions.substr(0, given)));
    const std::size_t count = questions.copy(to, std::min(most, piece), given);
    given += count;
    return count;
  };
  api::serve(options, flags, "questions", read, [&](const std::string& more) { text += more; });
  return text;
}

}  // namespace

TEST_CASE("api serve: the results of vectors, of units and operations", "[fast]") {
  struct Row {
    api::VectorOptions options;
    bool flags = false;
  };
  const std::vector<Row> rows = {
      {{.unit = "h100.wgmma.e4m3.f32", .n = 200}},
      {{.unit = "h100.wgmma.e4m3.f32", .n = 200}, true},
      {{.unit = "neutral.exact.mx32", .format_a = "float6_e2m3fn", .n = 100}},
      {{.unit = "intel.emr.vpdpbusds", .n = 100}},
      {{.unit = "neutral.mac.int20", .format_a = "int8", .k = 16, .n = 100}},
      {{.unit = "neutral.mac.e5m10.sr8", .format_a = "float16", .k = 4, .n = 100}},
      {{.unit = "f32.sequential", .format_a = "bfloat16", .k = 3, .n = 100}},
      {{.op = "convert", .from = "float32", .to = "float8_e4m3fn", .n = 100}, true},
      {{.op = "convert", .from = "float32", .to = "e5m2", .rounding = "sr(8)", .n = 100}},
      {{.op = "fma", .format = "float16", .n = 100}, true},
      {{.op = "dot", .format = "float8_e5m2", .to = "float32", .k = 5, .n = 100}},
  };
  for (const Row& row : rows) {
    INFO(row.options.unit << row.options.op);
    const Session session = session_of(row.options, row.flags);
    for (const std::size_t piece : {std::size_t{7}, std::size_t{1000}, session.questions.size()})
      CHECK(answers(row.options, row.flags, session.questions, piece) == session.answers);
  }
}

TEST_CASE("api serve: a sparse unit takes its metadata, and wrong ones name their line", "[fast]") {
  const api::VectorOptions options = {.unit = "a100.mma.f16.f32.sp24", .n = 100};
  const Session session = session_of(options, false);
  CHECK(answers(options, false, session.questions, 1 << 16) == session.answers);
  // The same element kept twice, in the third line.
  std::string questions = session.questions;
  const api::Vectors vectors(options);
  std::size_t at = questions.find('\n', questions.find('\n') + 1) + 1;
  for (const char* name : {"a", "b"}) {
    const auto f = static_cast<std::size_t>(oracle::find_field(vectors.layout(), name));
    at += static_cast<std::size_t>(vectors.layout()[f].count * (vectors.layout()[f].digits() + 1));
  }
  questions.replace(at, 3, "0 0");
  std::string text;
  std::size_t given = 0;
  const auto read = [&](char* to, std::size_t most) {
    const std::size_t count = questions.copy(to, most, given);
    given += count;
    return count;
  };
  CHECK_THROWS_WITH(
      api::serve(options, false, "questions", read, [&](const std::string& more) { text += more; }),
      Contains("questions: line 3: "));
  CHECK(lines(text) == 2);
  CHECK(session.answers.starts_with(text));
}

TEST_CASE("api serve: comments are passed over, a wrong line ends the answers", "[fast]") {
  const api::VectorOptions mul = {.op = "mul", .format = "float16"};
  const auto served = [](const api::VectorOptions& options, const std::string& questions) {
    std::string text;
    std::size_t given = 0;
    try {
      api::serve(
          options, false, "in",
          [&](char* to, std::size_t most) {
            const std::size_t count = questions.copy(to, most, given);
            given += count;
            return count;
          },
          [&](const std::string& more) { text += more; });
    } catch (const Error& error) {
      text += error.what();
    }
    return text;
  };
  CHECK(served(mul, "").empty());
  CHECK(served(mul, "# mine\n3C00 4000 # two\n\n// last\n3c00 4200") == "4000\n4200\n");
  CHECK(served(mul, "3C00 4000\n3C00\n3C00 4000\n") ==
        "4000\nin: line 2: expected 2 words (a, b), found 1");
  CHECK(served(mul, "3C00 4000\n3C00 40X0\n") ==
        "4000\nin: line 2: b: expected hexadecimal digits, found X or Z");
  CHECK(served(mul, "3C00 14000\n") == "in: line 1: b: expected at most 4 digits, found '14000'");
  CHECK(served(mul, "3C00 4000\r\n3C00 4200") == "4000\n4200\n");
  CHECK(served(mul, "3C00 4000\n3C") == "4000\nin: line 2: expected 2 words (a, b), found 1");
  const std::string byte_order_mark = "\xef\xbb\xbf", nul(1, '\0');
  for (const std::string& odd : {nul, byte_order_mark, std::string("\xff\xfe")})
    CHECK_THAT(served(mul, odd + "3C00 4000\n"), Contains("in: line 1: a: expected hexadecimal"));
  for (const char filling : {'3', ' ', '#'}) {
    CHECK(served(mul, "3C00 4000\n" + std::string(10'000'000, filling)) ==
          "4000\nin: line 2: expected at most 4116 bytes, found a longer line");
  }
  CHECK(served({.op = "mul", .format = "float6_e2m3fn"}, "1 4F\n") ==
        "in: line 1: b: expected a code of 6 bits, found '4F'");
  const api::VectorOptions unit = {.unit = "h100.wgmma.e4m3.f32", .k = 2};
  const std::string asked =
      "# numemu-questions 1 a=float8_e4m3fn b=float8_e4m3fn c=float32 d=float32 k=2\n";
  CHECK(served(unit, asked + "38 38 38 38 00000000\n") == "40000000\n");
  CHECK(served({.unit = "h100.wgmma.e4m3.f32", .k = 4}, asked) ==
        "in: line 1: expected '# numemu-questions 1 a=float8_e4m3fn b=float8_e4m3fn c=float32 "
        "d=float32 k=4', the operands of nvidia.h100.wgmma.e4m3.f32, found '" +
            asked.substr(0, asked.size() - 1) + "'");
  CHECK_THAT(served({.op = "mul"}, ""), Contains("--format"));
}

}  // namespace serve_test
