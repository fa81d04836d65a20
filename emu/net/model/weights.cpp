// A zip begins with PK and a kind of header; safetensors with 8 bytes of length and a brace.
#include "emu/net/model/weights.hpp"

#include <algorithm>
#include <string_view>

#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/npz.hpp"
#include "emu/net/require_elements.hpp"
#include "formats/digest.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu::net {

Checkpoint read_weights(const std::string& path) {
  constexpr std::int64_t kLengthBytes = 8;
  constexpr std::string_view kEntry = "PK\3\4", kEmptyArchive = "PK\5\6";
  InputFile file(path);
  const std::string start = file.read(std::min(file.left(), kLengthBytes + 1));
  if (start.starts_with(kEntry) || start.starts_with(kEmptyArchive)) return read_npz(path);
  if (start.size() > kLengthBytes && start[kLengthBytes] == '{') {
    Checkpoint checkpoint = read_safetensors(path, true, true);
    decode_weights(checkpoint, path);
    return checkpoint;
  }
  file.fail_at(0,
               "expected safetensors (a length and a JSON header) or .npz (a zip archive), found "
               "neither");
}

std::string digest_of(const Graph& graph) {
  constexpr std::size_t kDigits = 16;
  Sha256 digest;
  for (const Parameter* parameter : graph.parameters()) {
    require_elements(parameter->value, parameter->name);
    digest.add(parameter->name.c_str(), parameter->name.size() + 1);
    digest.add(parameter->value.data.data(), parameter->value.data.size() * sizeof(float));
  }
  return digest.hex().substr(0, kDigits);
}

}  // namespace numemu::net
