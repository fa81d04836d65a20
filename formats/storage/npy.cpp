// The data go between the file and their final place without a copy; the rare orders are turned
// after.
#include "formats/storage/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/storage/npy_header.hpp"

namespace numemu {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
/// A header of 64 axes has at most 1,400 characters; longer ones belong to structured types.
constexpr std::int64_t kLongestHeader = 65535;

NpyHeader read_header(InputFile& file) {
  const std::string magic = file.read(std::min<std::int64_t>(file.left(), 8));
  if (!magic.starts_with(kMagic) || magic.size() < 8)
    file.fail_at(0, "expected a .npy file, which begins with \\x93NUMPY and a version");
  const int major = static_cast<unsigned char>(magic[6]);
  const int minor = static_cast<unsigned char>(magic[7]);
  if (major < 1 || major > 3 || minor != 0)
    file.fail_at(6, fmt::format("expected version 1.0, 2.0 or 3.0, found {}.{}", major, minor));
  const std::int64_t length_bytes = major == 1 ? 2 : 4;
  if (file.left() < length_bytes)
    file.fail(fmt::format("expected a header length of {} bytes", length_bytes));
  std::uint32_t length = 0;
  file.read(&length, length_bytes);
  const std::int64_t most = std::min(kLongestHeader, file.left());
  if (length > most) {
    file.fail(fmt::format("expected a header of at most {} bytes, found {} declared at byte 8",
                          most, length));
  }
  const std::int64_t begin = file.position();
  return parse_npy_header(file.path(), file.read(length), begin);
}

template <class Word>
void reverse_bytes(Array& array) {
  Word* words = array.as<Word>();
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    Word turned = 0;
    for (std::size_t byte = 0; byte < sizeof(Word); ++byte)
      turned = static_cast<Word>(turned << 8 | (words[i] >> 8 * byte & 255));
    words[i] = turned;
  }
}

/// From the first axis fastest to the last axis fastest.
template <class Word>
Array to_c_order(const Array& from) {
  Array to(from.type, from.shape);
  const std::size_t axes = from.shape.size();
  std::vector<std::int64_t> stride(axes, 1), index(axes, 0);
  for (std::size_t axis = 1; axis < axes; ++axis)
    stride[axis] = stride[axis - 1] * from.shape[axis - 1];
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < from.elements(); ++i) {
    to.as<Word>()[i] = from.as<Word>()[source];
    for (std::size_t axis = axes; axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < from.shape[axis]) break;
      source -= stride[axis] * from.shape[axis];
      index[axis] = 0;
    }
  }
  return to;
}

template <class Word>
Array in_host_order(Array array, const NpyHeader& header) {
  if (header.big_endian) reverse_bytes<Word>(array);
  return header.fortran_order && array.shape.size() > 1 ? to_c_order<Word>(array)
                                                        : std::move(array);
}

}  // namespace

Array read_npy(const std::string& path) {
  InputFile file(path);
  return read_npy(file);
}

Array read_npy(InputFile& file) {
  const NpyHeader header = read_header(file);
  const std::optional<std::int64_t> elements = element_count_of(header.shape);
  std::int64_t bytes = 0;
  const bool overflow =
      !elements || __builtin_mul_overflow(*elements, std::int64_t{bytes_of(header.type)}, &bytes);
  if (overflow || bytes != file.left()) {
    file.fail(fmt::format("expected {} for {} of shape {}, found {}",
                          overflow ? "more than 2^63 bytes" : counted(bytes, "byte"),
                          to_string(header.type), shape_text(header.shape), file.left()));
  }
  Array array(header.type, header.shape);
  file.read(array.data.data(), bytes);
  if (!header.big_endian && !header.fortran_order) return array;
  switch (bytes_of(header.type)) {
    case 1:
      return in_host_order<std::uint8_t>(std::move(array), header);
    case 2:
      return in_host_order<std::uint16_t>(std::move(array), header);
    case 4:
      return in_host_order<std::uint32_t>(std::move(array), header);
    default:
      return in_host_order<std::uint64_t>(std::move(array), header);
  }
}

PendingFile pending_npy(const std::string& path, ArrayType type, const ArrayShape& shape,
                        const void* data) {
  const std::int64_t bytes = element_count_of(shape).value() * bytes_of(type);
  return {path,
          {format_npy_header(type, shape),
           {static_cast<const char*>(data), static_cast<std::size_t>(bytes)}}};
}

void write_npy(const std::string& path, ArrayType type, const ArrayShape& shape, const void* data) {
  pending_npy(path, type, shape, data).commit();
}

void write_npy(const std::string& path, const Array& array) {
  write_npy(path, array.type, array.shape, array.data.data());
}

}  // namespace numemu
