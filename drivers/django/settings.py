"""The settings of a Django site that has parameters bound and statements prepared by the server."""

import os

INSTALLED_APPS = ["notes"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

# What is not here (PGHOST, PGPASSWORD, ...) libpq takes from the environment.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "CONN_MAX_AGE": None,
        "OPTIONS": {"server_side_binding": True, "prepare_threshold": 2},
    }
}
