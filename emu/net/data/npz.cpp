// Entries are read in memory; the header's grammar is that of formats/storage/npy.hpp.
#include "emu/net/data/npz.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "emu/net/data/stored_type.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::net {
namespace {

/// What an archive may make its reader allocate; a sixteenth MiB is for everything of fixed size.
constexpr std::int64_t kExpansion = 64, kAllowance = 15 << 20;
/// Of libzip and here for an entry of the directory, besides its name (measured: 300).
constexpr std::int64_t kEntryBytes = 512;

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

}  // namespace

void ZipReader::Close::operator()(zip* archive) const { zip_discard(archive); }

void ZipReader::fail(const ZipEntry& entry, std::string_view text) const {
  throw Error(fmt::format("{}: entry {}: {}", path_, quote_name(entry.name), text));
}

ZipReader::ZipReader(const std::string& path) : path_(path) {
  // 2^57: no file comes near, and the product cannot overflow.
  const std::int64_t size = std::min(InputFile(path).left(), std::int64_t{1} << 56);
  left_ = kExpansion * size + kAllowance;
  int strict = 0, code = 0;
  zip_.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &strict));
  // libzip does not tell which entry fails its strict checks: most are found by reading them.
  if (zip_ == nullptr) zip_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (zip_ != nullptr) list_entries();
  if (strict == 0) return;
  for (const ZipEntry& entry : entries_) contents(entry);
  throw Error(fmt::format("{}: expected a zip archive whose directory and entries agree, found: {}",
                          path, text_of(strict)));
}

void ZipReader::list_entries() {
  const zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  std::set<std::string_view> names;
  entries_.resize(static_cast<std::size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    ZipEntry& entry = entries_[static_cast<std::size_t>(i)];
    entry.index = static_cast<zip_uint64_t>(i);
    zip_stat_t stat;
    if (zip_stat_index(zip_.get(), entry.index, ZIP_FL_ENC_RAW, &stat) != 0)
      fail(entry, zip_strerror(zip_.get()));
    entry.name = stat.name;
    if (stat.encryption_method != ZIP_EM_NONE) fail(entry, "expected no encryption");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
      fail(entry,
           fmt::format("expected method 0 (stored) or 8 (deflated), found {}", stat.comp_method));
    }
    if (stat.size > std::uint64_t{INT64_MAX})
      fail(entry, fmt::format("expected a size below 2^63, found {}", stat.size));
    entry.size = static_cast<std::int64_t>(stat.size);
    spend(entry, kEntryBytes);
    spend(entry, entry.size);
    if (!names.insert(entry.name).second) fail(entry, "expected each name once");
  }
}

void ZipReader::spend(const ZipEntry& entry, std::int64_t bytes) {
  if (bytes > left_) {
    fail(entry, fmt::format("expected contents of at most {} times the file and {} bytes in all, "
                            "found {} more declared than that leaves ({})",
                            kExpansion, kAllowance, bytes, left_));
  }
  left_ -= bytes;
}

std::string ZipReader::contents(const ZipEntry& entry) {
  struct CloseFile {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };
  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(zip_.get(), entry.index, 0));
  if (file == nullptr) fail(entry, zip_strerror(zip_.get()));
  std::string bytes(static_cast<std::size_t>(entry.size), '\0');
  zip_int64_t found = 0, got = 0;
  do {
    got =
        zip_fread(file.get(), bytes.data() + found, static_cast<zip_uint64_t>(entry.size - found));
    found += std::max<zip_int64_t>(got, 0);
  } while (got > 0 && found < entry.size);
  // libzip compares the CRC where it finds the end.
  char more = 0;
  if (got >= 0 && found == entry.size) got = zip_fread(file.get(), &more, 1);
  if (got < 0) {
    fail(entry, fmt::format("expected {} bytes, found '{}' after {}", entry.size,
                            zip_file_strerror(file.get()), found));
  }
  if (got > 0 || found < entry.size) {
    fail(entry, fmt::format("expected {} bytes, found {}", entry.size,
                            got > 0 ? "more" : fmt::format("{}", found)));
  }
  return bytes;
}

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
  if (const auto at = no_truth_value(array.header, array.data))
    fail(begin + length + static_cast<std::size_t>(*at), "expected a bool, 0 or 1");
  return array;
}

template <class T>
void convert(const StoredArray& array, std::span<float> values) {
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

void convert_halves(const StoredArray& array, std::span<float> values) {
  const StoredType& type = stored_type(StorageType::f16);
  if (!array.header.big_endian) return load(type, array.data, values);
  std::string codes(array.data);
  for (std::size_t i = 0; i < codes.size(); i += 2) std::swap(codes[i], codes[i + 1]);
  load(type, codes, values);
}

/// The elements in the order of the file.
void convert_elements(const StoredArray& array, std::span<float> values) {
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

std::vector<NamedTensor> read_npz_tensors(const std::string& path) {
  ZipReader zip(path);
  std::vector<NamedTensor> tensors;
  tensors.reserve(zip.entries().size());
  for (const ZipEntry& entry : zip.entries()) {
    if (!entry.name.ends_with(kEnding)) {
      throw Error(fmt::format("{}: entry {}: expected a name that ends in .npy", path,
                              quote_name(entry.name)));
    }
    tensors.push_back(
        {entry.name.substr(0, entry.name.size() - kEnding.size()), read_entry(path, zip, entry)});
  }
  return tensors;
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
