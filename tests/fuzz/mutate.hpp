// Changes of an input, which the numbers drawn decide alone: of its bytes, or of the fields of an
// ONNX file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace numemu::fuzz {

inline constexpr std::size_t kLongest = 1 << 16;

/// splitmix64 (Steele, Lea and Flood, 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t word() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : word() % n; }
  template <class Values>
  const auto& of(const Values& values) {
    return values[below(std::size(values))];
  }

 private:
  std::uint64_t state_;
};

/// Changes `bytes` once, to at most kLongest bytes; `other` is an input to take from.
using Mutate = void (*)(std::string& bytes, const std::string& other, Random&);

/// Bits, bytes, numbers; parts that go, come again or come often; an end that is cut or is that of
/// `other`.
void mutate_bytes(std::string& bytes, const std::string& other, Random&);

/// A field of an ONNX file, at any depth: it goes, comes again, changes places or comes from
/// `other`; another number, name, operator, type or shape (with data that fit it); a new node in
/// between. All lengths fit again. Bytes that are no protobuf message change as by mutate_bytes(),
/// and so do one in eight.
void mutate_onnx(std::string& bytes, const std::string& other, Random&);
/// One to four such changes of `input`, of the numbers from `seed`, written to `out`, which may be
/// the input's place; their length. An input that would outgrow `out` comes back unchanged, cut.
std::size_t mutated_onnx(std::span<const std::uint8_t> input, std::span<const std::uint8_t> other,
                         std::span<std::uint8_t> out, std::uint64_t seed);

}  // namespace numemu::fuzz
