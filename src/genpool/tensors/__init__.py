"""Shared tensor code: packed rows, threads, dropout, initial weights, the switch of fast paths."""
