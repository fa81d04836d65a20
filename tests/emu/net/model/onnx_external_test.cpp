// Data of tensors in files beside the model: read where they may lie, refused elsewhere.
#include <filesystem>

#include "emu/net/model/onnx_file.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/model/onnx_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net {
namespace {

using namespace test;

/// A model of one float32 initializer [2] with data at that place.
std::string model_of(const std::string& file, const std::string& offset,
                     const std::string& length) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return bytes(13, bytes(1, key) + bytes(2, value));
  };
  std::string tensor = integer(1, 2) + integer(2, 1) + bytes(8, "w") + integer(14, 1);
  tensor += entry("location", file);
  if (!offset.empty()) tensor += entry("offset", offset);
  if (!length.empty()) tensor += entry("length", length);
  return model(bytes(5, tensor), 13);
}

struct Folder {
  numemu::test::TemporaryFolder outer;
  std::string inner = outer / "model";
  Folder() {
    std::filesystem::create_directories(inner + "/data");
    numemu::test::write_file(inner + "/weights.bin", words(1.0f, 2.0f, 3.0f));
    numemu::test::write_file(inner + "/data/more.bin", words(4.0f, 5.0f));
    numemu::test::write_file(outer / "secret.bin", words(6.0f, 7.0f));
    std::filesystem::create_symlink("../secret.bin", inner + "/link.bin");
  }
  std::vector<float> read(const std::string& file, const std::string& offset = "",
                          const std::string& length = "") const {
    numemu::test::write_file(inner + "/m.onnx", model_of(file, offset, length));
    const OnnxModel read = read_onnx(inner + "/m.onnx");
    return to_floats(read.graph.initializers.at(0));
  }
  std::string refusal(const std::string& file, const std::string& offset = "",
                      const std::string& length = "") const {
    return numemu::test::message_of([&] { read(file, offset, length); });
  }
};

TEST_CASE("tensors have their data in files of the model's folder", "[fast]") {
  const Folder folder;
  CHECK(folder.read("weights.bin") == std::vector<float>{1, 2});
  CHECK(folder.read("weights.bin", "4", "8") == std::vector<float>{2, 3});
  CHECK(folder.read("data/more.bin", "0") == std::vector<float>{4, 5});
  CHECK(folder.read("./weights.bin") == std::vector<float>{1, 2});
}

TEST_CASE("paths that leave the model's folder are refused", "[fast]") {
  const Folder folder;
  const std::string inside = "expected a path within the model's folder";
  CHECK(folder.refusal("../secret.bin").find(inside) != std::string::npos);
  CHECK(folder.refusal("data/../../secret.bin").find(inside) != std::string::npos);
  CHECK(folder.refusal(folder.outer / "secret.bin").find(inside) != std::string::npos);
  CHECK(folder.refusal("/etc/passwd").find(inside) != std::string::npos);
  CHECK(folder.refusal(std::string("weights.bin\0x", 13)).find(inside) != std::string::npos);
  CHECK(folder.refusal("link.bin").find("not a link") != std::string::npos);
  CHECK(folder.refusal("none.bin").find("tensor 'w': external data 'none.bin': no such file") !=
        std::string::npos);
  CHECK_FALSE(folder.refusal("data").empty());
}

TEST_CASE("data beyond the end of a file or of another size are refused", "[fast]") {
  const Folder folder;
  CHECK(
      folder.refusal("weights.bin", "8").find("expected 8 bytes from byte 8 on in a file of 12") !=
      std::string::npos);
  CHECK(
      folder.refusal("weights.bin", "9223372036854775807").find("from byte 9223372036854775807") !=
      std::string::npos);
  CHECK(folder.refusal("weights.bin", "0", "12").find("expected a length of 8 bytes") !=
        std::string::npos);
}

}  // namespace
}  // namespace numemu::net
