// Digests of sidecars against the files that are read.
#include "formats/storage/stored_array.hpp"

#include <filesystem>

#include "formats/storage/codes_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::stored_array_test {
namespace {

const std::uint8_t kOld[2] = {1, 2}, kNew[2] = {1, 3};

TEST_CASE("codes that changed after their sidecar are refused with the way out", "[fast]") {
  const test::TemporaryFolder folder;
  const Format& int8 = find_format("int8");
  for (const std::string name : {"c.npy", "c.safetensors"}) {
    const std::string path = folder / name;
    CAPTURE(path);
    write_codes(path, int8, {2}, kOld, {.numemu = "1"});
    CHECK(read_codes(path, {}).array.as<std::uint8_t>()[1] == 2);
    std::string bytes = test::read_file(path);
    bytes.back() ^= 1;
    test::write_file(path, bytes);
    const std::string message = path + ".json: sha256: stale, " + path +
                                " has changed since: write the codes again, or "
                                "delete the sidecar and give --format";
    CHECK(test::message_of([&] { read_codes(path, {}); }) == message);
    CHECK(test::message_of([&] { read_codes(path, {.format = &int8}); }) == message);
    CHECK(test::message_of([&] { read_numbers(path, {}); }) == message);
    std::filesystem::remove(path + ".json");
    CHECK(read_codes(path, {.format = &int8}).array.as<std::uint8_t>()[1] == 3);
  }
}

TEST_CASE("a sidecar without a digest is believed", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.npy";
  write_npy(path, ArrayType::uint8, {2}, kNew);
  pending_sidecar(path, {.numemu = "1", .format = "int8"}).commit();
  CHECK(read_codes(path, {}).array.as<std::uint8_t>()[1] == 3);
}

TEST_CASE("a digest covers tensors that are passed over", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "c.safetensors";
  const std::string header = R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                             R"("b":{"dtype":"I8","shape":[2],"data_offsets":[2,4]}})";
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
  test::write_file(path, length + header + "abcd");
  pending_sidecar(path, {.numemu = "1", .sha256 = sha256_hex(test::read_file(path))}).commit();
  for (const char* tensor : {"a", "b"})
    CHECK(read_codes(path, {.tensor = tensor}).array.elements() == 2);
  test::write_file(path, length + header + "abcz");
  for (const char* tensor : {"a", "b"}) {
    CHECK_THAT(test::message_of([&] { read_codes(path, {.tensor = tensor}); }),
               Catch::Contains("sha256: stale"));
  }
}

TEST_CASE("files of two runs are not read together", "[fast]") {
  const test::TemporaryFolder folder;
  const std::string codes = folder / "c.npy", scales = folder / "s.npy";
  const float scale = 2, other = 4;
  OutputFiles files;
  files.add_codes("codes", codes, find_format("int8"), {2}, kOld, {.numemu = "1"});
  files.add_array("scales", scales, ArrayType::float32, {}, &scale);
  files.publish();
  const auto read = [&](const std::string& path) {
    std::vector<StoredArray> both = open_together({{codes, "codes"}, {path, "scales"}});
    return read_array(both[1]).as<float>()[0];
  };
  CHECK(read(scales) == 2);
  write_npy(folder / "t.npy", ArrayType::float32, {}, &scale);
  CHECK(read(folder / "t.npy") == 2);  // the same bytes under another name
  OutputFiles later;
  later.add_array("scales", scales, ArrayType::float32, {}, &other);
  later.publish();
  CHECK(test::message_of([&] { read(scales); }) ==
        codes + ".json: written_with: " + scales +
            " is from another run: use that run's file, or delete the sidecar and give "
            "--format or --block");
  CHECK(read_array(*std::make_unique<StoredArray>(open_stored(scales))).as<float>()[0] == 4);
}

}  // namespace
}  // namespace numemu::stored_array_test
