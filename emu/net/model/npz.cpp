// Entries are read in memory; the header's grammar is that of formats/storage/npy_header.
#include "emu/net/model/npz.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "emu/net/model/npz_zip.hpp"
#include "emu/net/model/stored_type.hpp"
#include "formats/error.hpp"
#include "formats/storage/element_type.hpp"
#include "formats/storage/npy_header.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::net {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are");

constexpr std::string_view kEnding = ".npy", kMagic = "\x93NUMPY";

/// A .npy file in memory: its header, and what follows.
struct StoredArray {
  NpyHeader header;
  std::string_view data;
};

StoredArray parse_npy(const std::string& where, std::string_view bytes, bool with_text = false) {
  const auto fail = [&](std::size_t at, const std::string& text) {
    throw Error(fmt::format("{}: byte {}: {}", where, at, text));
  };
  const std::size_t magic = kMagic.size() + 2;
  if (!bytes.starts_with(kMagic) || bytes.size() < magic)
    fail(0, "expected a .npy file, which begins with \\x93NUMPY and a version");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3 || bytes[7] != 0)
    fail(6, fmt::format("expected version 1.0, 2.0 or 3.0, found {}.{}", major,
                        static_cast<unsigned char>(bytes[7])));
  const std::size_t begin = magic + (major == 1 ? 2 : 4);
  if (bytes.size() < begin) fail(magic, "expected a header length, found the end");
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + magic, begin - magic);
  if (length > bytes.size() - begin) {
    fail(magic, fmt::format("expected a header of at most {} bytes, found {} declared",
                            bytes.size() - begin, length));
  }
  StoredArray array{parse_npy_header(where, bytes.substr(begin, length),
                                     static_cast<std::int64_t>(begin), with_text),
                    bytes.substr(begin + length)};
  if (array.header.text_bytes != 0) array.header.shape.push_back(array.header.text_bytes);
  const std::optional<std::int64_t> elements = element_count_of(array.header.shape);
  const auto found = static_cast<std::int64_t>(array.data.size());
  const std::int64_t width = bytes_of(array.header.type);
  if (!elements || found % width != 0 || found / width != *elements) {
    fail(begin + length, fmt::format("expected {} elements of {} for shape {}, found {}",
                                     elements ? fmt::format("{}", *elements) : "more than 2^63",
                                     to_string(array.header.type), shape_text(array.header.shape),
                                     counted(found, "byte")));
  }
  return array;
}

template <class T>
void convert(const StoredArray& array, std::vector<float>& values) {
  const char* at = array.data.data();
  for (float& value : values) {
    T element;
    char* bytes = reinterpret_cast<char*>(&element);
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes[i] = at[array.header.big_endian ? sizeof(T) - 1 - i : i];
    value = static_cast<float>(element);
    at += sizeof(T);
  }
}

void convert_halves(const StoredArray& array, std::vector<float>& values) {
  const StoredType& type = stored_type(StorageType::f16);
  if (!array.header.big_endian) return load(type, array.data, values);
  std::string codes(array.data);
  for (std::size_t i = 0; i < codes.size(); i += 2) std::swap(codes[i], codes[i + 1]);
  load(type, codes, values);
}

/// The elements in the order of the file.
void convert_elements(const StoredArray& array, std::vector<float>& values) {
  if (array.header.type == ArrayType::float16) return convert_halves(array, values);
  with_element_type(array.header.type, [&](auto type) { convert<decltype(type)>(array, values); });
}

/// From the first axis fastest to the last axis fastest.
Tensor to_c_order(const Tensor& from) {
  Tensor to(from.shape);
  const std::size_t axes = from.shape.size();
  std::vector<std::int64_t> index(axes, 0);
  for (float& value : to.data) {
    std::int64_t source = 0;
    for (std::size_t axis = axes; axis-- > 0;) source = source * from.shape[axis] + index[axis];
    value = from.data[static_cast<std::size_t>(source)];
    for (std::size_t axis = axes; axis-- > 0 && ++index[axis] == from.shape[axis];) index[axis] = 0;
  }
  return to;
}

Tensor read_entry(const std::string& path, ZipReader& zip, const ZipEntry& entry) {
  const std::string where = fmt::format("{}: entry {}", path, quote_name(entry.name));
  const std::string contents = zip.contents(entry);
  const StoredArray array = parse_npy(where, contents);
  const bool turned = array.header.fortran_order && array.header.shape.size() > 1;
  const std::int64_t elements =
      static_cast<std::int64_t>(array.data.size()) / bytes_of(array.header.type);
  // Codes of halves in host order take 2 bytes more for each.
  const bool halves = array.header.type == ArrayType::float16 && array.header.big_endian;
  zip.spend(entry, elements * (4 + (turned ? 4 : 0) + (halves ? 2 : 0)));
  Tensor tensor(array.header.shape);
  convert_elements(array, tensor.data);
  if (turned) return to_c_order(tensor);
  return tensor;
}

}  // namespace

Checkpoint read_npz(const std::string& path) {
  ZipReader zip(path);
  Checkpoint checkpoint;
  checkpoint.tensors.reserve(zip.entries().size());
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kEnding)) {
      throw Error(fmt::format("{}: entry {}: expected a name that ends in .npy", path,
                              quote_name(entry.name)));
    }
    checkpoint.tensors.push_back(
        {entry.name.substr(0, entry.name.size() - kEnding.size()), read_entry(path, zip, entry)});
  }
  return checkpoint;
}

std::map<std::string, Array> read_npz_arrays(const std::string& path, bool with_text) {
  ZipReader zip(path);
  std::map<std::string, Array> arrays;
  for (const ZipEntry& entry : zip.entries()) {
    const std::string where = fmt::format("{}: entry {}", path, quote_name(entry.name));
    if (!entry.name.ends_with(kEnding)) throw Error(where + ": expected a name that ends in .npy");
    const std::string contents = zip.contents(entry);
    const StoredArray stored = parse_npy(where, contents, with_text);
    const NpyHeader& header = stored.header;
    if ((header.big_endian && bytes_of(header.type) > 1) ||
        (header.fortran_order && header.shape.size() > 1))
      throw Error(where + ": expected little-endian elements in C order");
    zip.spend(entry, static_cast<std::int64_t>(stored.data.size()));
    Array array(header.type, header.shape);
    if (!stored.data.empty())
      std::memcpy(array.data.data(), stored.data.data(), stored.data.size());
    arrays.insert_or_assign(entry.name.substr(0, entry.name.size() - kEnding.size()),
                            std::move(array));
  }
  return arrays;
}

}  // namespace numemu::net
