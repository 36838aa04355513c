"""Kernels: how numba functions are compiled, where their machine code is kept, and when it is compiled."""
