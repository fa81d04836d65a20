// NAME.npy.json: what the codes in NAME.npy are.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "formats/format.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/packing.hpp"

namespace numemu {

/// The keys of a sidecar. What does not apply is left out here and null in the file.
struct Sidecar {
  std::string numemu = {};                          ///< version of the program that wrote the codes
  std::optional<std::string> format = {};           ///< canonical name of the codes' format
  std::optional<std::string> codebook_sha256 = {};  ///< of the entries of a codebook
  std::optional<std::string> block = {};  ///< of the block format, where scales belong to the codes
  std::optional<std::int64_t> axis = {};  ///< along which blocks run; >= 0
  std::optional<ArrayShape> logical_shape = {};
  std::optional<bool> packed = {};
  std::optional<BitOrder> order = {};
  std::optional<std::string> rounding = {}, overflow = {}, scale_rule = {};
  std::optional<std::uint64_t> seed = {};  ///< of counter-based random bits
  std::optional<std::string> sha256 = {};  ///< of the file of codes, all its bytes
  /// Digests of what was written with them, by what it is: one of kSidecarRoles.
  std::map<std::string, std::string> written_with = {};
};

/// What files of one run are to each other.
inline constexpr std::array<std::string_view, 6> kSidecarRoles = {
    "values", "codes", "flags", "scales", "tensor_scale", "zero_points"};

/// "codes.npy.json" of "codes.npy". Where that is not there and the codes are a link, the sidecar
/// of what it leads to.
std::string sidecar_path(const std::string& codes_path);

/// The sidecar of a file of codes (of what a link leads to), ready to take its place.
PendingFile pending_sidecar(const std::string& codes_path, const Sidecar&);

/// Removes the sidecars that describe the current content of a file, unless numemu did not write
/// them.
void remove_sidecar(const std::string& codes_path);

/// The sidecar of a file of codes; nothing where there is none. Unknown keys, wrong types, unknown
/// names and values that do not fit each other throw Error naming file and key; keys may be
/// missing, except `numemu`. Names of formats become canonical; the file of a codebook is not
/// opened.
std::optional<Sidecar> read_sidecar(const std::string& codes_path);

/// What the caller specifies about a file of codes; the rest is empty.
struct SidecarTold {
  std::optional<std::string> format = {}, block = {};
  std::optional<bool> packed = {};
  std::optional<BitOrder> order = {};
  std::optional<std::int64_t> axis = {};
  std::string block_by = "--block", axis_by = "--axis";  ///< their sources, for messages
};

/// Throws Error naming the file, the key and both values where the sidecar contradicts.
void check_sidecar(const std::string& codes_path, const Sidecar&, const SidecarTold&);

/// FILE of "codebook(FILE)"; "" for any other name.
std::string codebook_file(const std::string& format_name);

/// Lower-case hexadecimal SHA-256 of the entries as little-endian float64, -0 as 0; "" for a format
/// that is not a codebook.
std::string codebook_sha256(const Format&);

}  // namespace numemu
