// The file of a run that continues after any interruption: tensors and bytes by name, numbers, and
// what must agree for the run to be the same one.
#pragma once
#include <string>
#include <vector>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/train/run_state.hpp"

namespace numemu::net {

struct StateFile {
  RunIdentity identity;
  std::string numbers;  ///< a JSON object
  std::vector<NamedTensor> tensors;
  std::vector<NamedBytes> bytes;
};

/// Writes a safetensors file atomically, with a digest of all that is in it.
void write_state_file(const std::string& path, StateFile);
/// Throws Error naming the file where it is damaged.
StateFile read_state_file(const std::string& path);

/// "" where the identities agree, else the first difference.
std::string difference(const RunIdentity& stored, const RunIdentity& wanted);
/// "PATH: the state of an unfinished run that differs: DIFFERENCE; use --fresh or --out FOLDER"
[[noreturn]] void refuse_state(const std::string& path, const std::string& difference);

}  // namespace numemu::net
