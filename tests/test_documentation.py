"""What the documentation must name: every setting of the environment."""

import re

from tests.support.site import REPO

SETTING = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')


def test_every_setting_is_in_the_table_of_the_deployment_guide() -> None:
    read = set(SETTING.findall((REPO / "evalsite" / "settings.py").read_text("utf-8")))
    assert {"SITE_URL", "EVALSITE_DATA", "DATABASE_URL"} <= read
    rows = re.findall(
        r"^\| (`[A-Z_`, ]+`) \|", (REPO / "docs/deployment.md").read_text("utf-8"), re.M
    )
    told = {name for row in rows for name in re.findall("[A-Z_]+", row)}
    assert told == read
