// The directory at the end of the file is authoritative; local headers only give the data offset.
#include "emu/net/model/npz_zip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::net {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kDirectoryHeader = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr std::int64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kLocalBytes = 30,
                       kDirectoryBytes = 46, kLongestComment = 65535;
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::int64_t kIn64 = 0xffff'ffff;  ///< the value is in the zip64 fields
constexpr int kStored = 0, kDeflated = 8;
constexpr int kRawDeflate = -15;  ///< inflateInit2: window 2^15, neither header nor checksum

/// What an archive may make its reader allocate; a sixteenth MiB is for everything of fixed size.
constexpr std::int64_t kExpansion = 64, kAllowance = 15 << 20;

}  // namespace

/// Little-endian numbers from a place in the file to `end`.
class ZipReader::Cursor {
 public:
  Cursor(const ZipReader& zip, std::int64_t begin, std::int64_t end)
      : zip_(zip), at_(begin), end_(end) {}

  std::string_view take(std::int64_t count, std::string_view what) {
    if (count > end_ - at_)
      zip_.fail(at_, fmt::format("expected {} bytes of {}, found {}", count, what, end_ - at_));
    at_ += count;
    return zip_.file_.substr(static_cast<std::size_t>(at_ - count),
                             static_cast<std::size_t>(count));
  }
  template <class Word>
  Word word(std::string_view what) {
    Word value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  std::int64_t u16(std::string_view what) { return word<std::uint16_t>(what); }
  std::int64_t u32(std::string_view what) { return word<std::uint32_t>(what); }
  /// Values beyond 2^63 - 1 are refused.
  std::int64_t u64(std::string_view what) {
    const auto value = word<std::uint64_t>(what);
    if (value > std::uint64_t{INT64_MAX})
      zip_.fail(at_ - 8, fmt::format("expected {} below 2^63, found {}", what, value));
    return static_cast<std::int64_t>(value);
  }
  void expect(std::uint32_t signature, std::string_view what) {
    const auto found = word<std::uint32_t>(what);
    if (found != signature)
      zip_.fail(at_ - 4,
                fmt::format("expected {} ({:#010x}), found {:#010x}", what, signature, found));
  }
  std::int64_t at() const { return at_; }
  std::int64_t left() const { return end_ - at_; }

 private:
  const ZipReader& zip_;
  std::int64_t at_, end_;
};

void ZipReader::fail(std::int64_t offset, const std::string& text) const {
  throw Error(fmt::format("{}: byte {}: {}", path_, offset, text));
}

ZipReader::ZipReader(const std::string& path) : path_(path) {
  InputFile file(path);
  bytes_ = Bytes(file.left());
  file.read(bytes_.data(), bytes_.size());
  file_ = {reinterpret_cast<const char*>(bytes_.data()), static_cast<std::size_t>(bytes_.size())};
  // 2^57: no file comes near, and the product cannot overflow.
  left_ = kExpansion * std::min(bytes_.size(), std::int64_t{1} << 56) + kAllowance - bytes_.size();
  read_directory(find_end());
}

ZipReader::End ZipReader::find_end() const {
  const std::int64_t size = bytes_.size();
  const std::int64_t first = std::max<std::int64_t>(0, size - kEndBytes - kLongestComment);
  std::int64_t at = size - kEndBytes;
  for (; at >= first; --at) {
    Cursor cursor(*this, at, size);
    if (cursor.u32("") != kEnd) continue;
    Cursor comment(*this, at + kEndBytes - 2, size);
    if (comment.u16("") == comment.left()) break;
  }
  if (at < first) fail(size, "expected a zip archive with its directory at the end, found none");
  Cursor cursor(*this, at + 4, size);
  constexpr std::string_view kWhat = "the end of the directory";
  const std::int64_t disk = cursor.u16(kWhat), first_disk = cursor.u16(kWhat);
  const std::int64_t here = cursor.u16(kWhat);
  End end;
  end.count = cursor.u16(kWhat);
  end.size = cursor.u32(kWhat);
  end.begin = cursor.u32(kWhat);
  end.offset = at;
  if (disk != 0 || first_disk != 0 || here != end.count)
    fail(at, "expected an archive in one part, found a part of one");
  if (end.count != 0xffff && end.size != kIn64 && end.begin != kIn64) return end;
  if (at < kLocatorBytes + kEnd64Bytes) fail(at, "expected a zip64 directory before, found none");
  Cursor locator(*this, at - kLocatorBytes, at);
  locator.expect(kEnd64Locator, "the zip64 locator");
  locator.u32(kWhat);
  end.offset = locator.u64(kWhat);
  if (end.offset > at - kLocatorBytes - kEnd64Bytes) {
    fail(at - kLocatorBytes,
         fmt::format("expected the zip64 directory's end before, found byte {}", end.offset));
  }
  Cursor wide(*this, end.offset, at - kLocatorBytes);
  wide.expect(kEnd64, "the end of the zip64 directory");
  wide.take(8 + 2 + 2 + 4 + 4 + 8, kWhat);  // its length, versions, parts, entries in this part
  end.count = wide.u64(kWhat);
  end.size = wide.u64(kWhat);
  end.begin = wide.u64(kWhat);
  return end;
}

void ZipReader::read_directory(const End& end) {
  if (end.begin > end.offset || end.size != end.offset - end.begin) {
    fail(end.offset, fmt::format("expected the directory to end here, found {} bytes at byte {}",
                                 end.size, end.begin));
  }
  if (end.count > end.size / kDirectoryBytes)
    fail(end.offset, fmt::format("expected at most {} entries in {} bytes, found {}",
                                 end.size / kDirectoryBytes, end.size, end.count));
  entries_.reserve(static_cast<std::size_t>(end.count));
  Cursor cursor(*this, end.begin, end.offset);
  for (std::int64_t i = 0; i < end.count; ++i) {
    entries_.push_back(read_entry(cursor, end.begin));
    spend(entries_.back(), entries_.back().deflated ? entries_.back().size : 0);
  }
  if (cursor.left() != 0)
    fail(cursor.at(),
         fmt::format("expected the end of the directory, found {} bytes", cursor.left()));
}

ZipEntry ZipReader::read_entry(Cursor& cursor, std::int64_t directory) const {
  constexpr std::string_view kWhat = "the directory";
  const std::int64_t begin = cursor.at();
  ZipEntry entry;
  cursor.expect(kDirectoryHeader, "an entry of the directory");
  cursor.take(4, kWhat);  // versions
  const std::int64_t flags = cursor.u16(kWhat), method = cursor.u16(kWhat);
  cursor.take(4, kWhat);  // time
  entry.crc = cursor.word<std::uint32_t>(kWhat);
  std::int64_t packed = cursor.u32(kWhat);
  entry.size = cursor.u32(kWhat);
  const std::int64_t name = cursor.u16(kWhat), extra = cursor.u16(kWhat),
                     comment = cursor.u16(kWhat);
  cursor.take(2 + 2 + 4, kWhat);  // part, attributes
  entry.offset = cursor.u32(kWhat);
  entry.name = cursor.take(name, "a name");
  const std::int64_t extra_begin = cursor.at();
  cursor.take(extra, "extra fields");
  Cursor extras(*this, extra_begin, cursor.at());
  cursor.take(comment, "a comment");
  if ((flags & 1) != 0)
    fail(begin, fmt::format("entry {}: expected no encryption", quote_name(entry.name)));
  while (extras.left() >= 4) {  // fewer bytes are padding
    const std::int64_t id = extras.u16(kWhat), length = extras.u16(kWhat), at = extras.at();
    extras.take(length, "an extra field");
    if (id != kZip64Extra) continue;
    Cursor wide(*this, at, at + length);
    for (std::int64_t* value : {&entry.size, &packed, &entry.offset}) {
      if (*value == kIn64) *value = wide.u64("a zip64 field");
    }
  }
  locate(entry, static_cast<int>(method), packed, directory);
  return entry;
}

/// Finds the packed bytes, which end where the directory begins or before.
void ZipReader::locate(ZipEntry& entry, int method, std::int64_t packed,
                       std::int64_t directory) const {
  const std::string where = "entry " + quote_name(entry.name);
  if (entry.offset > directory - kLocalBytes)
    fail(directory,
         fmt::format("{}: expected a local header before, found byte {}", where, entry.offset));
  if (method != kStored && method != kDeflated) {
    fail(entry.offset,
         fmt::format("{}: expected method 0 (stored) or 8 (deflated), found {}", where, method));
  }
  entry.deflated = method == kDeflated;
  Cursor local(*this, entry.offset, directory);
  local.expect(kLocalHeader, "a local header");
  local.take(kLocalBytes - 4 - 4, "a local header");
  const std::int64_t name = local.u16("a name"), extra = local.u16("extra fields");
  if (local.take(name, "a name") != entry.name)
    fail(entry.offset, fmt::format("{}: expected the same name in its local header", where));
  local.take(extra, "extra fields");
  if (!entry.deflated && entry.size != packed) {
    fail(entry.offset, fmt::format("{}: expected {} bytes stored as they are, found {}", where,
                                   entry.size, packed));
  }
  entry.packed = local.take(packed, "data");
}

void ZipReader::spend(const ZipEntry& entry, std::int64_t bytes) {
  if (bytes > left_) {
    fail(entry.offset,
         fmt::format("entry {}: expected contents of at most {} times the file and {} bytes in all,"
                     " found {} more declared than that leaves ({})",
                     quote_name(entry.name), kExpansion, kAllowance, bytes, left_));
  }
  left_ -= bytes;
}

std::string_view ZipReader::contents(const ZipEntry& entry, std::string& buffer) {
  std::string_view bytes = entry.packed;
  if (entry.deflated) {
    inflate_into(entry, buffer);
    bytes = buffer;
  }
  const auto crc = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  if (crc != entry.crc) {
    fail(entry.offset, fmt::format("entry {}: expected contents of CRC {:#010x}, found {:#010x}",
                                   quote_name(entry.name), entry.crc, crc));
  }
  return bytes;
}

void ZipReader::inflate_into(const ZipEntry& entry, std::string& buffer) {
  buffer = {};  // so that growing it takes what the entry needs and no more
  buffer = std::string(static_cast<std::size_t>(entry.size), '\0');
  if (!stream_) {
    auto stream = std::make_unique<z_stream>();
    if (inflateInit2(stream.get(), kRawDeflate) != Z_OK) throw Error(path_ + ": zlib cannot start");
    stream_.reset(stream.release());
  } else {
    inflateReset(stream_.get());
  }
  constexpr std::size_t kLongestCall = std::size_t{1} << 30;
  std::size_t in = 0, out = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t in_now = std::min(entry.packed.size() - in, kLongestCall);
    const std::size_t out_now = std::min(buffer.size() - out, kLongestCall);
    stream_->next_in = reinterpret_cast<Bytef*>(
        const_cast<char*>(entry.packed.data() + in));  // zlib only reads it
    stream_->avail_in = static_cast<uInt>(in_now);
    stream_->next_out = reinterpret_cast<Bytef*>(buffer.data() + out);
    stream_->avail_out = static_cast<uInt>(out_now);
    status = inflate(stream_.get(), Z_NO_FLUSH);
    in += in_now - stream_->avail_in;
    out += out_now - stream_->avail_out;
  }
  if (status != Z_STREAM_END || in != entry.packed.size() || out != buffer.size()) {
    fail(entry.offset,
         fmt::format("entry {}: expected {} bytes deflated to {}, found {}", quote_name(entry.name),
                     entry.size, entry.packed.size(),
                     status == Z_STREAM_END  ? fmt::format("{} deflated to {}", out, in)
                     : status == Z_BUF_ERROR ? "more or less"
                                             : "damage"));
  }
}

}  // namespace numemu::net
