// NAME.npy.json: what the codes in NAME.npy are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "formats/storage/array.hpp"
#include "formats/storage/packing.hpp"

namespace numemu {

/// The keys of a sidecar. What does not apply is left out here and null in the file.
struct Sidecar {
  std::string numemu = {};                 ///< version of the program that wrote the codes
  std::optional<std::string> format = {};  ///< canonical name of the codes' format
  std::optional<std::string> block = {};  ///< of the block format, where scales belong to the codes
  std::optional<std::int64_t> axis = {};  ///< along which blocks run; >= 0
  std::optional<ArrayShape> logical_shape = {};
  std::optional<bool> packed = {};
  std::optional<BitOrder> order = {};
  std::optional<std::string> rounding = {}, overflow = {}, scale_rule = {};
  std::optional<std::int64_t> seed = {};  ///< of counter-based random bits
};

/// "codes.npy.json" of "codes.npy".
std::string sidecar_path(const std::string& codes_path);

/// Writes the sidecar of a file of codes, atomically.
void write_sidecar(const std::string& codes_path, const Sidecar&);

/// The sidecar of a file of codes; nothing where there is none. Unknown keys, wrong types and
/// impossible values throw Error naming file and key; keys may be missing, except `numemu`.
std::optional<Sidecar> read_sidecar(const std::string& codes_path);

/// What a reader was told of a file of codes; what it was not told stays empty.
struct SidecarTold {
  std::optional<std::string> format = {}, block = {};
  std::optional<bool> packed = {};
  std::optional<BitOrder> order = {};
  std::optional<std::int64_t> axis = {};
};

/// Throws Error naming the file, the key and both values where the sidecar contradicts.
void check_sidecar(const std::string& codes_path, const Sidecar&, const SidecarTold&);

}  // namespace numemu
