#include "cli/network_option.hpp"

namespace numemu::cli {

void add_trained_net(Command& command, std::string& net) {
  command
      .option("--net NAME|FILE", net,
              "A reference network with a shipped checkpoint, a .safetensors or .onnx file, "
              "or NAME=FILE")
      .required();
}

void add_data_set(Command& command, std::string& data) {
  command
      .option("--data SET", data,
              "glyphs, clicks, chain, mnist:DIR, cifar10:DIR, cifar100:DIR, images:DIR, "
              "text:FILE, tokens:FILE or npy:DIR, with options: docs/data.md")
      .required();
}

}  // namespace numemu::cli
