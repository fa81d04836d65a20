"""Vectors: the records of `numemu vectors`, and their way through `verify`."""
import numemu
import pytest

H100 = "nvidia.h100.wgmma.e4m3.f32"


def lines(program, *words):
    """Records of the program as tuples of the words of a line."""
    text = program.run("vectors", *words, "--file-format", "text", "--quiet").stdout.splitlines()
    return text[0], [line.split() for line in text if not line.startswith("#")]


@pytest.mark.parametrize("subject,options,words", [
    ("fma", dict(format="float16", style="ties"), ["--op", "fma", "--format", "float16", "--style", "ties"]),
    ("convert", dict(from_="float32", to="e4m3fn", rounding="sr(8)"), ["--op", "convert", "--from", "float32", "--to", "e4m3fn", "--rounding", "sr(8)"]),
    (H100, dict(k=32, style="mixed"), ["--unit", H100, "--k", "32"]),
])
def test_same_records_as_the_program(program, subject, options, words):
    made = numemu.vectors(subject, n=3000, seed=5, **options)
    header, want = lines(program, *words, "--n", 3000, "--seed", 5)
    assert made.header == header and len(made) == len(want) == 3000
    for record, line in zip(made, want):
        codes = [code for field in record[:-1] for code in (field if isinstance(field, tuple) else (field,))]
        assert codes == [int(word, 16) for word in line[: len(codes)]]
        assert record.cls in " ".join(line)
    assert made[-1] == list(made)[-1] and made[10:12] == [made[10], made[11]]
    with pytest.raises(IndexError):
        made[3000]


def test_arrays_and_fields():
    made = numemu.vectors(numemu.unit(H100), n=100, k=32)
    names = {field["name"]: field for field in made.fields}
    assert names["a"] == {"name": "a", "bits": 8, "count": 32, "format": "float8_e4m3fn", "result": False}
    assert names["d"]["result"]
    arrays = made.arrays()
    assert arrays["a"].shape == (100, 32) and arrays["d"].shape == (100,)
    assert made[7].a == tuple(arrays["a"][7])
    word = made.word(made[7], "a")
    assert [word >> 8 * i & 0xFF for i in range(32)] == list(made[7].a) and made.word(made[7], "d") == made[7].d
    d = numemu.unit(H100).dot(arrays["a"].astype("u1"), arrays["b"].astype("u1"), arrays["c"].astype("u4").view("f4"))
    assert d.view("u4").tolist() == arrays["d"].tolist()


def test_described_units_have_vectors():
    description = {**numemu.unit(H100).describe()["parameters"], "name": "my.wgmma"}
    assert [r.d for r in numemu.vectors(description, n=50)] == [r.d for r in numemu.vectors(H100, n=50)]


def test_verify(program):
    program.run("vectors", "--op", "mul", "--format", "e4m3fn", "--n", 500, "--out", "v.txt", "--quiet")
    path = program.folder / "v.txt"
    verified = numemu.verify(path)
    assert verified and verified.holds and verified["records"] == 500
    text = path.read_text().splitlines()
    words = text[7].split()
    words[2] = f"{int(words[2], 16) ^ 1:02x}"
    text[7] = " ".join(words)
    path.write_text("\n".join(text) + "\n")
    wrong = numemu.verify(path)
    assert not wrong and wrong["mismatches"] == 1 and wrong["first"]["line"] == 8
    done = program.run("verify", "--in", "v.txt", check=False)
    assert str(wrong).replace(str(path), "v.txt") == done.stdout
    with pytest.raises(numemu.Error) as caught:
        numemu.verify(program.folder / "none.txt")
    assert caught.value.kind == "file"


def test_refusals(program):
    for words, text in [(dict(subject="fma", level=3, format="f16"), "^level: expected 1 or 2"), (dict(subject="fma", format="f16", n=0), "^n: expected at least 1"), (dict(subject="fma", format="f16", style="tiess"), "ties"), (dict(subject=H100, k=0), "^k: expected 1 to")]:
        with pytest.raises(numemu.Error, match=text):
            numemu.vectors(**words)
