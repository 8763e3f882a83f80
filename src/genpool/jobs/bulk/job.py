"""A bulk run: from input files to a folder of shards, continued wherever the last run stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from genpool.disk.atomic import FILE_SUFFIX
from genpool.disk.lock import FolderInUse, held_folder, remove_lock
from genpool.errors import DataError, FolderError, InputError, require_extra
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.jobs.bulk.engines import Engine, LocalEngine
from genpool.jobs.bulk.inputs import (
    TEXT_TYPE,
    BulkOptions,
    InputFile,
    Shard,
    file_digest,
    find_inputs,
    parquet_schema,
    plan_file,
)
from genpool.jobs.bulk.manifest import MANIFEST, BulkSummary, Manifest
from genpool.jobs.bulk.shard import ShardSettings, UnreadShard, find_finished, job_fingerprint
from genpool.progress import progress
from genpool.search.index_card import fingerprint, model_of

#: options that may differ between two runs of one folder: they do not change a finished shard
_FREE_OPTIONS = ("bad_files",)
_TEMPORARY = re.compile(rf"\.(part-\d+-\d+\.parquet|{re.escape(MANIFEST)})\..*\.{FILE_SUFFIX}")


def encode_bulk(
    encoder: SentenceVectors,
    sources: Iterable[str | Path],
    output: str | Path,
    options: BulkOptions | None = None,
    engine: Engine | None = None,
    show_progress: bool = True,
) -> BulkSummary:
    """Writes the vectors of many files as Parquet shards; a run that was stopped is continued.

    Each shard has columns `id`, those of `options.columns`, and `vector`, a list of a fixed size. A
    shard appears under its name when it is complete; _manifest.jsonl lists it with its checksum.
    The same call again encodes only what is missing. Same model, options and files: same bytes,
    whatever the engine and the number of workers (on CPUs of one kind).

    `sources` are files, folders and globs. The message of a KeyboardInterrupt says how far the run
    was.

    Example:
        >>> encode_bulk(model, ["news/*.jsonl"], "shards", BulkOptions(column="body"))
    """
    began, options, folder = time.monotonic(), options or BulkOptions(), Path(output)
    model = model_of(encoder)
    dim = resolve_truncate_dim(model, options.truncate_dim)
    with require_extra("writing Parquet", "parquet"):
        import pyarrow  # noqa: F401  # before any work
    files = find_inputs(sources, folder)
    chosen = {name: value for name, value in asdict(options).items() if name not in _FREE_OPTIONS}
    # What the bytes of the shards depend on.
    job = {
        "model": fingerprint(model),
        **chosen,
        "dim": dim,
        "inputs": [file.name for file in files],
    }
    with _held(folder):
        manifest = Manifest.open(folder, job)
        _remove_temporary(folder)
        run = _Run(options, manifest)
        planned = run.plan(files, show_progress)
        settings = ShardSettings(
            folder.resolve(), job_fingerprint(job), options, dim, run.column_types(planned.values())
        )
        shards = [
            shard
            for number, file in planned.items()
            if file.name not in run.summary.bad_files
            for shard in file.shards(number, options.shard_rows)
        ]
        missing = run.find_missing(shards, settings)
        summary = run.summary
        summary.earlier_rows = manifest.rows
        total = sum(shard.rows for shard in shards)
        rows = {shard.name: shard.rows for shard in missing}
        try:
            with progress(
                "encoding", total, show_progress, earlier=total - sum(rows.values())
            ) as show:
                for outcome in (engine or LocalEngine())(model, settings, missing):
                    if isinstance(outcome, UnreadShard):
                        shard = outcome.shard
                        run.add_bad_file(shard.source, DataError(outcome.problem))
                        summary.unread_rows += shard.rows
                        show(shard.rows)
                    else:
                        manifest.add_shard(outcome)
                        show(rows[outcome.name])
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped after {manifest.rows:,} of {total:,} rows; finished shards are in "
                f"{folder}: run the command again to continue"
            ) from None
        finally:
            _remove_temporary(folder)
        summary.add(manifest.shards.values())
    summary.seconds = time.monotonic() - began
    return summary


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Makes the folder and keeps other processes from writing it."""
    with ExitStack() as held:
        try:
            if folder.exists() and not folder.is_dir():
                raise FolderError(f"{folder} is a file; expected a folder for the shards.")
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(held_folder(folder))
        except FolderInUse as holder:
            raise FolderError(
                f"{folder} is in use: {holder} is encoding into it. Wait until it has ended, or "
                "choose another folder."
            ) from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise FolderError(f"{folder} cannot be written: {reason}.") from error
        yield
    remove_lock(folder)


def _remove_temporary(folder: Path) -> None:
    """Removes what killed workers have left, also those of other machines: nobody else writes."""
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            with suppress(OSError):
                path.unlink(missing_ok=True)


class _Run:
    """What the steps of a run share: its options, its manifest, and the summary so far."""

    def __init__(self, options: BulkOptions, manifest: Manifest) -> None:
        self.options, self.manifest, self.summary = options, manifest, BulkSummary()

    def plan(self, files: list[InputFile], show_progress: bool) -> dict[int, InputFile]:
        """Finds the slices of all files, by number; what the manifest knows is not read again."""
        planned: dict[int, InputFile] = {}
        with progress("counting rows of files", len(files), show_progress) as show:
            for number, file in enumerate(files):
                try:
                    size, digest = file_digest(file.path)
                    known = self.manifest.inputs.get(file.name)
                    if known is None:
                        known = plan_file(file, size, digest, self.options)
                        self.manifest.add_input(known)
                    elif (known.bytes, known.digest) != (size, digest):
                        raise InputError(
                            f"{file.path} has changed since {self.manifest.path.parent} was begun; "
                            "its shards would be of two versions. Choose another folder."
                        )
                    planned[number] = replace(known, path=file.path)
                except DataError as error:
                    self.add_bad_file(file.name, error)
                show(1)
        return planned

    def add_bad_file(self, name: str, error: DataError) -> None:
        """Counts a file that cannot be read, or raises what is wrong with it."""
        if self.options.bad_files == "error":
            problem = error.problem.rstrip(".")
            raise DataError(
                f"{problem}; repair it, or leave such files out with --bad-files skip",
                error.path,
                error.line,
            ) from error
        self.summary.bad_files[name] = str(error)

    def column_types(self, planned: Iterable[InputFile]) -> dict[str, Any]:
        """Returns the Arrow types of copied columns: of Parquet if all files are, or else text."""
        import pyarrow as arrow

        columns, files = self.options.columns, [file for file in planned if file.rows]
        is_text = any(set(file.types.values()) == {TEXT_TYPE} for file in files)
        if not columns or not files or is_text:
            return dict.fromkeys(columns, arrow.string())
        first = files[0]
        for file in files:
            for name, kind in first.types.items():
                if file.types[name] != kind:
                    problem = f"column {name!r} is {file.types[name]}; in {first.path} it is {kind}"
                    self.add_bad_file(file.name, DataError(problem, file.path))
        schema = parquet_schema(first.path)
        return {name: schema.field(name).type for name in columns}

    def find_missing(self, shards: list[Shard], settings: ShardSettings) -> list[Shard]:
        """Returns the shards to encode; files of the others are there, with the size they had."""
        missing, finished = [], self.manifest.shards
        for shard in shards:
            done, path = finished.get(shard.name), settings.output / shard.name
            if done is not None and path.is_file() and path.stat().st_size == done.bytes:
                continue
            finished.pop(shard.name, None)
            # The last run may have been killed between the rename and the line in the manifest.
            if found := find_finished(shard, settings):
                self.manifest.add_shard(found)
            else:
                missing.append(shard)
        return missing
