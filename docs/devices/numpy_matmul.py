# A device for `numemu identify --format-a float32 --format-d float32`: one element of a float32 matmul of NumPy.
import sys
import numpy

SIZE = 64  # rows of A, columns of B: small products may take another path

for line in sys.stdin:
    if line.startswith("#"): continue
    numbers = numpy.array([int(word, 16) for word in line.split()], numpy.uint32).view(numpy.float32)
    k = len(numbers) // 2
    a, b = numpy.zeros((SIZE, k), numpy.float32), numpy.zeros((k, SIZE), numpy.float32)
    a[0], b[:, 0] = numbers[:k], numbers[k:2 * k]
    d = (a @ b)[0, 0] + numbers[-1]
    print(format(int(d.view(numpy.uint32)), "08x"), flush=True)
