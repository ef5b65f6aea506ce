"""How passwords are stored."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 19 MiB and two passes, the least that OWASP recommends.

    Django's default takes 100 MiB for each sign-in: eight at once fill a small server. Passwords
    that were stored with other parameters are stored anew when they are used.
    """

    memory_cost = 19 * 1024
    time_cost = 2
    parallelism = 1
