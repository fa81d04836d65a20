// The bytes of a file determine its format; its name does not.
#include "emu/net/model/weights.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

TEST_CASE("safetensors and npz are told apart by their bytes", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  Checkpoint checkpoint;
  checkpoint.tensors.push_back({"w", Tensor({2}, 1.5f)});
  write_safetensors(path, checkpoint);
  CHECK(read_weights(path).tensors.at(0).name == "w");
  CHECK(read_weights(path).tensors.at(0).value.data == std::vector<float>{1.5f, 1.5f});
  write_file(path, test::zip({{"v.npy", test::npy(ArrayType::float32, {1}, test::packed(2.5f))}}));
  CHECK(read_weights(path).tensors.at(0).name == "v");
  CHECK(read_weights(path).tensors.at(0).value.data == std::vector<float>{2.5f});
  write_file(path, test::zip({}));
  CHECK(read_weights(path).tensors.empty());
}

TEST_CASE("files that are neither", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.npz";
  const std::string neither =
      path +
      ": byte 0: expected safetensors (a length and a JSON header) or .npz (a zip archive), found "
      "neither";
  for (const std::string file : {"", "PK", "\x08\x07\x12\x07pytorch", "\x93NUMPY\x01"}) {
    write_file(path, file);
    CHECK(message_of([&] { read_weights(path); }) == neither);
  }
  write_file(path, "PK\3\4");
  CHECK(message_of([&] { read_weights(path); }).starts_with(path + ": expected a zip archive"));
  CHECK(message_of([&] { read_weights(folder / "none"); }) ==
        (folder / "none") + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace numemu::net
