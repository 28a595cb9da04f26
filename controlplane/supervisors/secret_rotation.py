"""Sealing all stored secrets anew, so that an old key can be given up."""

from __future__ import annotations

from django.apps import apps
from django.db import models, transaction

from controlplane.connections.secrets import SecretsLost, reseal


def rotate_secrets() -> tuple[int, int]:
    """Seal every stored secret with the present key. Returns how many texts were sealed, and how many can't be opened.

    Rows with the same text keep one: a task's secrets are compared with those of its spec by it.
    """
    rotated = lost = 0
    holders = [model for model in apps.get_models() if _holds_secrets(model)]
    for text in sorted(set().union(*map(_sealed_texts, holders))):
        try:
            fresh = reseal(text)
        except SecretsLost:
            lost += 1
            continue
        with transaction.atomic():
            for model in holders:
                _rows(model).filter(secrets=text).update(secrets=fresh)
        rotated += 1
    return rotated, lost


def _holds_secrets(model: type[models.Model]) -> bool:
    """Versions of specs, tasks, connections, drafts: whatever has them under this name."""
    return any(field.name == "secrets" for field in model._meta.get_fields())


def _sealed_texts(model: type[models.Model]) -> set[str]:
    return set(_rows(model).exclude(secrets="").values_list("secrets", flat=True).distinct())


def _rows(model: type[models.Model]) -> models.QuerySet[models.Model]:
    return model._default_manager.all()
