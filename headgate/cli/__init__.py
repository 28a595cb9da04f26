"""The command ``headgate``: it asks a site over ``headgate.client``, and knows nothing else of it."""
