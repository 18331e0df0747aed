"""The executable specification of a paged KV-cache with prefix sharing, and its toolkit."""
