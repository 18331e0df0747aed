"""Adapters for engines that others wrote; each is imported only when it is named as a target.

`vllm` drives vLLM's own KV-cache manager and the parts of its scheduler that belong to it;
`vllm_versions` says in what its versions differ. See docs/engines.md.
"""
