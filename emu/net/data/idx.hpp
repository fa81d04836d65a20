// IDX files, the format of MNIST: big-endian header, then bytes.
#pragma once
#include <string>

#include "emu/net/data/dataset.hpp"

namespace numemu::net {

/// Reads one split ("train" or "t10k") of an MNIST-like set of 28 x 28 grey images and ten classes
/// from `folder`: PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte, also with a dot before
/// idx, each plain or .gz. Throws Error naming file, offset, expected and found.
Images read_idx(const std::string& folder, const std::string& prefix);

/// Writes the same two plain files, each atomically.
void write_idx(const std::string& folder, const std::string& prefix, const Images&);

}  // namespace numemu::net
