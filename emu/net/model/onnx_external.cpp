// Data of tensors in files beside the model, never outside its folder.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "emu/net/memory.hpp"
#include "emu/net/model/onnx_file.hpp"
#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::net {
namespace {

namespace fs = std::filesystem;

class Files {
 public:
  explicit Files(OnnxModel& model) : model_(model) {}

  void attach(OnnxTensor& tensor) {
    const OnnxLocation& where = tensor.external;
    if (where.file.empty()) return;
    const std::string_view bytes = contents(tensor);
    const std::int64_t size = std::ssize(bytes), count = raw_bytes(tensor);
    if (where.offset > size || count > size - where.offset)
      fail(tensor, fmt::format("expected {} from byte {} on in a file of {}",
                               counted(count, "byte"), where.offset, counted(size, "byte")));
    if (where.bytes >= 0 && where.bytes != count)
      fail(tensor, fmt::format("expected a length of {} for its elements, found {}",
                               counted(count, "byte"), where.bytes));
    tensor.data =
        bytes.substr(static_cast<std::size_t>(where.offset), static_cast<std::size_t>(count));
  }

 private:
  [[noreturn]] void fail(const OnnxTensor& tensor, const std::string& text) const {
    throw Error(fmt::format("{}: byte {}: tensor {}: external data {}: {}", model_.path,
                            tensor.offset, quote_name(tensor.name),
                            quote_name(tensor.external.file), text));
  }

  /// The path of a file in the model's folder or below it.
  fs::path path_of(const OnnxTensor& tensor) const {
    const std::string_view name = tensor.external.file;
    const fs::path given(name);
    if (name.find('\0') != name.npos || given.is_absolute() ||
        std::ranges::find(given, fs::path("..")) != given.end())
      fail(tensor, "expected a path within the model's folder");
    std::error_code error;
    const fs::path parent = fs::path(model_.path).parent_path();
    const fs::path folder = fs::canonical(parent.empty() ? fs::path(".") : parent, error);
    if (error) fail(tensor, "the model's folder cannot be read");
    const fs::path file = fs::canonical(folder / given, error);
    if (error) fail(tensor, "no such file beside the model");
    const auto [rest, inside] = std::ranges::mismatch(folder, file);
    if (rest != folder.end()) fail(tensor, "expected a file within the model's folder, not a link");
    return file;
  }

  std::string_view contents(const OnnxTensor& tensor) {
    const auto known = files_.find(tensor.external.file);
    if (known != files_.end()) return known->second;
    InputFile file(path_of(tensor).string());
    if (file.left() > memory_left()) {
      file.fail(fmt::format("expected at most {}, the memory budget that is left (--memory)",
                            bytes_text(memory_left())));
    }
    Bytes& bytes = model_.external.emplace_back(file.left());
    file.read(bytes.data(), bytes.size());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                static_cast<std::size_t>(bytes.size()));
    files_[tensor.external.file] = text;
    return text;
  }

  OnnxModel& model_;
  std::map<std::string_view, std::string_view> files_;
};

}  // namespace

std::int64_t OnnxModel::size() const {
  std::int64_t size = bytes.size();
  for (const Bytes& file : external) size += file.size();
  return size;
}

void read_external_data(OnnxModel& model) {
  Files files(model);
  for (OnnxTensor& tensor : model.graph.initializers) files.attach(tensor);
  for (OnnxNode& node : model.graph.nodes) {
    for (OnnxAttribute& attribute : node.attributes) {
      if (attribute.tensor) files.attach(*attribute.tensor);
    }
  }
}

}  // namespace numemu::net
