"""A bulk run: from input files to a folder of shards, continued wherever the last run stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as arrow

from genpool.disk.atomic import FILE_SUFFIX
from genpool.disk.folder_format import content_checksum
from genpool.disk.lock import held_folder, remove_lock
from genpool.errors import DataError, FolderError, InputError
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.integrations.bulk import inputs
from genpool.integrations.bulk.engines import Engine, encode_locally
from genpool.integrations.bulk.inputs import TEXT_TYPE, BulkOptions, InputFile, Shard
from genpool.integrations.bulk.manifest import MANIFEST, BulkSummary, Manifest
from genpool.integrations.bulk.shard import ShardSettings, find_finished
from genpool.model.reference import fingerprint, model_of
from genpool.progress import progress

_TEMPORARY = re.compile(rf"\.(part-\d+-\d+\.parquet|{re.escape(MANIFEST)})\..*\.{FILE_SUFFIX}")


def encode_bulk(
    encoder: SentenceVectors,
    sources: Iterable[str | Path],
    output: str | Path,
    options: BulkOptions | None = None,
    engine: Engine = encode_locally,
    show_progress: bool = True,
) -> BulkSummary:
    """Writes the vectors of many files as Parquet shards; a run that was stopped is continued.

    Each shard has columns `id`, those of `options.columns`, and `vector`, a list of a fixed size. A
    shard appears under its name when it is complete; _manifest.jsonl lists it with its checksum.
    Same model, options and files: same bytes, whatever the engine (on CPUs of one kind).

    Example:
        >>> encode_bulk(model, ["news/*.jsonl"], "shards", BulkOptions(column="body"))
    """
    began, options, folder = time.monotonic(), options or BulkOptions(), Path(output)
    model = model_of(encoder)
    dim = resolve_truncate_dim(model, options.truncate_dim)
    files = inputs.find_inputs(sources, folder)
    # What the bytes of the shards depend on.
    job: dict[str, Any] = {"model": fingerprint(model), **asdict(options), "dim": dim}
    job["inputs"] = [file.name for file in files]
    del job["bad_files"]  # may differ between two runs: it does not change a finished shard
    with held_folder(folder, FolderError, "-o"):
        manifest = Manifest.open(folder, job)
        _remove_temporary(folder)
        run = _Run(options, manifest)
        summary, planned = run.summary, run.plan(files, show_progress)
        types = run.column_types([file for file in planned.values() if file.rows])
        settings = ShardSettings(folder.resolve(), content_checksum(job), options, dim, types)
        shards = [
            shard
            for number, file in planned.items()
            if file.name not in summary.bad_files
            for shard in file.shards(number, options.shard_rows)
        ]
        missing = run.find_missing(shards, settings)
        summary.earlier_rows = manifest.rows
        total, to_do = (sum(shard.rows for shard in some) for some in (shards, missing))
        try:
            with progress("encoding", total, show_progress, earlier=total - to_do) as show:
                for shard, result in engine(model, settings, missing):
                    if isinstance(result, str):
                        run.add_bad_file(shard.source, DataError(result))
                        summary.unread_rows += shard.rows
                    else:
                        manifest.add_shard(result)
                    show(shard.rows)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped after {manifest.rows:,} of {total:,} rows; finished shards are in "
                f"{folder}: run the command again to continue"
            ) from None
        finally:
            _remove_temporary(folder)
        for finished in manifest.shards.values():
            summary.add(finished)
    remove_lock(folder)
    summary.seconds = time.monotonic() - began
    return summary


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
                    size, digest = inputs.file_digest(file.path)
                    known = self.manifest.inputs.get(file.name)
                    if known is None:
                        known = inputs.plan_file(file, size, digest, self.options)
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
            remedy = "repair it, or leave such files out with --bad-files skip"
            problem = f"{error.problem.rstrip('.')}; {remedy}"
            raise DataError(problem, error.path, error.line) from error
        self.summary.bad_files[name] = str(error)

    def column_types(self, files: list[InputFile]) -> dict[str, Any]:
        """Returns the Arrow types of copied columns: of Parquet if all files are, or else text."""
        columns = self.options.columns
        if not files or any(set(file.types.values()) <= {TEXT_TYPE} for file in files):
            return dict.fromkeys(columns, arrow.string())
        first = files[0]
        for file in files:
            for name, kind in first.types.items():
                if file.types[name] != kind:
                    problem = f"column {name!r} is {file.types[name]}; in {first.path} it is {kind}"
                    self.add_bad_file(file.name, DataError(problem, file.path))
        return inputs.column_types(first.path, columns)

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
