"""The planner page: a static page, a JSON API behind it, and the processes that compute. ``privselect serve`` starts it."""
