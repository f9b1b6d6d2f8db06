"""The planner page of ``privselect serve``: a static page, its JSON API, and the worker processes that compute the answers."""
