// A folder of its own for calls of api/, what they tell, and files of arrays in it.
#pragma once
#include <string>
#include <vector>

#include "api/context.hpp"
#include "formats/storage/npy.hpp"
#include "tests/files.hpp"
#include "tests/glyphs_cache.hpp"

namespace numemu::test {

struct Workplace {
  TemporaryFolder folder;
  std::string said, warned;  ///< a line each
  api::Context context;

  Workplace() {
    context.folders = {NUMEMU_SOURCE "/data", folder / "cache"};
    share_glyphs(context.folders.cache);
    context.say = [this](const std::string& text) { said += text + "\n"; };
    context.warn = [this](const std::string& text) { warned += text + "\n"; };
  }
  std::string operator/(const std::string& name) const { return folder / name; }
  std::string file(const std::string& name, const std::string& text) const {
    write_file(folder / name, text);
    return folder / name;
  }
  std::string array(const std::string& name, const ArrayShape& shape,
                    const std::vector<float>& values) const {
    write_npy(folder / name, ArrayType::float32, shape, values.data());
    return folder / name;
  }
};

}  // namespace numemu::test
