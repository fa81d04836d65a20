// Weights as numpy's .npz archives: a zip of .npy files, one for each tensor.
#pragma once
#include <map>
#include <string>

#include "emu/net/model/safetensors.hpp"
#include "formats/storage/array.hpp"

namespace numemu::net {

/// Reads every entry NAME.npy, stored or deflated, in the archive's order, as the tensor NAME.
/// float16 is exact; float64 and integers are rounded once, to nearest even. Hostile input: takes
/// at most 64 times the file's size and 16 MiB of memory, declared sizes are refused before
/// anything is inflated, CRCs are checked. Throws Error naming the file and the entry at fault.
Checkpoint read_npz(const std::string& path);
/// The same entries as arrays of their own types, by name; little-endian and C order alone. Byte
/// strings are refused or, with `with_text`, given as uint8 with one axis more.
std::map<std::string, Array> read_npz_arrays(const std::string& path, bool with_text = false);

}  // namespace numemu::net
