// A zip begins with PK and a kind of header; safetensors with 8 bytes of length and a brace.
#include "emu/net/model/weights.hpp"

#include <algorithm>
#include <string_view>

#include "emu/net/model/npz.hpp"
#include "formats/storage/input_file.hpp"

namespace numemu::net {

Checkpoint read_weights(const std::string& path) {
  constexpr std::int64_t kLengthBytes = 8;
  constexpr std::string_view kEntry = "PK\3\4", kEmptyArchive = "PK\5\6";
  InputFile file(path);
  const std::string start = file.read(std::min(file.left(), kLengthBytes + 1));
  if (start.starts_with(kEntry) || start.starts_with(kEmptyArchive)) return read_npz(path);
  if (start.size() > kLengthBytes && start[kLengthBytes] == '{') return read_safetensors(path);
  file.fail_at(0,
               "expected safetensors (a length and a JSON header) or .npz (a zip archive), found "
               "neither");
}

}  // namespace numemu::net
