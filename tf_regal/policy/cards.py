"""Policies on disk: where the shipped ones are, and the card.json that says what one is and whether it is whole. Needs no TensorFlow.

A policy is a directory with a SavedModel and a card: format, feature version, objective, network, training, results, and the sha256 of every file.
"""

import hashlib
import json
import pathlib

from tf_regal import errors
from tf_regal.policy import features
from tf_regal.search import OBJECTIVES, proposal
from tf_regal.storage import write_atomically

CARD = "card.json"
FORMAT = 1
_GRID = [len(proposal.MEANS), list(proposal.CONCENTRATIONS)]


def shipped(objective):
    """Directory of the policy that comes with tf-regal for an objective; it may not be there."""
    _, package, tree, *_ = pathlib.Path(__file__).resolve().parents
    installed = package / "saved_policies"
    return (installed if installed.is_dir() else tree / "saved_policies") / objective


def directory(policy, objective):
    """The directory that a `policy` setting means: "auto", or a path."""
    return shipped(objective) if policy == "auto" else pathlib.Path(policy)


def identity(policy, objective):
    """What of a `policy` setting decides the plan: None, or a digest of the policy's card ("" where it cannot be read)."""
    if policy is None:
        return None
    try:
        return hashlib.sha256((directory(policy, objective) / CARD).read_bytes()).hexdigest()[:16]
    except OSError:
        return ""


def write(path, fields):
    """Writes the card of the policy in a directory, with the digests of all files that are there. fields: dict of what else it says."""
    path = pathlib.Path(path)
    files = {str(f.relative_to(path)): _digest(f) for f in sorted(path.rglob("*")) if f.is_file() and f.name != CARD}
    card = {"format": FORMAT, "feature_version": features.VERSION, "choices": _GRID, **fields, "files": files}
    write_atomically(path / CARD, json.dumps(card, indent=1) + "\n")


def read(path, objective=None):
    """The card of a policy, as a dict, after checking that the policy is whole and fits this version and the objective.

    Raises PolicyError, with what is wrong and what to do.
    """
    path = pathlib.Path(path)
    if not path.is_dir():
        raise errors.PolicyError(f"policy={str(path)!r} is not a directory; give one that `tf-regal train` made, 'auto', or None")
    try:
        card = json.loads((path / CARD).read_text())
    except OSError as error:
        raise errors.PolicyError(f"policy={str(path)!r} has no {CARD} ({error.strerror}); give the policy directory that `tf-regal train` made") from error
    except ValueError as error:
        raise errors.PolicyError(f"policy={str(path)!r}: {CARD} is damaged ({error}); export the policy again") from error
    if not isinstance(card, dict):
        raise errors.PolicyError(f"policy={str(path)!r}: {CARD} is damaged (it holds a {type(card).__name__}); export the policy again")
    for name, mine in (("format", FORMAT), ("feature_version", features.VERSION), ("choices", _GRID)):
        if card.get(name) != mine:
            raise errors.PolicyError(
                f"policy={str(path)!r} has {name} {card.get(name)!r}; this version of tf-regal needs {mine!r}: train the policy again with it"
            )
    if card.get("objective") not in OBJECTIVES or (objective is not None and card["objective"] != objective):
        raise errors.PolicyError(
            f"policy={str(path)!r} is for the objective {card.get('objective')!r}, not for {objective!r}; give one that was trained for that"
        )
    files = card.get("files")
    if not isinstance(files, dict) or not any(name.endswith("saved_model.pb") for name in files):
        raise errors.PolicyError(f"policy={str(path)!r}: {CARD} names no SavedModel; export the policy again")
    for name, digest in files.items():
        file = path / name
        if not file.is_file() or _digest(file) != digest:
            raise errors.PolicyError(f"policy={str(path)!r} is damaged: {name} {'has changed' if file.is_file() else 'is missing'}; install or export it again")
    return card


def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
