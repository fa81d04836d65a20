// The encoding of protobuf.
#include "tests/emu/net/model/onnx_bytes.hpp"

namespace numemu::net::test {

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string integer(int number, std::int64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) +
         varint(static_cast<std::uint64_t>(value));
}

std::string bytes(int number, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

std::string tensor(const std::string& name, std::initializer_list<std::int64_t> dims, int type,
                   const std::string& data) {
  std::string out;
  for (const std::int64_t extent : dims) out += integer(1, extent);
  return out + integer(2, type) + bytes(8, name) + data;
}

std::string raw(const std::string& data) { return bytes(9, data); }

std::string model(const std::string& graph, std::int64_t opset) {
  return integer(1, 7) + bytes(7, graph) + bytes(8, integer(2, opset));
}

}  // namespace numemu::net::test
