// A file appears whole or not at all: written beside its place, then renamed.
#pragma once
#include <string>
#include <string_view>

namespace numemu::experiments {

/// Where the content waits until it is complete: `path` + ".partial".
std::string partial_path(const std::string& path);

/// Moves the finished partial file to `path`. Throws Error naming `path`.
void publish_partial(const std::string& path);

/// Writes `content` to the partial file and publishes it. Throws Error naming `path`.
void write_atomically(const std::string& path, std::string_view content);

}  // namespace numemu::experiments
