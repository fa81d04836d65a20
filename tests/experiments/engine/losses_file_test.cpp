// Losses beside rows: written, read, and named where they are missing, damaged or another's.
#include "experiments/engine/losses_file.hpp"

#include <cmath>
#include <filesystem>
#include <string_view>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace losses_file_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;

namespace {

const std::string kKey(64, 'a');

JudgedSums some() { return {&net::find_score("mse"), {2, {0.5, 1, 0.25, 1, HUGE_VAL, 1}}}; }

Row row_of(const Member<RowLosses>& losses) {
  Row row;
  row.key = kKey;
  row.losses = losses;
  return row;
}

/// The text of bytes, as answers of eight samples a byte.
RowAnswers answers_of(std::string_view bytes) {
  std::vector<std::uint8_t> right;
  for (const char byte : bytes)
    for (int bit = 0; bit < 8; ++bit) right.push_back(byte >> bit & 1);
  return row_answers(right);
}

}  // namespace

TEST_CASE("losses: written and read", "[fast]") {
  const test::TemporaryFolder folder;
  const Member<RowLosses> losses = write_losses(folder.path(), kKey, some());
  CHECK(losses->file == "losses/" + kKey + ".npy");
  const JudgedSums read = read_losses(folder.path(), row_of(losses));
  CHECK(read.score == some().score);
  CHECK(read.table.columns == 2);
  CHECK(read.table.sums == some().table.sums);
  CHECK_FALSE(write_losses(folder.path(), kKey, {}));
  remove_losses(folder.path());
  CHECK(std::filesystem::is_empty(folder / "losses"));
}

TEST_CASE("losses: what is not the row's is named", "[fast]") {
  const test::TemporaryFolder folder;
  const Member<RowLosses> losses = write_losses(folder.path(), kKey, some());
  const auto with = [&](std::string RowLosses::*member, const std::string& value) {
    RowLosses other = *losses;
    other.*member = value;
    return row_of(other);
  };
  CHECK_THROWS_WITH(read_losses(folder.path(), with(&RowLosses::file, "../" + kKey + ".npy")),
                    Contains("losses.file: expected losses/KEY.npy"));
  CHECK_THROWS_WITH(read_losses(folder.path(), with(&RowLosses::digest, "0")),
                    Contains(kKey + ".npy: byte 0: not the losses that were written"));
  CHECK_THROWS_WITH(read_losses(folder.path(), with(&RowLosses::score, "x")),
                    Contains("unknown metric"));
  CHECK_THROWS_WITH(read_losses(folder.path(), row_of({})), Contains("expected losses"));
  const std::string path = folder / losses->file;
  std::filesystem::resize_file(path, 100);
  CHECK_THROWS_WITH(read_losses(folder.path(), row_of(losses)), Contains(kKey + ".npy: "));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  CHECK_THROWS_WITH(read_losses(folder.path(), row_of(losses)),
                    Contains("expected at most 67108864 bytes of losses"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(read_losses(folder.path(), row_of(losses)), Contains(kKey + ".npy"));
}

TEST_CASE("losses: one column is none of a score", "[fast]") {
  const test::TemporaryFolder folder;
  JudgedSums odd = some();
  odd.table.columns = 1;
  CHECK_THROWS_WITH(
      read_losses(folder.path(), row_of(write_losses(folder.path(), kKey, odd))),
      Contains("expected float64 [samples, columns], columns even, found float64 [6, 1]"));
}

TEST_CASE("answers: bits of samples in base64 and back", "[fast]") {
  // Bytes 0x09 0x80 0x01.
  std::vector<std::uint8_t> right(17);
  right[0] = right[3] = right[15] = right[16] = 1;
  CHECK(row_answers(right).n == 17);
  CHECK(row_answers(right).right == "CYAB");
  for (const std::size_t n : {0, 1, 8, 9, 16, 17, 24, 1000, 10000}) {
    INFO(n);
    std::vector<std::uint8_t> some(n);
    for (std::size_t i = 0; i < n; ++i) some[i] = i * i % 7 < 3;
    const RowAnswers answers = row_answers(some);
    CHECK(read_answers(answers) == some);
    CHECK(answers.right.size() <= 1668);
  }
  CHECK(row_answers(std::vector<std::uint8_t>(50000, 1)).n == kMostAnswers);
}

TEST_CASE("answers: base64 of the vectors of RFC 4648, and back", "[fast]") {
  for (const auto& [plain, text] : {std::pair("", ""),
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    INFO(text);
    CHECK(answers_of(plain).right == text);
  }
}

TEST_CASE("answers: every byte in every place of a group is read back", "[fast]") {
  for (std::size_t length = 1; length <= 4; ++length) {
    for (std::size_t place = 0; place < length; ++place) {
      std::string bytes(length, '\xa5');
      for (int value = 0; value < 256; ++value) {
        bytes[place] = static_cast<char>(value);
        const RowAnswers answers = answers_of(bytes);
        CHECK(row_answers(read_answers(answers).value()).right == answers.right);
      }
    }
  }
}

TEST_CASE("answers: what is none gives nothing", "[fast]") {
  for (const RowAnswers& bad : {RowAnswers{8, ""}, RowAnswers{8, "AA"}, RowAnswers{8, "A!=="},
                                RowAnswers{1000000000, "AA=="}})
    CHECK_FALSE(read_answers(bad));
  // Texts that base64 does not give.
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "====", "Z===", "Zm 8",
                           "Zm9-", "=g==", "Zm9v\n"}) {
    INFO(text);
    for (const std::uint64_t bytes : {0, 1, 2, 3, 4}) CHECK_FALSE(read_answers({8 * bytes, text}));
  }
}

}  // namespace losses_file_test
