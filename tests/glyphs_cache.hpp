// One generated set of glyphs for all tests: making it takes over a second, and every scratch
// folder has a cache of its own.
#pragma once
#include <filesystem>
#include <string>

namespace numemu::test {

/// Lets a cache folder hold the glyphs of the build folder by a link. The first program that needs
/// them writes them there; each checks their hashes, and makes again what is damaged.
inline void share_glyphs(const std::string& cache) {
  const std::filesystem::path shared = NUMEMU_BINARY "/tests/glyphs";
  std::filesystem::create_directories(shared);
  std::filesystem::create_directories(cache);
  std::filesystem::create_directory_symlink(shared, std::filesystem::path(cache) / "glyphs");
}

}  // namespace numemu::test
