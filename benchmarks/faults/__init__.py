"""Faults tried for real: damaged files, kills, full disks, fuzzed and misbehaving clients."""
