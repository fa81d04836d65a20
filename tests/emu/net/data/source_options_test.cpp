// Sets from users' files: arrays, tokens, texts with options, CIFAR-100, and their mistakes.
#include <fmt/format.h>

#include "emu/net/data/dataset.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/data/view.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::net::source_options_test {
namespace {

using numemu::test::message_of;

template <class T>
void write(const std::string& path, ArrayType type, const ArrayShape& shape,
           const std::vector<T>& data) {
  write_npy(path, type, shape, data.data());
}

Dataset load(const std::string& name) { return load_dataset(name, ""); }

TEST_CASE("options follow the path; other commas are part of it", "[fast]") {
  const SourceOptions o("s", "a,b=1,c/d.npy,n=3,mean=0.5/0.25", {"n", "mean"});
  CHECK(o.path() == "a,b=1,c/d.npy");
  CHECK(o.whole("n", 0, 1, 5) == 3);
  CHECK(o.numbers("mean") == std::vector<double>{0.5, 0.25});
  CHECK(SourceOptions("s", "n=2", {"n"}).path().empty());
  CHECK(message_of([&] { o.whole("n", 0, 4, 5); }) ==
        "data set s: n: expected a whole number from 4 to 5, found '3'");
  CHECK(message_of([] { SourceOptions("s", "p,n=1,n=2", {"n"}); }) ==
        "data set s: n is given twice");
  CHECK(message_of([] {
          SourceOptions("s", "p,means=1", {"n", "mean"});
        }) == "data set s: unknown option 'means'; did you mean 'mean'?");
  CHECK(message_of([] {
          SourceOptions("s", "mean=1,shuffle=1", {"n", "mean"});
        }) == "data set s: unknown option 'shuffle'; known: n, mean");
  CHECK(message_of([] {
          SourceOptions("s", "xx=p", {"x", "y"});
        }) == "data set s: unknown option 'xx'; did you mean 'x'?");
}

TEST_CASE("arrays of bytes are NCHW images unless told otherwise", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  std::vector<std::uint8_t> bytes(3 * 2 * 2 * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  write(x, ArrayType::uint8, {3, 2, 2, 2}, bytes);
  write<std::int64_t>(y, ArrayType::int64, {3}, {7, 300, 0});
  const std::string both = "npy:" + folder.path() + ",normalize=none";
  const Dataset data = load(both + ",test=2");
  CHECK(data.kind() == DataKind::images);
  CHECK(data.classes() == 301);
  CHECK(data.train_count() == 1);
  CHECK(data.calibration_count() == 1);
  Targets targets;
  const Tensor last = data.test_batch(1, 1, targets);
  CHECK(targets.classes == std::vector<std::int32_t>{0});
  for (int p = 0; p < 4; ++p) {
    for (int c = 0; c < 2; ++c)
      CHECK(last.data[p * 2 + c] == static_cast<float>((16 + c * 4 + p) / 255.0));
  }
  CHECK(load(both + ",layout=nhwc").test_batch(2, 1, targets).data[1] ==
        static_cast<float>(17 / 255.0));
  CHECK(data.note() ==
        "npy: x [3, 2, 2, 2] uint8 as NCHW images; y [3] int64, 301 classes; 1 training, 0 "
        "validation, 2 test samples");
  CHECK(load(both).digest() != data.digest());
  const Dataset referred = with_test_reference(load(both));
  CHECK(referred.calibration_count() == 3);
  CHECK(calibration_note(referred).starts_with("All samples are of the test; noise is measured"));
  CHECK(load(both + ",test=2").digest() == data.digest());
  CHECK(message_of([&] { load("npy:" + folder.path()); }) ==
        x + ": uint8: expected normalize=imagenet|cifar|none or mean=,deviation=");
  CHECK(message_of([&] { load(both + ",classes=300"); }) ==
        y + ": element 1: expected a class from 0 to 299, found 300");
  for (const std::int64_t label : {std::int64_t{1} << 40, std::int64_t{-2147483649}, INT64_MAX}) {
    write<std::int64_t>(y, ArrayType::int64, {3}, {7, label, 0});
    CHECK(message_of([&] { load(both); }) ==
          fmt::format("{}: element 1: expected a class from 0 to 16777215, found {}", y, label));
  }
  // No label is taken for another that is the same number in float32.
  write<std::int64_t>(y, ArrayType::int64, {3}, {7, 2147483640, 0});
  CHECK_FALSE(message_of([&] { load(both + ",ignore=2147483647"); }).empty());
  write<std::uint64_t>(y, ArrayType::uint64, {3}, {7, UINT64_MAX, 0});
  CHECK(message_of([&] { load(both); }).ends_with("found 18446744073709551615"));
  write<std::int64_t>(y, ArrayType::int64, {3}, {7, 300, 0});
  CHECK(message_of([&] { load(both + ",test=4"); }) ==
        "data set npy: expected at most 3 samples for test and validation, found 4");
}

TEST_CASE("targets of arrays are values, class maps with ignored places, or none", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string x = folder / "a.npy", y = folder / "b.npy", z = folder / "z.npy";
  write<float>(x, ArrayType::float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  write<double>(y, ArrayType::float64, {2, 1}, {0.5, -2});
  Targets targets;
  const Dataset values = load("npy:x=" + x + ",y=" + y);
  CHECK(values.target() == TargetKind::values);
  CHECK(values.kind() == DataKind::arrays);
  CHECK(values.test_batch(0, 2, targets).data == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(targets.values == std::vector<float>{0.5f, -2});
  write<std::uint8_t>(z, ArrayType::uint8, {2, 1, 2}, {1, 255, 0, 20});
  const Dataset maps = load("npy:x=" + x + ",y=" + z + ",ignore=255");
  maps.test_batch(0, 2, targets);
  CHECK(targets.classes == std::vector<std::int32_t>{1, kNoClass, 0, 20});
  CHECK(maps.target_shape() == Shape{1, 2});
  CHECK(maps.classes() == 21);
  CHECK(load("npy:x=" + x).target() == TargetKind::none);
  // Samples for calibration need no targets.
  const Dataset own = load("npy:x=" + x + ",test-x=" + x + ",test-y=" + z);
  CHECK(own.calibration_count() == 2);
  CHECK(own.test_count() == 2);
  CHECK(message_of([&] { load("npy:x=" + x + ",y=" + y + ",test-x=" + x); }) ==
        "data set npy: expected test-y, as there is y");
  CHECK(message_of([&] { load("npy:" + folder.path()); }) ==
        "data set npy: expected npy:DIR, npy:FILE.npz or npy:x=FILE,y=FILE");
}

TEST_CASE("tokens of 16 and 32 bits in windows of any length", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  std::string narrow, wide;
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t token = 60'000 + i;
    narrow.append(reinterpret_cast<const char*>(&token), 2);
    wide.append(reinterpret_cast<const char*>(&token), 4);
  }
  numemu::test::write_file(folder / "n", narrow);
  numemu::test::write_file(folder / "w", wide);
  const Dataset data = load("tokens:" + (folder / "n") + ",context=6");
  CHECK(data.kind() == DataKind::text);
  CHECK(data.classes() == 60'400);
  CHECK(data.test_count() == 3);
  Targets targets, others;
  const Tensor x = data.test_batch(1, 1, targets);
  CHECK(x.data.front() == 60'386);
  CHECK(targets.classes.front() == 60'387);
  CHECK(targets.classes.back() == 60'392);
  const Dataset whole = load("tokens:" + (folder / "w") + ",width=32,context=6,test=all");
  CHECK(whole.test_count() == 66);
  CHECK(whole.calibration_count() == 0);
  CHECK(whole.test_batch(1, 1, others).data.front() == 60'006);
  const std::string n = folder / "n";
  CHECK(message_of([&] { load("tokens:" + n + ",vocabulary=60001,context=6"); }) ==
        n + ": byte 2: expected a token from 0 to 60000, found 60001");
  CHECK(message_of([&] { load("tokens:" + n + ",context=20"); }) ==
        n + ": expected at least 21 tokens for test, found 20 of 400");
  numemu::test::write_file(folder / "n", narrow + "x");
  CHECK(message_of([&] { load("tokens:" + n); }) ==
        n + ": byte 800: expected whole tokens of 2 bytes, found 1 more");
}

TEST_CASE("a text with a window and a vocabulary of its own", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const std::string path = folder / "t", other = folder / "v";
  numemu::test::write_file(path, std::string(200, 'b') + std::string(200, 'c'));
  numemu::test::write_file(other, "abc");
  const Dataset plain = load("text:" + path + ",context=8");
  CHECK(plain.classes() == 2);
  CHECK(plain.input_shape() == Shape{8});
  CHECK(load("text:" + path + ",context=8,vocabulary=bytes").classes() == 256);
  const Dataset given = load("text:" + path + ",context=8,vocabulary=" + other + ",test=all");
  CHECK(given.classes() == 3);
  CHECK(given.test_count() == 49);
  Targets targets;
  CHECK(given.test_batch(0, 1, targets).data == std::vector<float>(8, 1));
  numemu::test::write_file(other, "ab");
  CHECK(message_of([&] { load("text:" + path + ",context=8,vocabulary=" + other); }) ==
        path + ": byte 200: expected a character of the vocabulary, found byte 99");
}

TEST_CASE("CIFAR-100 has a coarse label before the fine one", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const auto records = [](std::int64_t count) {
    std::string bytes(static_cast<std::size_t>(count * 3074), '\0');
    for (std::int64_t i = 0; i < count; ++i) {
      bytes[i * 3074] = '\x13';
      bytes[i * 3074 + 1] = static_cast<char>(i % 100);
      bytes[i * 3074 + 2] = '\xff';
    }
    return bytes;
  };
  numemu::test::write_file(folder / "train.bin", records(50'000));
  numemu::test::write_file(folder / "test.bin", records(10'000));
  const Dataset data = load("cifar100:" + folder.path());
  CHECK(data.classes() == 100);
  CHECK(data.train_count() == 45'000);
  Targets targets;
  const Tensor x = data.test_batch(199, 1, targets);
  CHECK(targets.classes == std::vector<std::int32_t>{99});
  CHECK(x.data[0] == static_cast<float>((1 - 0.485) / 0.229));
  CHECK(x.data[1] == static_cast<float>((0 - 0.456) / 0.224));
  std::string bad = records(10'000);
  bad[3074 + 1] = 100;
  numemu::test::write_file(folder / "test.bin", bad);
  CHECK(message_of([&] { load("cifar100:" + folder.path()); }) ==
        (folder / "test.bin") + ": byte 3075: expected a label of 0..99, found 100");
}

}  // namespace
}  // namespace numemu::net::source_options_test
