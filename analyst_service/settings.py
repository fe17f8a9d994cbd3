"""What an administrator may set, from ``COTERIE_…`` in the environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of the analyst service."""

    model_config = SettingsConfigDict(env_prefix="COTERIE_", frozen=True)

    data_dir: Path = Field(
        default=Path("coterie-data"), description="Folder of blobs and of SQLite."
    )
    database_url: str = Field(
        default="",
        description="postgresql://… or sqlite:///…; by default SQLite in the data folder.",
    )
    max_body_bytes: int = Field(
        default=4 << 30, ge=1 << 10, description="Largest contribution."
    )
    max_json_bytes: int = Field(
        default=1 << 20, ge=1 << 10, description="Largest JSON body."
    )
    max_wait_seconds: float = Field(
        default=25.0, ge=0, le=300, description="Cap of the long poll."
    )
    poll_seconds: float = Field(
        default=0.1,
        gt=0,
        le=10,
        description="How often waiting requests and the driver look.",
    )
    invitation_seconds: int = Field(
        default=7 * 86_400, ge=60, description="How long an invitation is valid."
    )
    token_seconds: int = Field(
        default=90 * 86_400, ge=60, description="How long a party token is valid."
    )
    key_seconds: int = Field(
        default=365 * 86_400, ge=60, description="How long a key is valid."
    )
    workers: int = Field(
        default=1, ge=1, le=64, description="Processes that step rounds."
    )

    @property
    def database(self) -> str:
        """Return the database URL with the driver that we install."""
        if not self.database_url:
            return f"sqlite:///{self.data_dir.resolve() / 'coterie.db'}"
        scheme, _, rest = self.database_url.partition("://")
        if scheme in {"postgres", "postgresql"}:
            return f"postgresql+psycopg://{rest}"
        return self.database_url

    @property
    def blob_dir(self) -> Path:
        """Return the folder of blobs."""
        return self.data_dir / "blobs"
