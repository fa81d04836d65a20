// A checkpoint of another program, safetensors or GGUF: its tensors by name, read one at a time and
// by rows, whatever the file's size.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/storage/packed/gguf.hpp"
#include "formats/storage/packed/layouts.hpp"

namespace numemu {

class PackedFile {
 public:
  /// Reads the header, by which its first bytes say what the file is. Throws Error naming the file,
  /// also where it is neither.
  explicit PackedFile(const std::string& path);

  struct Item {
    std::string name;
    const PackedLayout* layout = nullptr;  ///< as the file says it; null: none that is read
    std::string stored;                    ///< the type and shape of what has its codes
  };
  const std::vector<Item>& items() const { return items_; }
  /// Whether some tensor is in a layout of codes.
  bool has_codes() const;
  const std::vector<std::pair<std::string, std::string>>& metadata() const;

  /// The tensor of that name, or of the stored one that has its codes; the only one for "". The
  /// layout is the file's unless `layout` is another. Throws Error naming the file, and the
  /// tensor and what does not fit, or the tensors that there are.
  PackedTensor tensor(const std::string& name, const PackedLayout* layout = nullptr) const;

  /// Rows first .. first + count - 1 as float32, NaN as 0x7fc00000. Takes about as much memory
  /// again.
  void read(const PackedTensor&, std::int64_t first, std::int64_t count, float* out);

  const std::string& path() const { return file_->path(); }

 private:
  std::size_t index_of(const std::string& name) const;
  PackedTensor ggml_tensor(std::size_t index) const;

  std::unique_ptr<InputFile> file_;
  bool gguf_ = false;
  GgufHeader ggml_;
  SafetensorsHeader header_;
  std::unique_ptr<SafetensorsNames> names_;
  std::vector<PackedGroup> groups_;
  std::vector<Item> items_;
};

/// Whether the first bytes are those of a GGUF file.
bool is_gguf(std::string_view start);

}  // namespace numemu
