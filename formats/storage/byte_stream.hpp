// Bytes of a file or of standard input, front to back, inflated where they are gzip data; it holds
// 64 KiB, however much gzip data inflate to.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace numemu {

/// Every failure throws Error naming the file and, in gzip data, the inflated byte.
class ByteStream {
 public:
  /// Opens a file, or takes standard input for "-". gzip is recognised by its first two bytes, not
  /// by the name.
  explicit ByteStream(const std::string& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Up to `count` bytes; fewer only at the end, where the checksum of gzip data has been compared.
  std::size_t read(void* to, std::size_t count);
  bool gzip() const;
  /// Bytes of the file, 0 where it has no size, and how many of them are read.
  std::int64_t size() const;
  std::int64_t consumed() const;
  /// The path, or "standard input".
  const std::string& name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace numemu
