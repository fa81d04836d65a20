// ONNX files with a file of 64 bytes beside them, "w", and a link out of their folder, "link".
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "emu/net/model/onnx/file.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

/// A folder of its own, which ends with the program.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "numemu-fuzz-XXXXXX").string();
    path_ = mkdtemp(name.data());
    std::ofstream(path_ / "w") << std::string(64, 'w');
    std::filesystem::create_symlink("/proc/self/exe", path_ / "link");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string write(std::string_view bytes) const {
    std::ofstream(path_ / "m.onnx", std::ios::binary) << bytes;
    return path_ / "m.onnx";
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

NUMEMU_FUZZ_ONNX_TARGET(onnx_external)(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string path = folder.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kTight, [&] {
    const numemu::net::OnnxModel model = numemu::net::read_onnx(path);
    for (const auto& tensor : model.graph.initializers) numemu::net::to_floats(tensor);
  });
  return 0;
}
