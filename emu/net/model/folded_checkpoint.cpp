#include "emu/net/model/folded_checkpoint.hpp"

#include "emu/net/fold_batch_norm.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::string_view kKey = "batch_norm", kFolded = "folded";

}  // namespace

std::string metadata_of(const Checkpoint& checkpoint, std::string_view key) {
  for (const auto& [name, value] : checkpoint.metadata) {
    if (name == key) return value;
  }
  return "";
}

void mark_folded(Checkpoint& checkpoint) { checkpoint.metadata.emplace_back(kKey, kFolded); }

bool is_folded(const Checkpoint& checkpoint) { return metadata_of(checkpoint, kKey) == kFolded; }

void load_checkpoint(Graph& graph, const Checkpoint& checkpoint, const std::string& path) {
  const std::string state = metadata_of(checkpoint, kKey);
  if (state == kFolded) {
    fold_batch_norm(graph);
  } else if (!state.empty()) {
    throw Error(path + ": metadata 'batch_norm': expected 'folded', found '" + state + "'");
  }
  load_parameters(graph, checkpoint, path);
}

}  // namespace numemu::net
