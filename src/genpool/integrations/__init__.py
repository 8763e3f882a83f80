"""Integrations with other libraries: each depends on the core of genpool, never the reverse."""
