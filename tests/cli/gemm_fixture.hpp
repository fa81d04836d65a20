// Shared by the tests of `numemu gemm`: a folder with operands, and the product's numbers.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace numemu::test {

/// A scratch folder in which products are computed.
struct GemmFolder : Scratch {
  template <class T>
  void put(const std::string& name, ArrayType type, const ArrayShape& shape,
           const std::vector<T>& values) const {
    write_npy(path + "/" + name, type, shape, values.data());
  }
  void bytes(const std::string& name, const ArrayShape& shape,
             const std::vector<std::uint8_t>& values) const {
    put(name, ArrayType::uint8, shape, values);
  }
  void floats(const std::string& name, const ArrayShape& shape,
              const std::vector<float>& values) const {
    put(name, ArrayType::float32, shape, values);
  }
  /// a.npy (2 x 4) and b.npy (4 x 3) in float8_e4m3fn: 1 2 0 1 in each row, and ones.
  void e4m3() const {
    bytes("a.npy", {2, 4}, {0x38, 0x40, 0, 0x38, 0x38, 0x40, 0, 0x38});
    bytes("b.npy", {4, 3}, std::vector<std::uint8_t>(12, 0x38));
  }
  Result gemm(const std::string& unit, const std::string& more = "--out d.npy") const {
    return call("gemm --unit '" + unit + "' --a a.npy --b b.npy " + more);
  }
  Array npy(const std::string& name = "d.npy") const { return read_npy(path + "/" + name); }
  std::string text(const std::string& name) const { return read_file(path + "/" + name); }
  /// The elements of d.npy, which must have this type.
  template <class T>
  std::vector<T> result(ArrayType type, const std::string& name = "d.npy") const {
    const Array array = npy(name);
    REQUIRE(array.type == type);
    const auto* values = array.as<T>();
    return {values, values + array.elements()};
  }
};

inline const std::string kAnyE4m3 = " --format-a e4m3fn --format-b e4m3fn --out d.npy";

}  // namespace numemu::test
