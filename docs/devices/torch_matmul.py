# A device for `numemu identify --format-a float32 --format-d float32`: one element of PyTorch's C + A x B.
import sys
import numpy, torch

SIZE = 64  # rows of A, columns of B: small products may take another path

torch.set_num_threads(1)
for line in sys.stdin:
    if line.startswith("#"): continue
    numbers = torch.from_numpy(numpy.array([int(word, 16) for word in line.split()], numpy.uint32).view(numpy.float32))
    k = len(numbers) // 2
    a, b, c = torch.zeros(SIZE, k), torch.zeros(k, SIZE), torch.zeros(SIZE, SIZE)
    a[0], b[:, 0], c[0, 0] = numbers[:k], numbers[k:2 * k], numbers[-1]
    d = torch.addmm(c, a, b)[0, 0].numpy()
    print(format(int(d.view(numpy.uint32)), "08x"), flush=True)
