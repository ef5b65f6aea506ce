#!/usr/bin/env python3
"""Django's command line for evalsite."""

import errno
import io
import os
import signal
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
        from django.core.management import execute_from_command_line  # noqa: PLC0415
        from django.db import DatabaseError  # noqa: PLC0415
    except ModuleNotFoundError:
        sys.exit(
            "Django is not installed for this Python: use .venv/bin/python (make run makes it)."
        )
    if isinstance(sys.stdout, io.TextIOWrapper):  # as errors are: names may be of any script
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except DatabaseError as error:
        from evalsite.management.tables import what_to_do  # noqa: PLC0415  (needs the settings)

        told = what_to_do(error, migrates=sys.argv[1:2] == ["migrate"])
        if told is None:
            raise
        sys.exit(told)
    except BrokenPipeError:  # whoever reads has seen enough, as head has
        drop_output()
        sys.exit(1)
    except KeyboardInterrupt:
        drop_output()
        sys.stderr.write("Stopped.\n")
        sys.exit(128 + signal.SIGINT)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        drop_output()
        sys.exit(f"Not all could be written: {error}")


def drop_output() -> None:
    """Let Python write what is left to nobody, as it complains where it cannot when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
