// Opened under a lock, read without it: what is open stays as it is when its name is replaced.
#include "formats/storage/stored_array.hpp"

#include <fmt/format.h>

#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/npy.hpp"

namespace numemu {

void StoredArray::check_digest() {
  if (expected.empty()) return;
  const std::string found = file->sha256();
  for (const Expected& e : expected) {
    if (e.sha256 == found) continue;
    throw Error(e.own ? fmt::format("{}: sha256: stale, {} has changed since: write the codes "
                                    "again, or delete the sidecar and give --format",
                                    e.sidecar, path())
                      : fmt::format("{}: written_with: {} is from another run: use that run's "
                                    "file, or delete the sidecar and give --format or --block",
                                    e.sidecar, path()));
  }
}

std::vector<StoredArray> open_together(const std::vector<ArrayName>& names) {
  std::vector<std::string> paths;
  for (const ArrayName& name : names) {
    if (!name.path.empty()) paths.push_back(linked_file(name.path));
  }
  Folders folders(paths);
  folders.lock(false);
  std::vector<StoredArray> arrays(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].path.empty()) continue;
    arrays[i].file = std::make_unique<InputFile>(names[i].path);
    arrays[i].sidecar = read_sidecar(names[i].path);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!arrays[i].sidecar) continue;
    const Sidecar& sidecar = *arrays[i].sidecar;
    const std::string said_by = sidecar_path(names[i].path);
    if (sidecar.sha256) arrays[i].expected.push_back({*sidecar.sha256, said_by});
    for (std::size_t j = 0; j < names.size(); ++j) {
      const auto told = sidecar.written_with.find(names[j].role);
      if (j != i && arrays[j].file != nullptr && told != sidecar.written_with.end())
        arrays[j].expected.push_back({told->second, said_by, false});
    }
  }
  return arrays;
}

StoredArray open_stored(const std::string& path) {
  return std::move(open_together({{path}}).front());
}

Array read_array(StoredArray& stored) {
  stored.rewind();
  Array array = read_npy(*stored.file);
  stored.check_digest();
  return array;
}

}  // namespace numemu
