"""Kernels: how numba functions are compiled, where their machine code is kept, and who compiles it when."""
