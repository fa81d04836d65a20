// Texts: the vocabulary, the windows and their targets, the splits by position; the text of the
// Markov chain.
#include "emu/net/data/text.hpp"

#include <cmath>
#include <map>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::text_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// 400 characters: the text repeats "dbca" but for position % 7 == 3, a newline.
std::string sample_text() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 7 == 3 ? '\n' : "dbca"[i % 4];
  return text;
}

TEST_CASE("windows and targets and splits of a text", "[fast]") {
  const std::string text = sample_text();
  const auto samples = std::make_shared<TextSamples>("t", bytes_of(text), 6);
  CHECK(samples->vocabulary() == "\nabcd");
  const Dataset data("text", samples);
  CHECK(data.kind() == DataKind::text);
  CHECK(data.classes() == 5);
  CHECK(data.input_shape() == Shape{6});
  CHECK(data.targets_per_sample() == 6);
  CHECK(data.train_count() == 59);      // of 360 characters: 59 x 6 + 1 and 5 left
  CHECK(data.validation_count() == 3);  // of 20
  CHECK(data.test_count() == 3);
  CHECK(data.calibration_count() == 59);

  Targets targets;
  const auto check_window = [&](const Tensor& x, std::int64_t row, std::size_t start) {
    for (std::size_t t = 0; t < 6; ++t) {
      const auto character = [&](double number) {
        return samples->vocabulary().at(static_cast<std::size_t>(number));
      };
      CHECK(character(x.data[row * 6 + t]) == text[start + t]);
      CHECK(character(targets.classes[row * 6 + t]) == text[start + t + 1]);
    }
  };
  const Tensor train = data.train_batch({58, 0}, targets);
  CHECK(train.shape == Shape{2, 6});
  CHECK(targets.classes.size() == 12);
  check_window(train, 0, 348);
  check_window(train, 1, 0);
  check_window(data.validation_batch(1, 2, targets), 1, 360 + 12);
  check_window(data.test_batch(2, 1, targets), 0, 380 + 12);
  check_window(data.calibration_batch(58, 1, targets), 0, 348);
  CHECK(message_of([&] { data.train_batch({59}, targets); }) ==
        "text: expected training windows 0..58, found 59");
  const Augmentation what{.flip = true};
  CHECK(message_of([&] { data.train_batch({0}, targets, &what); }) ==
        "text: augmentation: expected images, found text");
}

TEST_CASE("all 256 bytes can be characters", "[fast]") {
  std::string text;
  for (int i = 0; i < 2560; ++i) text += static_cast<char>(i * 7);
  const TextSamples samples("t", bytes_of(text), 8);
  CHECK(samples.facts().classes == 256);
  CHECK(samples.vocabulary()[200] == static_cast<char>(200));
}

TEST_CASE("text and context identify the set", "[fast]") {
  std::string text = sample_text();
  const std::string digest = TextSamples("t", bytes_of(text), 6).facts().digest;
  CHECK(digest.size() == 16);
  CHECK(TextSamples("u", bytes_of(text), 6).facts().digest == digest);
  CHECK(TextSamples("t", bytes_of(text), 5).facts().digest != digest);
  text[399] = 'b';
  CHECK(TextSamples("t", bytes_of(text), 6).facts().digest != digest);
}

TEST_CASE("texts come from files, plain or gzip", "[fast]") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10; ++i) text += sample_text();
  write_file(folder / "plain.txt", text);
  write_file(folder / "zipped", test::gzip(text));
  const Dataset plain = load_dataset("text:" + (folder / "plain.txt"), "");
  CHECK(plain.name() == "text");
  CHECK(plain.input_shape() == Shape{64});
  CHECK(plain.digest() == load_dataset("text:" + (folder / "zipped"), "").digest());
}

TEST_CASE("texts that are too short", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "short.txt";
  write_file(path, sample_text());
  CHECK(message_of([&] { load_dataset("text:" + path, ""); }) ==
        path + ": expected at least 65 characters for validation, found 20 of 400");
  write_file(path, "");
  CHECK(message_of([&] { load_dataset("text:" + path, ""); }) ==
        path + ": expected at least 65 characters for validation, found 0 of 0");
  CHECK(message_of([] { TextSamples("t", bytes_of(sample_text()), 0); }) ==
        "t: expected a context of at least 1 character");
  TextSamples("t", bytes_of(sample_text()), 19);  // 19 and the next of 20
  CHECK_THROWS(TextSamples("t", bytes_of(sample_text()), 20));
}

TEST_CASE("the shared text", "[fast][shared]") {
  const std::string folder = test::shared_data();
  if (folder.empty()) {
    WARN("skipped: no shared data folder");
    return;
  }
  const Dataset data = load_dataset("text:" + folder + "/text/shakespeare.txt", "");
  CHECK(data.classes() == 65);
  CHECK(data.train_count() == 15'685);
  CHECK(data.validation_count() == 871);
  CHECK(data.calibration_count() == 64);
}

}  // namespace

using namespace numemu;
using namespace numemu::net;

TEST_CASE("chain: the text is pinned", "[fast]") {
  const std::vector<std::uint8_t> text = chain::generate();
  CHECK(std::string(text.begin(), text.begin() + 32) == "oelipuzmxlaojgxcsxojgvexuwwwwwww");
  const Dataset data = load_dataset("chain", "unused");
  CHECK(data.digest() == "b28618c65dcb2a95");
  CHECK(data.kind() == DataKind::text);
  CHECK(data.classes() == 27);
  CHECK(data.train_count() == 14'745);
  CHECK(data.test_count() == 819);
}

TEST_CASE("chain: followers have the stated probabilities and their entropy", "[fast]") {
  const std::vector<std::uint8_t> text = chain::generate();
  std::map<std::string, std::map<char, double>> counts;
  for (std::size_t t = 2; t < text.size(); ++t)
    counts[{static_cast<char>(text[t - 2]), static_cast<char>(text[t - 1])}]
          [static_cast<char>(text[t])] += 1;
  double bits = 0, n = 0;
  for (const auto& [pair, after] : counts) {
    CHECK(after.size() <= 4);
    double all = 0;
    for (const auto& [letter, count] : after) all += count;
    for (const auto& [letter, count] : after) bits -= count * std::log2(count / all);
    n += all;
  }
  CHECK(counts.size() > 500);
  // The information of a character, 1, 2 or 3 bits, has the variance 3.75 - 1.75^2. Counts in place
  // of probabilities take 3 / (2 ln 2) bits off each pair.
  const double error = std::sqrt((3.75 - 1.75 * 1.75) / n);
  const double counted = 1.5 / std::log(2.0) * static_cast<double>(counts.size()) / n;
  CHECK(std::fabs(bits / n + counted - chain::kEntropyRate) < 4 * error);
}

}  // namespace numemu::net::text_test
