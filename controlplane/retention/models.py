"""Which rules are set, and what was set before."""

from __future__ import annotations

from django.db import models

from controlplane.datasources.models import Datasource


class RuleSet(models.Model):
    """The rules of a datasource, or of the site: those are asked after a datasource's own. In Druid's form."""

    # None: the site's.
    datasource = models.OneToOneField(Datasource, on_delete=models.CASCADE, null=True, related_name="rule_set")
    rules = models.JSONField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                models.Value(1), condition=models.Q(datasource=None), name="the_site_has_one_set_of_rules"
            )
        ]


class RuleChange(models.Model):
    """One change of what was set."""

    # None: the site's.
    datasource = models.ForeignKey(Datasource, on_delete=models.CASCADE, null=True, related_name="rule_changes")
    rules = models.JSONField()
    author = models.CharField(max_length=150)
    comment = models.CharField(max_length=500, blank=True)
    address = models.CharField(max_length=45, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
