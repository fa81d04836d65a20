// Protobuf messages written by hand, for tests of readers of ONNX.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

namespace numemu::net::test {

std::string varint(std::uint64_t value);

/// Field NUMBER of wire type 0, 2, 5 and 1.
std::string integer(int number, std::int64_t value);
std::string bytes(int number, const std::string& content);

/// The bytes of numbers in memory.
template <class T, class... Rest>
std::string words(T first, Rest... rest) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &first, sizeof(T));
  if constexpr (sizeof...(rest) > 0) out += words(rest...);
  return out;
}
template <class T>
std::string fixed(int number, T value) {
  return varint(static_cast<std::uint64_t>(number) << 3 | (sizeof(T) == 8 ? 1 : 5)) + words(value);
}

/// A TensorProto of that name, shape and data type, with `data` (fields) behind.
std::string tensor(const std::string& name, std::initializer_list<std::int64_t> dims, int type,
                   const std::string& data);
std::string raw(const std::string& data);

/// A file of that GraphProto.
std::string model(const std::string& graph, std::int64_t opset = 13);

}  // namespace numemu::net::test
