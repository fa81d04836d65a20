// Decoding and resizing against Pillow where it is present, hostile pictures, and a class folder of
// PNG files made from CIFAR-10.
#include "emu/net/data/picture.hpp"

#include <cstdlib>
#include <filesystem>

#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"
#include "tests/files.hpp"

namespace numemu::net::picture_test {
namespace {

using numemu::test::message_of;

/// False where the interpreter has no Pillow.
bool python(const std::string& script) {
  const numemu::test::TemporaryFolder folder;
  numemu::test::write_file(folder / "s.py", script);
  return std::system(("/usr/bin/python3 " + (folder / "s.py") + " 2>/dev/null").c_str()) == 0;
}

bool has_pillow() {
  if (python("import PIL, numpy")) return true;
  WARN("skipped: no Pillow for /usr/bin/python3");
  return false;
}

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST_CASE("pictures are decoded and resized to Pillow's bytes", "[fast]") {
  if (!has_pillow()) return;
  const numemu::test::TemporaryFolder folder;
  REQUIRE(python("import numpy as np\nfrom PIL import Image\nr = np.random.RandomState(7)\nd = '" +
                 folder.path() + R"('
a = r.randint(0, 256, (37, 53, 4)).astype(np.uint8)
a[..., :3] = a[..., :3] // 4 + np.linspace(0, 190, 53)[None, :, None].astype(np.uint8)
kinds = {'rgb.png': Image.fromarray(a[..., :3]), 'rgba.png': Image.fromarray(a),
         'grey.png': Image.fromarray(a[..., 0]),
         'palette.png': Image.fromarray(a[..., :3]).quantize(17),
         'colour.jpg': Image.fromarray(a[..., :3]), 'grey.jpg': Image.fromarray(a[..., 0])}
for name, image in kinds.items():
  image.save(d + '/' + name, **({'quality': 80} if name.endswith('jpg') else {}))
  rgb = Image.open(d + '/' + name).convert('RGB')
  open(d + '/' + name + '.raw', 'wb').write(rgb.tobytes())
rgb = kinds['rgb.png']
for h, w in [(20, 20), (37, 11), (5, 53), (74, 106), (1, 1), (36, 54)]:
  open(d + f'/{h}x{w}.raw', 'wb').write(rgb.resize((w, h), Image.BILINEAR).tobytes())
)"));
  for (const char* name :
       {"rgb.png", "rgba.png", "grey.png", "palette.png", "colour.jpg", "grey.jpg"}) {
    CAPTURE(name);
    const Picture p = decode_picture(name, numemu::test::read_file(folder / name));
    CHECK(p.height == 37);
    CHECK(p.width == 53);
    CHECK(p.rgb == bytes_of(numemu::test::read_file(folder / (std::string(name) + ".raw"))));
  }
  const Picture rgb = decode_picture("rgb", numemu::test::read_file(folder / "rgb.png"));
  for (const auto& [h, w] : {std::pair{20, 20}, {37, 11}, {5, 53}, {74, 106}, {1, 1}, {36, 54}}) {
    CAPTURE(h, w);
    const std::string raw = std::to_string(h) + "x" + std::to_string(w) + ".raw";
    CHECK(resize_bilinear(rgb, h, w).rgb == bytes_of(numemu::test::read_file(folder / raw)));
  }
  // Damage is one line with the place.
  const std::string png = numemu::test::read_file(folder / "rgb.png"),
                    jpeg = numemu::test::read_file(folder / "colour.jpg");
  CHECK(message_of([&] { decode_picture("p", png.substr(0, 300)); }).starts_with("p: byte "));
  CHECK(message_of([&] {
          decode_picture("p", jpeg.substr(0, jpeg.size() / 2));
        }).starts_with("p: byte "));
  std::string wide = png;
  wide[16] = wide[20] = 0x03;  // 2^25 and more pixels a side, with a wrong checksum besides
  CHECK(message_of([&] { decode_picture("p", wide); }).starts_with("p: byte "));
}

TEST_CASE("the shorter side and the centre as torchvision takes them", "[fast]") {
  Picture p{5, 8, std::vector<std::uint8_t>(5 * 8 * 3)};
  for (std::size_t i = 0; i < p.rgb.size(); ++i) p.rgb[i] = static_cast<std::uint8_t>(i);
  CHECK(resize_shorter(p, 5).rgb == p.rgb);
  CHECK(resize_shorter(p, 10).width == 16);
  CHECK(resize_shorter(p, 3).width == 4);
  const Picture c = crop_centre(p, 4);  // (5 - 4) / 2 rounds to 0, (8 - 4) / 2 is 2
  CHECK(c.rgb[0] == p.rgb[2 * 3]);
  CHECK(c.rgb[4 * 3] == p.rgb[(8 + 2) * 3]);
  CHECK(crop_centre(p, 2).rgb[0] == p.rgb[(2 * 8 + 3) * 3]);  // 1.5 rounds to the even 2
  CHECK(message_of([] { decode_picture("p", "GIF89a"); }) ==
        "p: byte 0: expected a PNG or JPEG file");
}

TEST_CASE("a folder of PNG files made from CIFAR-10 has the pixels of the binary set",
          "[fast][shared]") {
  const std::string shared = test::shared_data(), source = shared + "/cifar10";
  if (shared.empty()) {
    WARN("skipped: no shared data folder");
    return;
  }
  if (!has_pillow()) return;
  const numemu::test::TemporaryFolder folder, cache;
  constexpr int kImages = 300;
  REQUIRE(python("import gzip, os, numpy as np\nfrom PIL import Image\ns, d = '" + source + "', '" +
                 folder.path() + R"('
p = s + '/test_batch.bin'
b = open(p, 'rb').read(300 * 3073) if os.path.exists(p) else gzip.open(p + '.gz').read(300 * 3073)
r = np.frombuffer(b, np.uint8).reshape(300, 3073)
for i in range(300):
  os.makedirs(f'{d}/{r[i, 0]}', exist_ok=True)
  Image.fromarray(r[i, 1:].reshape(3, 32, 32).transpose(1, 2, 0).copy()).save(f'{d}/{r[i, 0]}/{i:05}.png')
)"));
  const Dataset binary = load_dataset("cifar10:" + source, "");
  const Dataset files =
      load_dataset("images:" + folder.path() + ",normalize=imagenet", cache.path());
  REQUIRE(files.test_count() == kImages);
  CHECK(files.digest() ==
        load_dataset("images:" + folder.path() + ",normalize=imagenet", cache.path()).digest());
  for (const auto& kept : std::filesystem::directory_iterator(cache / "images")) {
    std::string text = numemu::test::read_file(kept.path());
    text[5] = text[5] == '0' ? '1' : '0';
    numemu::test::write_file(kept.path(), text);
  }
  INFO("a damaged cache");
  CHECK(files.digest() ==
        load_dataset("images:" + folder.path() + ",normalize=imagenet", cache.path()).digest());
  Targets targets, expected;
  const Tensor x = files.test_batch(0, kImages, targets),
               y = binary.test_batch(0, kImages, expected);
  // Folders take the classes in turns: place i of a class is its i-th image of the binary set.
  std::vector<std::int64_t> seen(10, 0);
  for (int i = 0; i < kImages; ++i) {
    const std::int32_t label = targets.classes[i];
    std::int64_t place = seen[label]++, at = 0;
    while (expected.classes[at] != label || place-- > 0) ++at;
    CHECK(std::equal(x.data.begin() + i * 3072, x.data.begin() + (i + 1) * 3072,
                     y.data.begin() + at * 3072));
  }
}

}  // namespace
}  // namespace numemu::net::picture_test
