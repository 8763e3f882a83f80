"""A bulk run: from input files to a folder of shards, continued wherever the last run stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from genpool.disk.atomic import FILE_SUFFIX
from genpool.disk.lock import FolderInUse, held_folder, remove_lock
from genpool.errors import DataError, FolderError, InputError, require_extra
from genpool.inference.sentence_vectors import SentenceVectors, resolve_truncate_dim
from genpool.jobs.bulk.engines import Engine, UnreadShard
from genpool.jobs.bulk.inputs import InputFile, file_digest, find_inputs
from genpool.jobs.bulk.local import LocalEngine
from genpool.jobs.bulk.manifest import MANIFEST, Manifest
from genpool.jobs.bulk.options import BulkOptions, ShardSettings
from genpool.jobs.bulk.plan import TEXT_TYPE, PlannedFile, Shard, parquet_schema, plan_file
from genpool.jobs.bulk.shard import find_finished, job_fingerprint
from genpool.jobs.bulk.summary import BulkSummary
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

    Args:
        encoder: a `SentenceEncoder`.
        sources: files, folders and globs; see `genpool.jobs.bulk.inputs.find_inputs`.
        output: the folder.
        options: how to encode. Default: None, the defaults of `BulkOptions`.
        engine: what runs the shards. Default: None, `LocalEngine()`: this process.
        show_progress: show a bar, or lines in a log, on standard error. Default: True.

    Returns:
        What the folder contains now.

    Raises:
        InputError: an option or an input is not possible.
        DataError: an input cannot be read, or a shard not written.
        FolderError: the folder holds something else, or another process writes it.
        KeyboardInterrupt: Ctrl-C; its message says how far the run was.

    Example:
        >>> encode_bulk(model, ["news/*.jsonl"], "shards", BulkOptions(column="body"))
    """
    began, options, folder = time.monotonic(), options or BulkOptions(), Path(output)
    model = model_of(encoder)
    dim = resolve_truncate_dim(model, options.truncate_dim)
    with require_extra("writing Parquet", "parquet"):
        import pyarrow  # noqa: F401  # before any work
    files = find_inputs(sources, folder)
    job = _description(options, dim, fingerprint(model), files)
    with _held(folder):
        manifest = Manifest.open(folder, job)
        _remove_temporary(folder)
        summary = BulkSummary()
        planned = _plan(files, manifest, options, summary, show_progress)
        settings = ShardSettings(
            folder.resolve(), job_fingerprint(job), options, dim, _types(planned, options, summary)
        )
        shards = [
            shard
            for number, file, plan in planned
            if file.name not in summary.bad_files
            for shard in plan.shards(number, file.path.resolve(), options.shard_rows)
        ]
        missing = _find_missing(shards, manifest, settings)
        summary.earlier_rows = sum(result.rows for result in manifest.shards.values())
        total = sum(shard.rows for shard in shards)
        earlier = total - sum(shard.rows for shard in missing)
        try:
            with progress("encoding", total, show_progress, earlier=earlier) as show:
                run = (engine or LocalEngine())(model, settings, missing)
                _collect(run, missing, manifest, options, summary, show)
        except KeyboardInterrupt:
            rows = sum(result.rows for result in manifest.shards.values())
            raise KeyboardInterrupt(
                f"stopped after {rows:,} of {total:,} rows; finished shards are in {folder}: run "
                "the command again to continue"
            ) from None
        finally:
            _remove_temporary(folder)
        summary.add(manifest.shards.values())
    summary.seconds = time.monotonic() - began
    return summary


def _description(
    options: BulkOptions, dim: int, model: str, files: list[InputFile]
) -> dict[str, Any]:
    """Returns what the bytes of the shards depend on, for the manifest."""
    chosen = {name: value for name, value in asdict(options).items() if name not in _FREE_OPTIONS}
    return {"model": model, **chosen, "dim": dim, "inputs": [file.name for file in files]}


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


def _plan(
    files: list[InputFile],
    manifest: Manifest,
    options: BulkOptions,
    summary: BulkSummary,
    show_progress: bool,
) -> list[tuple[int, InputFile, PlannedFile]]:
    """Finds the slices of all files; those that the manifest knows are not read again."""
    planned = []
    with progress("counting rows of files", len(files), show_progress) as show:
        for number, file in enumerate(files):
            try:
                size, digest = file_digest(file.path)
                known = manifest.inputs.get(file.name)
                if known is None:
                    known = plan_file(file, size, digest, options)
                    manifest.add_input(known)
                elif (known.bytes, known.digest) != (size, digest):
                    raise InputError(
                        f"{file.path} has changed since {manifest.path.parent} was begun; its "
                        "shards would be of two versions. Choose another folder."
                    )
                planned.append((number, file, known))
            except DataError as error:
                _bad_file(file.name, error, options, summary)
            show(1)
    return planned


def _bad_file(name: str, error: DataError, options: BulkOptions, summary: BulkSummary) -> None:
    if options.bad_files == "error":
        raise DataError(
            f"{error.problem.rstrip('.')}; repair it, or leave such files out with --bad-files "
            "skip",
            error.path,
            error.line,
        ) from error
    summary.bad_files[name] = str(error)


def _types(
    planned: list[tuple[int, InputFile, PlannedFile]], options: BulkOptions, summary: BulkSummary
) -> dict[str, Any]:
    """Returns the Arrow types of the copied columns: those of Parquet if all files are, or text."""
    import pyarrow as arrow

    if not options.columns or not planned:
        return {}
    files = [plan for _, _, plan in planned if plan.rows]
    has_text = any(set(plan.types.values()) == {TEXT_TYPE} for plan in files)
    if has_text or not files:
        return dict.fromkeys(options.columns, arrow.string())
    _, first, expected = next(entry for entry in planned if entry[2].rows)
    for _, file, plan in planned:
        for name, kind in expected.types.items():
            if plan.rows and plan.types[name] != kind:
                problem = f"column {name!r} is {plan.types[name]}; in {first.path} it is {kind}"
                _bad_file(file.name, DataError(problem, file.path), options, summary)
    schema = parquet_schema(first.path)
    return {name: schema.field(name).type for name in options.columns}


def _find_missing(shards: list[Shard], manifest: Manifest, settings: ShardSettings) -> list[Shard]:
    """Returns the shards to encode; files of the others are there, with the size they had."""
    missing = []
    for shard in shards:
        done, path = manifest.shards.get(shard.name), settings.output / shard.name
        if done is not None and path.is_file() and path.stat().st_size == done.bytes:
            continue
        manifest.shards.pop(shard.name, None)
        # The last run may have been killed between the rename and the line in the manifest.
        finished = find_finished(shard, settings)
        if finished is None:
            missing.append(shard)
        else:
            manifest.add_shard(finished)
    return missing


def _collect(
    run: Iterator[Any],
    shards: list[Shard],
    manifest: Manifest,
    options: BulkOptions,
    summary: BulkSummary,
    show: Callable[..., None],
) -> None:
    """Notes every outcome in the manifest."""
    rows = {shard.name: shard.rows for shard in shards}
    for outcome in run:
        if isinstance(outcome, UnreadShard):
            shard = outcome.shard
            _bad_file(shard.source, DataError(outcome.problem), options, summary)
            summary.unread_rows += shard.rows
            show(shard.rows)
        else:
            manifest.add_shard(outcome)
            show(rows[outcome.name])
