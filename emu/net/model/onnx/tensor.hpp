// A tensor of an ONNX file, decoded from the file's buffer on demand.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/onnx/wire.hpp"

namespace numemu::net {

/// TensorProto.DataType, as numbered there; the types that are read.
enum class OnnxType : std::uint8_t {
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
  float8_e4m3fn = 17,
  float8_e4m3fnuz = 18,
  float8_e5m2 = 19,
  float8_e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22
};

/// "float32"; "type 8" for a number that is no OnnxType.
std::string to_string(OnnxType);
/// The type of that number; throws Error for the numbers of text, complex numbers and none.
OnnxType number_type(std::int64_t number);
/// false for floats of 8, 16, 32 and 64 bits.
bool is_integer(OnnxType);
/// The row of formats.def that a float of 8 bits is; "" for every other type.
std::string_view float8_format(OnnxType);

/// The least and the most of an integer type of at most 32 bits; 0 and 0 for others.
struct IntegerRange {
  std::int64_t least = 0, most = 0;
};
IntegerRange range_of(OnnxType);

/// Where the data of a tensor lie that are not in the model's file.
struct OnnxLocation {
  std::string_view file;  ///< beside the model; "": the data are in the model's file
  std::int64_t offset = 0;
  std::int64_t bytes = -1;  ///< -1: as many as the elements take
};

/// Views point into the buffer of the model that holds the tensor.
struct OnnxTensor {
  std::string_view name;           ///< "" in an attribute that gives none
  std::vector<std::int64_t> dims;  ///< {} for a scalar
  std::int64_t elements = 0;       ///< their product
  OnnxType type = OnnxType::float32;
  bool raw = false;         ///< raw_data was used
  bool absent = false;      ///< the data are elsewhere: zeros stand for them
  std::string_view data;    ///< raw_data, else the whole TensorProto
  std::int64_t offset = 0;  ///< of the TensorProto in the file
  OnnxLocation external;
};

/// The bytes of raw data that the elements take.
std::int64_t raw_bytes(const OnnxTensor&);

/// Reads a TensorProto and checks that its data hold exactly the elements of its shape, each in the
/// range of its type. External data are located, not read. Throws Error naming file, byte and
/// tensor; refuses segments and the types that OnnxType lacks.
/// With `may_be_absent` a tensor of reals need not have data.
OnnxTensor read_onnx_tensor(WireReader, bool may_be_absent = false);

/// The elements in C order as float32. Floats of 8 and 16 bits are exact; float64 and integers are
/// rounded once, to nearest even, beyond the largest float32 to infinity; true is 1.
std::vector<float> to_floats(const OnnxTensor&);
/// The elements of a tensor whose type is_integer, else Error naming the tensor.
std::vector<std::int64_t> to_integers(const OnnxTensor&);

}  // namespace numemu::net
