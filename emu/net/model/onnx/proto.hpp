// Numbers of the fields of onnx/onnx.proto (release 1.12) that are read or written, by message.
#pragma once
#include <cstdint>

namespace numemu::net {

namespace model_field {
constexpr std::uint32_t kIrVersion = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOpset = 8;
}
namespace opset_field {
constexpr std::uint32_t kDomain = 1, kVersion = 2;
}
namespace graph_field {
constexpr std::uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12,
                        kValueInfo = 13, kSparseInitializer = 15;
}
namespace node_field {
constexpr std::uint32_t kInput = 1, kOutput = 2, kName = 3, kOperator = 4, kAttribute = 5,
                        kDomain = 7;
}
/// Those from kNumber on hold the value, in the order of OnnxAttributeType.
namespace attribute_field {
constexpr std::uint32_t kName = 1, kNumber = 2, kInteger = 3, kText = 4, kTensor = 5, kGraph = 6,
                        kNumbers = 7, kIntegers = 8, kTexts = 9, kGraphs = 11, kType = 20;
}
/// ValueInfoProto, the types inside it, their shape and its dimensions.
namespace value_field {
constexpr std::uint32_t kName = 1, kType = 2, kTensorType = 1, kElement = 1, kShape = 2,
                        kDimension = 1, kExtent = 1, kSymbol = 2;
}
namespace tensor_field {
constexpr std::uint32_t kDims = 1, kDataType = 2, kSegment = 3, kFloatData = 4, kInt32Data = 5,
                        kStringData = 6, kInt64Data = 7, kName = 8, kRawData = 9, kDoubleData = 10,
                        kUint64Data = 11, kExternalData = 13, kDataLocation = 14;
}

}  // namespace numemu::net
