"""Block copy and block fill: the CUDA source, its host twin, launch and copy plan.

`layout` says where blocks lie, `plan` what a launch is given, `arithmetic` (and its twin
`arithmetic.h`) where each byte is. What moves bytes are `movers.CpuMover`, `host.HostMover` (the
kernels compiled for the CPU) and `cuda.CudaMover`, all with the interface `movers.Mover`.
"""
