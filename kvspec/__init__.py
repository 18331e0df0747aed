"""kvspec: the executable specification of paged prefix-sharing KV-caches, and its tools."""
