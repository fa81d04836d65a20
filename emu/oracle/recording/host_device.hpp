// Marks functions that run on the host and on the GPU.
#pragma once

#ifdef __CUDACC__
#define NUMEMU_HD __host__ __device__
#else
#define NUMEMU_HD
#endif
