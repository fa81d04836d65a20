// Zip archives written by hand, for tests of readers of .npz.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "formats/storage/npy.hpp"
#include "tests/deflated.hpp"

namespace numemu::net::test {

/// The records of one entry; a test corrupts single fields.
struct ZipItem {
  std::string name, contents;
  bool deflated = false;
  std::uint32_t size = 0, packed_size = 0, crc = 0;
  std::uint16_t flags = 0, method = 0;
  std::string packed, local_name, extra;

  ZipItem(std::string n, std::string c, bool d = false)
      : name(std::move(n)), contents(std::move(c)), deflated(d), local_name(name) {
    packed = deflated ? numemu::test::deflated(contents, 6, -15) : contents;
    size = static_cast<std::uint32_t>(contents.size());
    packed_size = static_cast<std::uint32_t>(packed.size());
    crc =
        static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(contents.data()), size));
    method = deflated ? 8 : 0;
  }
};

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}
template <class... T>
std::string packed(T... values) {
  std::string out;
  (put(out, values), ...);
  return out;
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

inline std::string local_header(const ZipItem& item) {
  return packed(U32{0x04034b50}, U16{20}, item.flags, item.method, U32{0}, item.crc,
                item.packed_size, item.size, static_cast<U16>(item.local_name.size()), U16{0}) +
         item.local_name;
}

inline std::string directory_entry(const ZipItem& item, U32 offset) {
  return packed(U32{0x02014b50}, U16{20}, U16{20}, item.flags, item.method, U32{0}, item.crc,
                item.packed_size, item.size, static_cast<U16>(item.name.size()),
                static_cast<U16>(item.extra.size()), U16{0}, U16{0}, U16{0}, U32{0}, offset) +
         item.name + item.extra;
}

inline std::string end_of_directory(U16 count, U32 size, U32 begin, const std::string& comment) {
  return packed(U32{0x06054b50}, U16{0}, U16{0}, count, count, size, begin,
                static_cast<U16>(comment.size())) +
         comment;
}

inline std::string zip(const std::vector<ZipItem>& items, const std::string& comment = "") {
  std::string file, directory;
  for (const ZipItem& item : items) {
    directory += directory_entry(item, static_cast<U32>(file.size()));
    file += local_header(item) + item.packed;
  }
  const auto begin = static_cast<U32>(file.size());
  return file + directory +
         end_of_directory(static_cast<U16>(items.size()), static_cast<U32>(directory.size()), begin,
                          comment);
}

/// A .npy file of that data.
inline std::string npy(ArrayType type, const ArrayShape& shape, const std::string& data) {
  return format_npy_header(type, shape) + data;
}

}  // namespace numemu::net::test
