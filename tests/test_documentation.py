"""What the documentation must name: every setting of the environment."""

import re

import yaml

from tests.support.site import REPO

SETTING = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')


def told() -> set[str]:
    """The settings that the deployment guide has in its table."""
    guide = (REPO / "docs/deployment.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \|", guide, re.M)
    return {name for row in rows for name in re.findall("[A-Z_]+", row)}


def test_every_setting_is_in_the_table_of_the_deployment_guide() -> None:
    read = set(SETTING.findall((REPO / "evalsite" / "settings.py").read_text("utf-8")))
    assert {"SITE_URL", "EVALSITE_DATA", "DATABASE_URL"} <= read
    assert told() == read


ASKED_FOR = {"SITE_URL", "SECRET_KEY"}  # compose does not start without
DECIDED = {"DATABASE_URL", "CELERY_BROKER_URL", "BEHIND_PROXY"}  # by the services themselves
NOT_HERE = {"EVALSITE_DATA", "DEBUG"}  # the image has the first, production must not have the other


def test_every_setting_reaches_the_containers() -> None:
    services = yaml.safe_load((REPO / "compose.yaml").read_text("utf-8"))["services"]
    ours = {name: service for name, service in services.items() if "build" in service}
    assert set(ours) == {"prepare", "web", "worker", "reader"}
    for name, service in ours.items():
        given = service["environment"]
        assert set(given) == told() - NOT_HERE, name
        passed = {key for key, value in given.items() if value is None}
        assert passed == told() - NOT_HERE - ASKED_FOR - DECIDED, name
        assert all(f"${{{key}:?" in given[key] for key in ASKED_FOR), name
