"""REST: serializers, views, authentication, error mapping, Druid-shaped endpoints, the indexers' endpoints."""
