// Reading and writing checkpoints: the length, the header, the tensors in file order.
#include "emu/net/model/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "emu/net/model/atomic_file.hpp"
#include "emu/net/model/safetensors_header.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "the header length is copied as it is");

/// A stream whose short reads are Errors that name the position.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
      throw Error(path + ": expected a regular file");
    size_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
    stream_.open(path, std::ios::binary);
    if (error || !stream_) throw Error(path + ": cannot open");
  }
  /// The caller has compared `count` with left().
  std::string read(std::int64_t count) {
    std::string bytes(static_cast<std::size_t>(count), '\0');
    if (!stream_.read(bytes.data(), count))
      fail(fmt::format("expected {} bytes, cannot read them", count));
    position_ += count;
    return bytes;
  }
  std::int64_t left() const { return size_ - position_; }
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(fmt::format("{}: byte {}: {}", path_, position_, text));
  }

 private:
  const std::string& path_;
  std::ifstream stream_;
  std::int64_t size_ = 0, position_ = 0;
};

std::int64_t read_header_length(Reader& file) {
  if (file.left() < kLengthBytes)
    file.fail(fmt::format("expected a header length of 8 bytes, found {} bytes", file.left()));
  const std::int64_t most = std::min(kMaxHeaderBytes, file.left() - kLengthBytes);
  const std::string bytes = file.read(kLengthBytes);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > static_cast<std::uint64_t>(most)) {
    file.fail(fmt::format("expected a header of at most {} bytes, found {} declared at byte 0",
                          most, length));
  }
  return static_cast<std::int64_t>(length);
}

HeaderEntry entry_of(const std::string& path, const NamedTensor& tensor, const StoredType& type,
                     std::int64_t begin) {
  const std::int64_t elements = element_count(tensor.value.shape);
  if (elements != tensor.value.size()) {
    throw Error(fmt::format("{}: tensor {}: expected {} elements of shape {}, found {}", path,
                            quote_name(tensor.name), elements, to_string(tensor.value.shape),
                            tensor.value.size()));
  }
  return {tensor.name, &type, tensor.value.shape, elements, begin, begin + elements * type.bytes};
}

void check_unique(const std::string& path, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw Error(
        fmt::format("{}: expected each name once, found {} twice", path, quote_name(*twice)));
}

}  // namespace

void write_safetensors(const std::string& path, const Checkpoint& checkpoint, StorageType storage) {
  const StoredType& type = stored_type(storage);
  Header header{{}, checkpoint.metadata};
  std::sort(header.metadata.begin(), header.metadata.end());
  std::vector<std::string> names = {"__metadata__"}, keys;
  for (const auto& [key, value] : header.metadata) keys.push_back(key);
  std::string data;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    names.push_back(tensor.name);
    header.entries.push_back(entry_of(path, tensor, type, static_cast<std::int64_t>(data.size())));
    const std::int64_t beyond = store(type, tensor.value.data, data);
    if (beyond >= 0) {
      throw Error(fmt::format("{}: tensor {}: element {}: expected a value within {}, found {}",
                              path, quote_name(tensor.name), beyond, type.format,
                              tensor.value.data[beyond]));
    }
  }
  check_unique(path, names);
  check_unique(path, keys);
  const std::string text = format_header(path, header);
  const std::uint64_t length = text.size();
  write_atomically(path, {{reinterpret_cast<const char*>(&length), sizeof length}, text, data});
}

Checkpoint read_safetensors(const std::string& path) {
  Reader file(path);
  const std::string text = file.read(read_header_length(file));
  Header header = parse_header(path, text, file.left());
  Checkpoint checkpoint;
  checkpoint.metadata = std::move(header.metadata);
  for (HeaderEntry& entry : header.entries) {
    const std::string bytes = file.read(entry.end - entry.begin);
    Tensor tensor(std::move(entry.shape));
    load(*entry.type, bytes, tensor.data);
    checkpoint.tensors.push_back({std::move(entry.name), std::move(tensor)});
  }
  return checkpoint;
}

}  // namespace numemu::net
