"""Signatures: who vouches for a release, and that a ledger's entries were written by who holds its key.

Ed25519 of the cryptography package. A public key is a word, ``ed25519:`` and base64; so is a signature. Every
signature is over what it is for as well as over the message: one of a release can never pass for one of an entry.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .errors import InputError, LedgerError

if TYPE_CHECKING:  # slow to import, and only who signs or checks needs it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Purpose = Literal["release", "ledger entry"]
_PREFIX = "ed25519:"


@dataclass(frozen=True)
class Signature:
    """A signature and the public key that it says it is of."""

    public: str
    signature: str

    def __str__(self) -> str:
        return f"{self.public} {self.signature}"

    @classmethod
    def read(cls, text: str) -> Signature | None:
        words = text.split()
        return cls(*words) if len(words) == 2 and all(word.startswith(_PREFIX) for word in words) else None

    def holds(self, purpose: Purpose, message: str) -> bool:
        return is_signed(self.public, purpose, message, self.signature)


class SigningKey:
    """A private key. It never leaves the file that it is kept in, and is no part of any release."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        from cryptography.hazmat.primitives import serialization

        self._private = private
        raw = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.public = _word(raw)

    @classmethod
    def made_at(cls, path: Path) -> SigningKey:
        """The key of this file; a new one if there is none. Of several processes that make one, one wins."""
        if not path.exists():
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            private = Ed25519PrivateKey.generate()
            pem = private.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            try:
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(pem)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.link(draft, path)
            except FileExistsError:
                pass
            except OSError as error:
                raise LedgerError(f"cannot keep the key {path}: {error.strerror}") from None
            finally:
                draft.unlink(missing_ok=True)
        return cls.of(path)

    @classmethod
    def of(cls, path: Path) -> SigningKey:
        """The key that is kept in this file, which must not be readable by everybody."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o007:
                raise LedgerError(f"everybody may read the key {path}; `chmod 600 {path}` first")
            private = load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            raise LedgerError(f"cannot read the key {path}: {error.strerror}") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise LedgerError(f"{path} holds no private key of a ledger")
        return cls(private)

    def sign(self, purpose: Purpose, message: str) -> str:
        return _word(self._private.sign(_message(purpose, message)))


def is_signed(public: str, purpose: Purpose, message: str, signature: str) -> bool:
    """Whether the holder of this key has signed the message, for this purpose."""
    key, raw = _raw(public), _raw(signature)
    if key is None or raw is None:
        return False
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(raw, _message(purpose, message))
    except (InvalidSignature, ValueError):
        return False
    return True


def read_public_key(text: str) -> str:
    """A public key as somebody gives it: the word itself, or a file that holds it."""
    said = said_or_in_file(text)
    raw = _raw(said)
    if raw is None or len(raw) != 32:
        raise InputError(
            f"a public key is a word such as {_PREFIX}… (`discreet ledger key` shows it), or a file with it"
        )
    return said


def said_or_in_file(text: str) -> str:
    """A word, or the first line of the file of that name."""
    if not text.startswith(_PREFIX) and len(text) < 1000 and Path(text).is_file():
        with open(text, "rb") as stream:
            lines = stream.read(4096).decode("ascii", errors="replace").split("\n")
        return lines[0].strip()
    return text.strip()


def _message(purpose: Purpose, message: str) -> bytes:
    return f"discreet {purpose}\n{message}".encode()


def _word(raw: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(word: str) -> bytes | None:
    text = word.removeprefix(_PREFIX)
    if text == word or len(text) > 200:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if _word(raw) == word else None
