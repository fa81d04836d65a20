// Zip archives as numpy writes them: the directory, and entries that are stored or deflated.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/storage/array.hpp"

namespace numemu::net {

struct ZipEntry {
  std::string_view name;
  bool deflated = false;
  std::uint32_t crc = 0;    ///< CRC-32 of the contents
  std::int64_t size = 0;    ///< bytes of the contents
  std::int64_t offset = 0;  ///< of the local header in the file
  std::string_view packed;  ///< in the file
};

/// A whole archive in memory (PKWARE's APPNOTE 6.3.10, with zip64 sizes; no encryption, no parts).
/// Throws Error("FILE: byte OFFSET: expected ..., found ...").
class ZipReader {
 public:
  /// Reads the file and its directory. The contents together may take 64 times the file's size and
  /// 15 MiB (see spend); archives that declare more are refused here.
  explicit ZipReader(const std::string& path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The contents of an entry, its CRC checked: a part of the file where it is stored, else
  /// inflated into `buffer`.
  std::string_view contents(const ZipEntry&, std::string& buffer);
  /// Takes `bytes` of what an archive may make its reader allocate; Error at the entry when that is
  /// exceeded. The contents and the file itself have been taken.
  void spend(const ZipEntry&, std::int64_t bytes);

 private:
  class Cursor;
  struct End {
    std::int64_t count = 0, begin = 0, size = 0, offset = 0;
  };

  [[noreturn]] void fail(std::int64_t offset, const std::string& text) const;
  End find_end() const;
  void read_directory(const End&);
  ZipEntry read_entry(Cursor&, std::int64_t directory) const;
  void locate(ZipEntry&, int method, std::int64_t packed, std::int64_t directory) const;
  void inflate_into(const ZipEntry&, std::string& buffer);

  struct EndInflate {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };

  std::string path_;
  Bytes bytes_;
  std::string_view file_;
  std::vector<ZipEntry> entries_;
  std::int64_t left_ = 0;
  std::unique_ptr<z_stream, EndInflate> stream_;  ///< one for all entries: its state takes 7 KiB
};

}  // namespace numemu::net
