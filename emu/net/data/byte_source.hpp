// Reads a file of known structure front to back, gzip or plain, and never allocates what the file
// cannot hold.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

/// Largest array a loader accepts.
inline constexpr std::int64_t kMaxArrayBytes = std::int64_t{1} << 31;
/// A gzip file may inflate to this many times its size and a fixed amount more; real sets of
/// images compress about 5 : 1, and deflate allows 1032 : 1 (RFC 1951).
inline constexpr std::int64_t kMostExpansion = 64, kFreeExpansion = std::int64_t{16} << 20;

/// Every failure throws Error("FILE: byte OFFSET: expected ..., found ..."); offsets count inflated
/// bytes in a gzip file.
class ByteSource {
 public:
  /// Opens a regular file; gzip is recognised by its first two bytes, not by the name.
  explicit ByteSource(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// The next `count` bytes (`what` names them in the error). Sizes beyond kMaxArrayBytes or beyond
  /// what the file may inflate to are refused before memory is taken.
  std::vector<std::uint8_t> read(std::int64_t count, std::string_view what);
  /// Refuses what read() would refuse before it takes memory.
  void require(std::int64_t count, std::string_view what) const;
  /// All that follows; a gzip file may inflate to a quarter of what read() allows, as the array
  /// grows while it is read.
  std::vector<std::uint8_t> read_all(std::string_view what);
  /// The next 4 bytes, most significant first.
  std::uint32_t read_big_endian(std::string_view what);
  /// Nothing may follow; this also checks the checksum of gzip data.
  void expect_end();
  /// A class number read at byte `offset` must be below `classes`.
  void expect_label(std::int64_t offset, int label, int classes) const;

  /// Throws Error at byte `offset`.
  [[noreturn]] void fail(std::int64_t offset, std::string_view expected_and_found) const;
  std::int64_t position() const;
  const std::string& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace numemu::net
