// CIFAR-10 batches: the planes are interleaved, any subset of training batches will do, mistakes
// are named.
#include <array>

#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::cifar10_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::gzip;

constexpr int kRecords = 10'000, kRecord = 3073;

/// Record i has label (i + shift) % 10; channel c of pixel p is (i + p + 50 c) % 256.
std::string batch(int shift) {
  std::string bytes(std::size_t{kRecords} * kRecord, '\0');
  for (int i = 0; i < kRecords; ++i) {
    char* record = bytes.data() + std::size_t{kRecord} * i;
    record[0] = static_cast<char>((i + shift) % 10);
    for (int c = 0; c < 3; ++c) {
      for (int p = 0; p < 1024; ++p) record[1 + c * 1024 + p] = static_cast<char>(i + p + 50 * c);
    }
  }
  return bytes;
}

float normalised(int byte, int channel) {
  constexpr std::array<double, 3> mean = {0.485, 0.456, 0.406}, deviation = {0.229, 0.224, 0.225};
  return static_cast<float>((byte % 256 / 255.0 - mean[channel]) / deviation[channel]);
}

TEST_CASE("batches 2 and 4, one of them gzip, in order", "[fast]") {
  const TemporaryFolder folder;
  write_file(folder / "data_batch_4.bin", batch(1));
  write_file(folder / "data_batch_2.bin.gz", gzip(batch(0)));
  write_file(folder / "test_batch.bin", batch(2));
  const Dataset data = load_dataset("cifar10:" + folder.path(), "");
  CHECK(data.input_shape() == Shape{32, 32, 3});
  CHECK(data.train_count() == 15'000);
  CHECK(data.test_count() == 10'000);
  Targets targets;
  const Tensor x = data.train_batch({7, 10'007}, targets);
  CHECK(targets.classes == std::vector<std::int32_t>{7, 8});
  REQUIRE(x.shape == Shape{2, 32, 32, 3});
  for (int p : {0, 1, 32, 1023}) {
    for (int c = 0; c < 3; ++c) CHECK(x.data[p * 3 + c] == normalised(7 + p + 50 * c, c));
  }
}

TEST_CASE("mistakes in CIFAR-10 files", "[fast]") {
  const TemporaryFolder folder;
  const auto message = [&] {
    return message_of([&] { load_dataset("cifar10:" + folder.path(), ""); });
  };
  CHECK(message() == folder.path() +
                         ": expected at least one of data_batch_1.bin to data_batch_5.bin, plain "
                         "or .gz, found none");
  const std::string path = folder / "data_batch_1.bin";
  std::string bytes = batch(0);
  write_file(path, bytes);
  CHECK(message() == folder.path() + ": expected a file test_batch.bin, plain or .gz, found none");
  write_file(folder / "test_batch.bin", bytes.substr(1));
  CHECK(message() ==
        (folder / "test_batch.bin") +
            ": byte 0: expected 30730000 bytes of 10000 records of 3073, found 30729999");
  write_file(path, bytes + "x");
  CHECK(message() == path + ": byte 30730000: expected the end of the file, found more bytes");
  bytes[std::size_t{3073} * 42] = 10;
  write_file(path, bytes);
  CHECK(message() == path + ": byte 129066: expected a label of 0..9, found 10");
}

TEST_CASE("the real CIFAR-10 loads: one training batch and the test set", "[fast][shared]") {
  const std::string folder = test::shared_data();
  if (folder.empty()) {
    WARN("skipped: no shared data folder");
    return;
  }
  const Dataset data = load_dataset("cifar10:" + folder + "/cifar10", "");
  CHECK(data.train_count() == 5'000);
  CHECK(data.test_count() == 10'000);
  Targets targets;
  data.test_batch(0, 10'000, targets);
  std::vector<int> per_class(10);
  for (const std::int32_t label : targets.classes) ++per_class[label];
  CHECK(per_class == std::vector<int>(10, 1000));
}

}  // namespace
}  // namespace numemu::net::cifar10_test
