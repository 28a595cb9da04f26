"""Sealing all stored secrets anew, so that an old key can be given up."""

from __future__ import annotations

from django.db import models, transaction

from controlplane.connections.secrets import SecretsLost, resealed
from controlplane.supervisors.models import SpecVersion
from controlplane.tasks.models import Task


def rotate_secrets() -> tuple[int, int]:
    """Seal every stored secret with the present key. Returns how many texts were sealed, and how many can't be opened.

    Rows with the same text keep one: a task's secrets are compared with those of its spec by it.
    """
    rotated = lost = 0
    for text in sorted(_texts(SpecVersion) | _texts(Task)):
        try:
            fresh = resealed(text)
        except SecretsLost:
            lost += 1
            continue
        with transaction.atomic():
            for model in (SpecVersion, Task):
                _rows(model).filter(secrets=text).update(secrets=fresh)
        rotated += 1
    return rotated, lost


def _texts(model: type[models.Model]) -> set[str]:
    return set(_rows(model).exclude(secrets="").values_list("secrets", flat=True).distinct())


def _rows(model: type[models.Model]) -> models.QuerySet[models.Model]:
    return model._default_manager.all()
