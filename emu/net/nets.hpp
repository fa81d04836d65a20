// Reference networks by name; the rows of nets.def.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::net {

class Dataset;
enum class DataKind : std::uint8_t;

/// Builds the untrained network for samples of that shape ([height, width, channels] of images,
/// [context] of a text, [features] of clicks) and that many classes. "dlrm(WIDTH)" is dlrm-small
/// with embeddings of WIDTH elements instead of 16, "binarynet(WIDTH)" has three hidden layers of
/// WIDTH units, each of them normalised and behind a hard tanh; "hadamard(NET)" is NET with a
/// HadamardClassifier in the place of its last layer, which must be linear. Throws Error with the
/// nearest known name.
Graph build_net(std::string_view name, const Shape& input_shape, std::int64_t classes);
/// The network for a data set; throws Error too where the network takes another kind of data.
Graph build_net(std::string_view name, const Dataset&);
/// The kind of data it takes. Throws Error with the nearest known name.
DataKind net_kind(std::string_view name);
std::vector<std::string> net_names();

}  // namespace numemu::net
